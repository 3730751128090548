"""From a switch's outputs to what it does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fabric.devices.base import CUT_OFF, Outputs, ReadError, Target, require_shown
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
from fabric.devices.portlines import PortLines, first, is_saved, lost_ports, ports_of, shown
from fabric.devices.sections import Section, find, number, parse, sha256
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
from fabric.unread import Fact

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
    ``unread`` says. A port that has a neighbour and is not in the configuration tells that
    this was cut off. Raises ReadError without a running configuration
    or without a port in it.
    """
    sections = running_sections(target, outputs)
    unread = ["live PFC state: it is not read from OS10"]
    found = dict(ports_of(sections, interface_name, is_physical))
    if not found:
        raise ReadError(f"{target.device}: '{RUNNING}' shows no port of OS10")
    neighbors = _neighbors(outputs, unread)
    seen = {neighbor.port for neighbor in neighbors or () if is_physical(neighbor.port)}
    lost = lost_ports(sections, found, seen)
    if lost:
        missing = ", ".join(sorted(seen - set(found)))
        unread.append(f"{CUT_OFF}: '{LLDP}' shows {missing}, and '{RUNNING}' does not")
    ports = [
        _Port(name, section, sections, unread).qos()
        for name, section in found.items()
        if name not in lost
    ]
    return DeviceQos(
        device=target.device,
        kind="switch",
        os="os10",
        ports=tuple(ports),
        model=shown(outputs, VERSION, r"^\s*System Type\s*:\s*(\S+)", "model", unread),
        firmware=shown(outputs, VERSION, r"^\s*OS Version\s*:\s*(\S+)", "firmware", unread),
        config_sha256=sha256(outputs[RUNNING]),
        saved=None if lost else is_saved(outputs, RUNNING, STARTUP, sha256, unread),
        neighbors=neighbors,
        unread=tuple(dict.fromkeys(unread)),
    )


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


