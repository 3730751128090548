"""From a switch's outputs to what it does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from fabric.devices import hashes
from fabric.devices.base import Outputs, ReadError, Target
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
from fabric.devices.portlines import PortLines, first, ports_of, shown
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
from fabric.unread import Fact

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
    """The running configuration; ReadError without a whole one."""
    return hashes.running_sections(target, outputs, RUNNING)


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
    found = ports_of(sections, str, is_physical)
    ports = [_Port(name, section, sections, unread).qos() for name, section in found]
    if not ports:
        raise ReadError(f"{target.device}: '{RUNNING}' shows no port of CloudEngine")
    return DeviceQos(
        device=target.device,
        kind="switch",
        os="cloudengine",
        ports=tuple(ports),
        model=shown(outputs, VERSION, r"^HUAWEI (\S+) uptime", "model", unread, fold=True),
        firmware=shown(outputs, VERSION, r"Version (\S+ \([^)]*\))", "firmware", unread, fold=True),
        config_sha256=hashes.sha256(outputs[RUNNING]),
        saved=hashes.is_saved(outputs, RUNNING, STARTUP, unread),
        neighbors=_neighbors(outputs, unread),
        unread=tuple(dict.fromkeys(unread)),
    )


def _neighbors(outputs: Outputs, unread: list[str]) -> tuple[Neighbor, ...] | None:
    if LLDP not in outputs:
        unread.append(f"neighbours: '{LLDP}' was not answered")
        return None
    matches = (_NEIGHBOR.fullmatch(line) for line in outputs[LLDP].splitlines())
    return tuple(Neighbor(m[1], m[4], m[3]) for m in matches if m and m[4] != "-")


class _Port(PortLines):
    """One port's lines, and the objects that they name."""

    def qos(self) -> PortQos:
        """What these lines make of the port."""
        frame = self.number("jumboframe enable")
        mtu = (DEFAULT_FRAME_BYTES if frame is None else frame) - HEADER_BYTES
        trust: Trust = "dscp" if "trust dscp" in self.lines else "pcp"
        return PortQos(
            name=self.name,
            mtu_bytes=mtu,
            trust=trust,
            dscp_to_priority=self._dscps(),
            priority_to_class=tuple(range(PRIORITY_COUNT)),
            class_mtu_bytes=(mtu,) * PRIORITY_COUNT,
            pfc_priorities=self._pfc(),
            link_pause=any(line.split()[0] == "flow-control" for line in self.lines),
            queues=self._queues(),
            ingress_buffers=(),
        )

    def _dscps(self) -> tuple[int, ...]:
        """The domain's map; what it does not name keeps its default."""
        table = [default_priority(dscp) for dscp in range(DSCP_COUNT)]
        domain = self.first(r"trust upstream (\S+)") or "default"
        held = domain != "default" or find(self.sections, DOMAIN + domain)
        for line in self.object_lines(DOMAIN + domain, Fact.DSCPS) if held else []:
            if (found := inbound(line)) is not None:
                table[found[0]] = found[1]
            elif line.startswith("ip-dscp-inbound "):
                self.lack(Fact.DSCPS, f"{DOMAIN}{domain}: {line}")
        return tuple(table)

    def _pfc(self) -> tuple[int, ...]:
        enabled = next((m for x in self.lines if (m := _PFC_ENABLED.fullmatch(x))), None)
        if enabled is None:
            return ()
        if enabled[2] != "manual":
            self.lack(Fact.PFC, "it is negotiated by DCBX", "all priorities")
        profile = PFC + enabled[1] if enabled[1] else _DEFAULT_PROFILE
        lines = self.object_lines(profile, Fact.PFC, "all priorities")
        found = {int(p) for x in lines for p in first([x], r"priority ([\d ]+)").split()}
        return tuple(sorted(found))

    def _queues(self) -> tuple[Queue, ...]:
        """Queues are strict until ``qos drr``, ``wrr`` or ``wfq`` says otherwise."""
        shared = set(_listed(self.lines, r"qos (?:drr|wrr|wfq) ([\d to]+)"))
        shared -= set(_listed(self.lines, r"qos pq ([\d to]+)"))
        for limit in (x for x in self.lines if re.match(r"qos (?:lr|queue \d shaping) ", x)):
            of = first([limit], r"qos (queue \d) .*") or "the port"
            self.lack(Fact.RATE, limit, of)
        queues = []
        for number in range(PRIORITY_COUNT):
            weight = self.first(rf"qos queue {number} (?:drr|wrr|wfq) weight (\d+)")
            scheduler = Scheduler("ets", int(weight or 0)) if number in shared else None
            ecn = self._ecn(number)
            queues.append(Queue(number, scheduler or Scheduler("strict"), ecn))
        return tuple(queues)

    def _ecn(self, number: int) -> Ecn | None:
        where = f"queue {number}"
        if number in _ai_queues(self.sections):
            # The profile's are in force only while AI ECN is not.
            self.lack(Fact.ECN, "AI ECN works its thresholds out", where)
        name = self.first(rf"qos {where} wred (\S+)")
        if not name or f"qos {where} ecn" not in self.lines:
            return None
        lines = self.object_lines(DROP + name, Fact.ECN, where)
        green = next((m for line in lines if (m := _GREEN.fullmatch(line))), None)
        if green is None:
            self.lack(Fact.ECN, "thresholds are not in bytes", where)
            return None
        return Ecn(int(green[1]), int(green[2]), int(green[3]))


def _ai_queues(sections: Sequence[Section]) -> set[int]:
    """Queues whose thresholds AI ECN sets: Huawei, "Configuring AI ECN", ``assign queue``."""
    service = find(sections, "ai-service")
    lines = (
        [line for line in service.texts() if line.startswith("assign queue ")] if service else ()
    )
    return {number for line in lines for number in of_list(line.removeprefix("assign queue "))}


def _listed(lines: Iterable[str], pattern: str) -> Iterator[int]:
    for line in lines:
        if match := re.fullmatch(pattern, line):
            yield from of_list(match[1])
