"""From a switch's outputs to what it does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from fabric.devices.base import Outputs, ReadError, Target, require_shown
from fabric.devices.os10.lines import (
    DEFAULT_MTU,
    KB,
    MTU_HEADER_BYTES,
    NETWORK_CLASS,
    NETWORK_POLICY,
    QUEUE_CLASS,
    QUEUE_MAP,
    QUEUE_POLICY,
    TRUST,
    USE_NETWORK,
    USE_QUEUE,
    USE_TRUST,
    WRED,
    interface_name,
    is_physical,
    numbers,
)
from fabric.devices.sections import Section, find, parse, sha256
from fabric.qos import (
    DSCP_COUNT,
    PRIORITY_COUNT,
    DeviceQos,
    Ecn,
    IngressBuffer,
    Neighbor,
    PortQos,
    Queue,
    Scheduler,
    Trust,
)

RUNNING = "show running-configuration"
STARTUP = "show startup-configuration"
VERSION = "show version"
LLDP = "show lldp neighbors"

COMMANDS = (RUNNING, STARTUP, VERSION, LLDP)

_PAUSE = re.compile(r"pause buffer-size (\d+) pause-threshold (\d+) resume-threshold (\d+)(?: .*)?")
_GREEN = re.compile(
    r"random-detect color green minimum-threshold (\d+) maximum-threshold (\d+)"
    r"(?: drop-probability (\d+))?"
)
_NEIGHBOR = re.compile(r"\s*((?:ethernet|eth)\s*\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s*", re.IGNORECASE)
_FULL_PERCENT = 100


def running_sections(target: Target, outputs: Outputs) -> list[Section]:
    """The running configuration; ReadError without one, for nothing is known then."""
    return require_shown(parse(outputs.get(RUNNING, "")), target.device, RUNNING)


def read(target: Target, outputs: Outputs) -> DeviceQos:
    """What the switch does on every physical port that its configuration shows.

    All of it is configuration: no sample of the live PFC state could be found, which
    ``unread`` says. Raises ReadError without a running configuration
    or without a port in it.
    """
    sections = running_sections(target, outputs)
    unread = ["live PFC state: it is not read from OS10"]
    version = outputs.get(VERSION, "")
    ports = []
    for section in sections:
        name = interface_name(section.text.removeprefix("interface "))
        if section.text.startswith("interface ") and is_physical(name):
            ports.append(_Port(name, section, sections, unread).qos())
    if not ports:
        raise ReadError(f"{target.device}: '{RUNNING}' shows no port of OS10")
    return DeviceQos(
        device=target.device,
        kind="switch",
        os="os10",
        ports=tuple(ports),
        model=_fact(version, "System Type", "model", unread),
        firmware=_fact(version, "OS Version", "firmware", unread),
        config_sha256=sha256(outputs[RUNNING]),
        saved=_saved(outputs, unread),
        neighbors=_neighbors(outputs, unread),
        unread=tuple(dict.fromkeys(unread)),
    )


def _fact(text: str, label: str, fact: str, unread: list[str]) -> str:
    match = re.search(rf"^\s*{label}\s*:\s*(\S+)", text, re.MULTILINE)
    if match is None:
        unread.append(f"{fact}: '{VERSION}' does not show it")
    return match[1] if match else ""


def _saved(outputs: Outputs, unread: list[str]) -> bool | None:
    if STARTUP not in outputs:
        unread.append(f"startup configuration: '{STARTUP}' was not answered")
        return None
    return sha256(outputs[STARTUP]) == sha256(outputs[RUNNING])


def _neighbors(outputs: Outputs, unread: list[str]) -> tuple[Neighbor, ...] | None:
    """Columns: local port, remote host, remote port, remote chassis; names that are not sent miss.

    Source: intel/mfd-switchmanagement, ``get_lldp_neighbors``.
    """
    if LLDP not in outputs:
        unread.append(f"neighbours: '{LLDP}' was not answered")
        return None
    matches = (_NEIGHBOR.fullmatch(line) for line in outputs[LLDP].splitlines())
    return tuple(
        Neighbor(interface_name(m[1]), m[2], interface_name(m[3]))
        for m in matches
        if m and m[2] not in ("Not", "-")
    )


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
        mtu = int(_first(self._lines, r"mtu (\d+)") or DEFAULT_MTU) - MTU_HEADER_BYTES
        buffers, pfc = self._lossless()
        trust, dscps = self._classification()
        return PortQos(
            name=self._name,
            mtu_bytes=mtu,
            trust=trust,
            dscp_to_priority=dscps,
            priority_to_class=self._classes(),
            class_mtu_bytes=(mtu,) * PRIORITY_COUNT,
            pfc_priorities=pfc,
            link_pause=any(re.fullmatch(r"flowcontrol \w+ on", line) for line in self._lines),
            queues=self._queues(),
            ingress_buffers=buffers,
        )

    def _object(self, use: str, head: str) -> Section | None:
        """The object that a line of the port names, or one of ``system qos`` for all."""
        system = find(self._sections, "system qos")
        inherited = [child.text for child in system.children] if system else []
        for line in (*self._lines, *inherited):
            if line.startswith(use):
                name = line.removeprefix(use)
                found = find(self._sections, head + name)
                if found is None:
                    self._unread.append(f"{head}{name} of {self._name}: it is not shown")
                return found
        return None

    def _classification(self) -> tuple[Trust, tuple[int, ...]]:
        """A port without a map for DSCPs trusts nothing, or a map for 802.1p."""
        table = [0] * DSCP_COUNT
        if not any(line.startswith("trust-map ") for line in self._lines):
            return "none", tuple(table)
        found = self._object(USE_TRUST, TRUST)
        if found is None:
            return "dscp" if _first(self._lines, f"({USE_TRUST}).*") else "pcp", tuple(table)
        for child in found.children:
            if match := re.fullmatch(r"qos-group (\d) dscp ([\d ,-]+)", child.text):
                for dscp in numbers(match[2]):
                    table[dscp] = int(match[1])
        return "dscp", tuple(table)

    def _classes(self) -> tuple[int, ...]:
        table = list(range(PRIORITY_COUNT))
        found = self._object(QUEUE_MAP, QUEUE_MAP)
        for child in found.children if found else ():
            match = re.fullmatch(r"queue (\d) qos-group ([\d ,-]+?)(?: type (\w+))?", child.text)
            if match and match[3] in (None, "ucast"):
                for group in numbers(match[2]):
                    table[group] = int(match[1])
        return tuple(table)

    def _lossless(self) -> tuple[tuple[IngressBuffer, ...], tuple[int, ...]]:
        """Buffers and priorities of a network policy; PFC also needs to be on."""
        if "priority-flow-control mode on" not in self._lines:
            return (), ()
        policy = self._object(USE_NETWORK, NETWORK_POLICY)
        buffers: list[IngressBuffer] = []
        paused: set[int] = set()
        for child in policy.children if policy else ():
            lines = [line.text for line in child.children]
            if not any(line == "pause" or line.startswith("pause ") for line in lines):
                continue
            priorities = list(_numbers_of(lines, r"pfc-cos ([\d ,-]+)"))
            priorities = priorities or list(self._groups(child.text, NETWORK_CLASS, "qos-group"))
            paused.update(priorities)
            sizes = next((m for line in lines if (m := _PAUSE.fullmatch(line))), None)
            if sizes is None:
                self._unread.append(f"thresholds of {self._name}: {child.text} has the default")
                continue
            size, xoff, xon = (int(sizes[index]) * KB for index in (1, 2, 3))
            buffers += (IngressBuffer(priority, size, xoff, xon) for priority in priorities)
        buffers.sort(key=lambda buffer: buffer.priority)
        return tuple(buffers), tuple(sorted(paused))

    def _groups(self, text: str, head: str, what: str) -> Iterator[int]:
        """Numbers that the class map of a ``class NAME`` line matches."""
        found = find(self._sections, head + text.removeprefix("class "))
        lines = [child.text for child in found.children] if found else []
        yield from _numbers_of(lines, rf"match {what} ([\d ,-]+)")

    def _queues(self) -> tuple[Queue, ...]:
        queues = {n: Queue(n, Scheduler("ets", 0)) for n in range(PRIORITY_COUNT)}
        policy = self._object(USE_QUEUE, QUEUE_POLICY)
        for child in policy.children if policy else ():
            lines = [line.text for line in child.children]
            scheduler = Scheduler("ets", int(_first(lines, r"bandwidth percent (\d+)") or 0))
            if any(line == "priority" or line.startswith("priority ") for line in lines):
                scheduler = Scheduler("strict")
            for number in self._groups(child.text, QUEUE_CLASS, "queue"):
                queues[number] = Queue(number, scheduler, self._ecn(lines))
        return tuple(queues.values())

    def _ecn(self, lines: Iterable[str]) -> Ecn | None:
        name = _first(lines, r"random-detect (\S+)")
        profile = find(self._sections, f"{WRED}{name}") if name else None
        texts = [child.text for child in profile.children] if profile else []
        green = next((m for text in texts if (m := _GREEN.fullmatch(text))), None)
        if green is None or "random-detect ecn" not in texts:
            return None
        return Ecn(int(green[1]) * KB, int(green[2]) * KB, int(green[3] or _FULL_PERCENT))


def _first(lines: Iterable[str], pattern: str) -> str:
    return next((m[1] for line in lines if (m := re.fullmatch(pattern, line))), "")


def _numbers_of(lines: Iterable[str], pattern: str) -> Iterator[int]:
    for line in lines:
        if match := re.fullmatch(pattern, line):
            yield from numbers(match[1])