class _Port(PortLines):
    """One port's lines, and the objects that they name."""

    def qos(self) -> PortQos:
        """What these lines make of the port."""
        held = self.number("mtu")
        mtu = (DEFAULT_MTU if held is None else held) - MTU_HEADER_BYTES
        buffers, pfc = self._lossless()
        trust, dscps = self._classification()
        return PortQos(
            name=self.name,
            mtu_bytes=mtu,
            trust=trust,
            dscp_to_priority=dscps,
            priority_to_class=self._classes(),
            class_mtu_bytes=(mtu,) * PRIORITY_COUNT,
            pfc_priorities=pfc,
            link_pause=any(re.fullmatch(r"flowcontrol \w+ on", line) for line in self.lines),
            queues=self._queues(),
            ingress_buffers=buffers,
        )

    def _used(self, use: str, head: str, fact: Fact, of: str = "") -> list[Section] | None:
        """Below the object that a line of the port names, or one of ``system qos`` for all."""
        system = find(self.sections, "system qos")
        for line in (*self.lines, *(system.lines() if system else ())):
            if line.startswith(use):
                found = find(self.sections, head + line.removeprefix(use))
                if found is None:
                    self.lack(fact, f"{head}{line.removeprefix(use)} is not shown", of)
                return found.children if found else None
        return None

    def _classification(self) -> tuple[Trust, tuple[int, ...]]:
        """A port without a map for DSCPs trusts nothing, or a map for 802.1p."""
        table = [0] * DSCP_COUNT
        system = find(self.sections, "system qos")
        every = [*self.lines, *(system.lines() if system else ())]
        trusted = first(every, r"(trust-map \w+ ).*")
        if not trusted:
            return "none", tuple(table)
        if trusted != USE_TRUST:
            return "pcp", tuple(table)
        found = self._used(USE_TRUST, TRUST, Fact.DSCPS)
        if found is None:
            return "dscp", tuple(table)
        for child in found:
            match = re.fullmatch(r"qos-group (\d) dscp ([\d ,-]+)", child.text)
            if match is None:
                self.lack(Fact.DSCPS, child.text)
            for dscp in numbers(match[2]) if match else ():
                table[dscp] = int(match[1]) if match else 0
        return "dscp", tuple(table)

    def _classes(self) -> tuple[int, ...]:
        table = list(range(PRIORITY_COUNT))
        for child in self._used(QUEUE_MAP, QUEUE_MAP, Fact.CLASSES) or ():
            match = re.fullmatch(r"queue (\d) qos-group ([\d ,-]+?)(?: type (\w+))?", child.text)
            if match and match[3] in (None, "ucast"):
                for group in numbers(match[2]):
                    table[group] = int(match[1])
        return tuple(table)

    def _lossless(self) -> tuple[tuple[IngressBuffer, ...], tuple[int, ...]]:
        """Buffers and priorities of a network policy; PFC also needs to be on."""
        if "priority-flow-control mode on" not in self.lines:
            return (), ()
        buffers: list[IngressBuffer] = []
        paused: set[int] = set()
        for child in self._used(USE_NETWORK, NETWORK_POLICY, Fact.PFC, "all priorities") or ():
            lines = child.lines()
            if not any(line == "pause" or line.startswith("pause ") for line in lines):
                continue
            priorities = list(_numbers_of(lines, r"pfc-cos ([\d ,-]+)"))
            priorities = priorities or list(self._groups(child.text, NETWORK_CLASS, "qos-group"))
            paused.update(priorities)
            sizes = next((m for line in lines if (m := _PAUSE.fullmatch(line))), None)
            if sizes is None:
                self.lack(Fact.BUFFER, f"{child.text} has the default", "of all priorities")
                continue
            size, xoff, xon = (int(sizes[index]) * KB for index in (1, 2, 3))
            buffers += (IngressBuffer(priority, size, xoff, xon) for priority in priorities)
        buffers.sort(key=lambda buffer: buffer.priority)
        return tuple(buffers), tuple(sorted(paused))

    def _groups(self, text: str, head: str, what: str) -> Iterator[int]:
        """Numbers that the class map of a ``class NAME`` line matches."""
        found = find(self.sections, head + text.removeprefix("class "))
        yield from _numbers_of(found.lines() if found else (), rf"match {what} ([\d ,-]+)")

    def _queues(self) -> tuple[Queue, ...]:
        queues = {n: Queue(n, Scheduler("ets", 0)) for n in range(PRIORITY_COUNT)}
        for child in self._used(USE_QUEUE, QUEUE_POLICY, Fact.SCHEDULING, "all queues") or ():
            lines = child.lines()
            where = f"{child.text} of {self.name}"
            scheduler = Scheduler("ets", number(lines, "bandwidth percent", where) or 0)
            if any(line == "priority" or line.startswith("priority ") for line in lines):
                scheduler = Scheduler("strict")
            for queue in self._groups(child.text, QUEUE_CLASS, "queue"):
                if shaper := first(lines, r"(shape .*)"):
                    self.lack(Fact.RATE, shaper, f"queue {queue}")
                queues[queue] = Queue(queue, scheduler, self._ecn(queue, lines))
        return tuple(queues.values())

    def _ecn(self, queue: int, lines: Iterable[str]) -> Ecn | None:
        name = first(lines, r"random-detect (\S+)")
        if not name:
            return None
        texts = self.object_lines(f"{WRED}{name}", Fact.ECN, f"queue {queue}")
        if "random-detect ecn" not in texts:
            return None
        green = next((m for text in texts if (m := _GREEN.fullmatch(text))), None)
        if green is None:
            self.lack(Fact.ECN, f"{WRED}{name} shows no thresholds of green", f"queue {queue}")
            return None
        return Ecn(int(green[1]) * KB, int(green[2]) * KB, int(green[3] or _FULL_PERCENT))


def _numbers_of(lines: Iterable[str], pattern: str) -> Iterator[int]:
    for line in lines:
        if match := re.fullmatch(pattern, line):
            yield from numbers(match[1])
