"""From a switch's outputs to what it does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from fabric.devices.base import Outputs, ReadError, Target, require_shown
from fabric.devices.comware.lines import (
    ALPHAS,
    CELL_BYTES,
    DSCP_TABLE,
    HEADER_BYTES,
    MAX_FRAME_BYTES,
    QUEUE_TABLE,
    QUEUES,
    default_of,
    imports,
    is_physical,
    of_list,
    port_number,
)
from fabric.devices.comware.shown import LivePfc, parse_neighbors, parse_pfc
from fabric.devices.hashes import parse_hashes, sha256
from fabric.devices.sections import Section, find
from fabric.qos import (
    DSCP_COUNT,
    PRIORITY_COUNT,
    DeviceQos,
    Ecn,
    IngressBuffer,
    PortQos,
    Queue,
    Scheduler,
    Trust,
)

RUNNING = "display current-configuration"
STARTUP = "display saved-configuration"
PFC = "display priority-flow-control interface"
VERSION = "display version"
LLDP = "display lldp neighbor-information list"

COMMANDS = (RUNNING, STARTUP, PFC, VERSION, LLDP)


def running_sections(target: Target, outputs: Outputs) -> list[Section]:
    """The running configuration; ReadError without one, for nothing is known then."""
    return require_shown(parse_hashes(outputs.get(RUNNING, "")), target.device, RUNNING)


def read(target: Target, outputs: Outputs) -> DeviceQos:
    """What the switch does on every physical port that its configuration shows.

    A port's PFC state is the live one where it is shown. Raises ReadError without a
    running configuration.
    """
    sections = running_sections(target, outputs)
    unread = ["PFC watchdog: deadlock detection is not read"]
    live = None
    if PFC in outputs:
        live = {port_number(name): pfc for name, pfc in parse_pfc(outputs[PFC]).items()}
    else:
        unread.append(f"live PFC state: '{PFC}' was not answered")
    ports = []
    for section in sections:
        name = section.text.removeprefix("interface ")
        if section.text.startswith("interface ") and is_physical(name):
            reader = _Port(name, section, sections, unread)
            ports.append(reader.qos(live))
    if not ports:
        raise ReadError(f"{target.device}: '{RUNNING}' shows no port of Comware")
    neighbors = None
    if LLDP in outputs:
        names = {port_number(port.name): port.name for port in ports}
        neighbors = parse_neighbors(outputs[LLDP], names)
    else:
        unread.append(f"neighbours: '{LLDP}' was not answered")
    version = outputs.get(VERSION, "")
    return DeviceQos(
        device=target.device,
        kind="switch",
        os="comware",
        ports=tuple(ports),
        model=_fact(version, r"^H3C (\S+) uptime", "model", unread),
        firmware=_fact(version, r"Version (\S+, \w+ \S+)", "firmware", unread),
        config_sha256=sha256(outputs[RUNNING]),
        saved=_saved(outputs, unread),
        neighbors=neighbors,
        unread=tuple(dict.fromkeys(unread)),
    )


def _fact(text: str, pattern: str, fact: str, unread: list[str]) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        unread.append(f"{fact}: '{VERSION}' does not show it")
    return match[1] if match else ""


def _saved(outputs: Outputs, unread: list[str]) -> bool | None:
    if STARTUP not in outputs:
        unread.append(f"startup configuration: '{STARTUP}' was not answered")
        return None
    return sha256(outputs[STARTUP]) == sha256(outputs[RUNNING])


class _Port:
    """One port's lines, and the tables of the switch."""

    def __init__(
        self, name: str, section: Section, sections: Sequence[Section], unread: list[str]
    ) -> None:
        self._name = name
        self._lines = [child.text for child in section.children]
        self._sections = sections
        self._unread = unread

    def qos(self, live: dict[str, LivePfc] | None) -> PortQos:
        """What these lines make of the port."""
        frame = _first(self._lines, r"jumboframe enable (\d+)")
        if not frame:
            self._unread.append(f"MTU of {self._name}: it has the model's default")
        mtu = int(frame or MAX_FRAME_BYTES) - HEADER_BYTES
        pfc = self._pfc(live)
        return PortQos(
            name=self._name,
            mtu_bytes=mtu,
            trust=self._trust(),
            dscp_to_priority=self._table(DSCP_TABLE, DSCP_COUNT),
            priority_to_class=self._table(QUEUE_TABLE, PRIORITY_COUNT),
            class_mtu_bytes=(mtu,) * PRIORITY_COUNT,
            pfc_priorities=pfc,
            link_pause=any(line.split()[0] == "flow-control" for line in self._lines),
            queues=self._queues(),
            ingress_buffers=tuple(self._buffers(pfc)),
        )

    def _trust(self) -> Trust:
        """A port that trusts nothing uses its own priority."""
        trusted = _first(self._lines, r"qos trust (\w+).*")
        return "dscp" if trusted == "dscp" else "pcp" if trusted == "dot1p" else "none"

    def _table(self, name: str, count: int) -> tuple[int, ...]:
        results = [default_of(name, value) for value in range(count)]
        section = find(self._sections, name)
        for child in section.children if section else ():
            for value, result in imports(child.text):
                if value < count:
                    results[value] = result
        return tuple(results)

    def _pfc(self, live: dict[str, LivePfc] | None) -> tuple[int, ...]:
        mode = _first(self._lines, r"priority-flow-control (enable|auto)")
        no_drop = _first(self._lines, r"priority-flow-control no-drop dot1p (.+)")
        configured = tuple(sorted(set(of_list(no_drop)))) if mode and no_drop else ()
        if live is None:
            return configured
        shown = live.get(port_number(self._name))
        if shown is None:
            self._unread.append(f"live PFC state of {self._name}: not in '{PFC}'")
            return configured
        if not shown.operates:
            return ()
        return configured if shown.priorities is None else tuple(sorted(shown.priorities))

    def _buffers(self, priorities: Iterable[int]) -> Iterator[IngressBuffer]:
        for priority in priorities:
            head = rf"priority-flow-control dot1p {priority}"
            headroom = _first(self._lines, rf"{head} headroom (\d+)")
            offset = _first(self._lines, rf"{head} ingress-threshold-offset (\d+)")
            static = _first(self._lines, rf"{head} ingress-buffer static (\d+)")
            dynamic = _first(self._lines, rf"{head} ingress-buffer dynamic (\d+)")
            if not headroom or not offset or not (static or int(dynamic or -1) in ALPHAS):
                self._unread.append(f"buffer of {self._name} priority {priority}: not configured")
                continue
            room, distance = int(headroom) * CELL_BYTES, int(offset) * CELL_BYTES
            if static:
                xoff = int(static) * CELL_BYTES
                yield IngressBuffer(priority, xoff + room, xoff, max(xoff - distance, 0))
            else:
                alpha = ALPHAS[int(dynamic)]
                yield IngressBuffer(priority, room + distance, distance, 0, alpha)

    def _queues(self) -> tuple[Queue, ...]:
        """Queues of ``qos wfq``; without it the model's default schedules them."""
        if not any(re.fullmatch(r"qos wfq (?:byte-count|weight)", line) for line in self._lines):
            self._unread.append(f"scheduling of {self._name}: it is not by 'qos wfq'")
        queues = []
        for number, name in enumerate(QUEUES):
            share = _first(self._lines, rf"qos wfq {name} group \d (?:byte-count|weight) (\d+)")
            scheduler = Scheduler("ets", int(share or 0))
            if f"qos wfq {name} group sp" in self._lines:
                scheduler = Scheduler("strict")
            queues.append(Queue(number, scheduler, self._ecn(number)))
        return tuple(queues)

    def _ecn(self, number: int) -> Ecn | None:
        """Thresholds of green packets: without a meter all are green."""
        applied = _first(self._lines, r"qos wred apply (\S+)")
        if applied:
            self._unread.append(f"ECN of {self._name}: it is in WRED table {applied}")
        head = f"qos wred queue {number}"
        if f"{head} ecn" not in self._lines:
            return None
        limits = rf"{head} drop-level 0 low-limit (\d+) high-limit (\d+) discard-probability (\d+)"
        match = next((m for line in self._lines if (m := re.fullmatch(limits, line))), None)
        if match is None:
            self._unread.append(f"ECN of {self._name} queue {number}: thresholds are not shown")
            return None
        return Ecn(int(match[1]) * CELL_BYTES, int(match[2]) * CELL_BYTES, int(match[3]))


def _first(lines: Iterable[str], pattern: str) -> str:
    return next((m[1] for line in lines if (m := re.fullmatch(pattern, line))), "")
