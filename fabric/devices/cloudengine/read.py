"""From a switch's outputs to what it does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from fabric.devices.base import Outputs, ReadError, Target, require_shown
from fabric.devices.cloudengine.lines import (
    DEFAULT_FRAME_BYTES,
    DOMAIN,
    DROP,
    HEADER_BYTES,
    PFC,
    default_priority,
    inbound,
    is_physical,
    of_list,
)
from fabric.devices.hashes import parse_hashes, sha256
from fabric.devices.sections import Section, find
from fabric.qos import (
    DSCP_COUNT,
    PRIORITY_COUNT,
    DeviceQos,
    Ecn,
    Neighbor,
    PortQos,
    Queue,
    Scheduler,
    Trust,
)

RUNNING = "display current-configuration"
STARTUP = "display saved-configuration"
VERSION = "display version"
LLDP = "display lldp neighbor brief"

COMMANDS = (RUNNING, STARTUP, VERSION, LLDP)

_PFC_ENABLED = re.compile(r"dcb pfc enable(?: (?!mode\b)(\S+))?(?: mode (\w+))?")
_GREEN = re.compile(
    r"color green buffer-size low-limit (\d+) high-limit (\d+) discard-percentage (\d+)"
)
# The profile of a switch where none is named, and how a configuration shows it.
_DEFAULT_PROFILE = "dcb pfc"
# Local interface, expiry time in seconds, neighbour's interface, neighbour's name.
_NEIGHBOR = re.compile(r"\s*(\S+)\s+(\d+)\s+(\S+)\s+(\S+)\s*")


def running_sections(target: Target, outputs: Outputs) -> list[Section]:
    """The running configuration; ReadError without one, for nothing is known then."""
    return require_shown(parse_hashes(outputs.get(RUNNING, "")), target.device, RUNNING)


def read(target: Target, outputs: Outputs) -> DeviceQos:
    """What the switch does on every physical port that its configuration shows.

    All of it is configuration: neither the live PFC state nor receive buffers are
    read, which ``unread`` says. Raises ReadError without a running configuration
    or without a port in it.
    """
    sections = running_sections(target, outputs)
    unread = [
        "live PFC state: it is not read from VRP",
        "receive buffers: they are the switch's own, and not read",
        "PFC watchdog: deadlock detection is not read",
    ]
    ports = []
    for section in sections:
        name = section.text.removeprefix("interface ")
        if section.text.startswith("interface ") and is_physical(name):
            ports.append(_Port(name, section, sections, unread).qos())
    if not ports:
        raise ReadError(f"{target.device}: '{RUNNING}' shows no port of CloudEngine")
    version = outputs.get(VERSION, "")
    return DeviceQos(
        device=target.device,
        kind="switch",
        os="cloudengine",
        ports=tuple(ports),
        model=_fact(version, r"^HUAWEI (\S+) uptime", "model", unread),
        firmware=_fact(version, r"Version (\S+ \([^)]*\))", "firmware", unread),
        config_sha256=sha256(outputs[RUNNING]),
        saved=_saved(outputs, unread),
        neighbors=_neighbors(outputs, unread),
        unread=tuple(dict.fromkeys(unread)),
    )


def _fact(text: str, pattern: str, fact: str, unread: list[str]) -> str:
    match = re.search(pattern, text, re.MULTILINE | re.IGNORECASE)
    if match is None:
        unread.append(f"{fact}: '{VERSION}' does not show it")
    return match[1] if match else ""


def _saved(outputs: Outputs, unread: list[str]) -> bool | None:
    if STARTUP not in outputs:
        unread.append(f"startup configuration: '{STARTUP}' was not answered")
        return None
    return sha256(outputs[STARTUP]) == sha256(outputs[RUNNING])


def _neighbors(outputs: Outputs, unread: list[str]) -> tuple[Neighbor, ...] | None:
    if LLDP not in outputs:
        unread.append(f"neighbours: '{LLDP}' was not answered")
        return None
    matches = (_NEIGHBOR.fullmatch(line) for line in outputs[LLDP].splitlines())
    return tuple(Neighbor(m[1], m[4], m[3]) for m in matches if m and m[4] != "-")


class _Port:
    """One port's lines, and the objects that they name."""

    def __init__(
        self, name: str, section: Section, sections: Sequence[Section], unread: list[str]
    ) -> None:
        self._name = name
        self._lines = [child.text for child in section.children]
        self._sections = sections
        self._unread = unread

    def qos(self) -> PortQos:
        """What these lines make of the port."""
        frame = int(_first(self._lines, r"jumboframe enable (\d+)(?: .*)?") or DEFAULT_FRAME_BYTES)
        mtu = frame - HEADER_BYTES
        trust: Trust = "dscp" if "trust dscp" in self._lines else "pcp"
        return PortQos(
            name=self._name,
            mtu_bytes=mtu,
            trust=trust,
            dscp_to_priority=self._dscps(),
            priority_to_class=tuple(range(PRIORITY_COUNT)),
            class_mtu_bytes=(mtu,) * PRIORITY_COUNT,
            pfc_priorities=self._pfc(),
            link_pause=any(line.split()[0] == "flow-control" for line in self._lines),
            queues=self._queues(),
            ingress_buffers=(),
        )

    def _children(self, text: str) -> list[str]:
        found = find(self._sections, text)
        if found is None:
            self._unread.append(f"{text} of {self._name}: it is not shown")
            return []
        return [child.text for child in found.children]

    def _dscps(self) -> tuple[int, ...]:
        """The domain's map; what it does not name keeps its default."""
        table = [default_priority(dscp) for dscp in range(DSCP_COUNT)]
        domain = _first(self._lines, r"trust upstream (\S+)") or "default"
        shown = domain != "default" or find(self._sections, DOMAIN + domain)
        for line in self._children(DOMAIN + domain) if shown else []:
            if (found := inbound(line)) is not None:
                table[found[0]] = found[1]
        return tuple(table)

    def _pfc(self) -> tuple[int, ...]:
        enabled = next((m for x in self._lines if (m := _PFC_ENABLED.fullmatch(x))), None)
        if enabled is None:
            return ()
        if enabled[2] != "manual":
            self._unread.append(f"PFC of {self._name}: it is negotiated by DCBX")
        lines = self._children(PFC + enabled[1] if enabled[1] else _DEFAULT_PROFILE)
        found = {int(p) for x in lines for p in _first([x], r"priority ([\d ]+)").split()}
        return tuple(sorted(found))

    def _queues(self) -> tuple[Queue, ...]:
        """Queues are strict until ``qos drr``, ``wrr`` or ``wfq`` says otherwise."""
        shared = set(_listed(self._lines, r"qos (?:drr|wrr|wfq) ([\d to]+)"))
        shared -= set(_listed(self._lines, r"qos pq ([\d to]+)"))
        queues = []
        for number in range(PRIORITY_COUNT):
            weight = _first(self._lines, rf"qos queue {number} (?:drr|wrr|wfq) weight (\d+)")
            scheduler = Scheduler("ets", int(weight or 0)) if number in shared else None
            ecn = self._ecn(number)
            queues.append(Queue(number, scheduler or Scheduler("strict"), ecn))
        return tuple(queues)

    def _ecn(self, number: int) -> Ecn | None:
        name = _first(self._lines, rf"qos queue {number} wred (\S+)")
        if not name or f"qos queue {number} ecn" not in self._lines:
            return None
        lines = self._children(DROP + name)
        green = next((m for line in lines if (m := _GREEN.fullmatch(line))), None)
        if green is None:
            self._unread.append(f"ECN of {self._name} queue {number}: thresholds are not in bytes")
            return None
        return Ecn(int(green[1]), int(green[2]), int(green[3]))


def _first(lines: Iterable[str], pattern: str) -> str:
    return next((m[1] for line in lines if (m := re.fullmatch(pattern, line)) and m[1]), "")


def _listed(lines: Iterable[str], pattern: str) -> Iterator[int]:
    for line in lines:
        if match := re.fullmatch(pattern, line):
            yield from of_list(match[1])
