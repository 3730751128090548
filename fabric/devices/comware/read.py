"""From a switch's outputs to what it does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fabric.devices import hashes
from fabric.devices.base import Outputs, ReadError, Target
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
from fabric.devices.portlines import PortLines, first, ports_of, shown
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
from fabric.unread import Fact

RUNNING = "display current-configuration"
STARTUP = "display saved-configuration"
PFC = "display priority-flow-control interface"
VERSION = "display version"
LLDP = "display lldp neighbor-information list"

_WRED_TABLE = "qos wred queue table "
_PROBABILITY = r"discard-probability (\d+)"
_PFC_MODE = r"priority-flow-control (enable|auto)"

COMMANDS = (RUNNING, STARTUP, PFC, VERSION, LLDP)


def running_sections(target: Target, outputs: Outputs) -> list[Section]:
    """The running configuration; ReadError without a whole one."""
    return hashes.running_sections(target, outputs, RUNNING)


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
    found = ports_of(sections, str, is_physical)
    ports = [_Port(name, section, sections, unread).qos(live) for name, section in found]
    if not ports:
        raise ReadError(f"{target.device}: '{RUNNING}' shows no port of Comware")
    neighbors = None
    if LLDP in outputs:
        names = {port_number(port.name): port.name for port in ports}
        neighbors = parse_neighbors(outputs[LLDP], names)
    else:
        unread.append(f"neighbours: '{LLDP}' was not answered")
    return DeviceQos(
        device=target.device,
        kind="switch",
        os="comware",
        ports=tuple(ports),
        model=shown(outputs, VERSION, r"^H3C (\S+) uptime", "model", unread),
        firmware=shown(outputs, VERSION, r"Version (\S+, \w+ \S+)", "firmware", unread),
        config_sha256=hashes.sha256(outputs[RUNNING]),
        saved=hashes.is_saved(outputs, RUNNING, STARTUP, unread),
        neighbors=neighbors,
        unread=tuple(dict.fromkeys(unread)),
    )


class _Port(PortLines):
    """One port's lines, and the tables of the switch."""

    def qos(self, live: dict[str, LivePfc] | None) -> PortQos:
        """What these lines make of the port."""
        frame = self.number("jumboframe enable")
        if frame is None:
            self.lack(Fact.MTU, "it has the model's default")
        mtu = (MAX_FRAME_BYTES if frame is None else frame) - HEADER_BYTES
        pfc = self._pfc(live)
        return PortQos(
            name=self.name,
            mtu_bytes=mtu,
            trust=self._trust(),
            dscp_to_priority=self._table(DSCP_TABLE, DSCP_COUNT, Fact.DSCPS),
            priority_to_class=self._table(QUEUE_TABLE, PRIORITY_COUNT, Fact.CLASSES),
            class_mtu_bytes=(mtu,) * PRIORITY_COUNT,
            pfc_priorities=pfc,
            link_pause=any(line.split()[0] == "flow-control" for line in self.lines),
            queues=self._queues(),
            ingress_buffers=tuple(self._buffers(pfc)),
        )

    def _trust(self) -> Trust:
        """A port that trusts nothing uses its own priority."""
        trusted = self.first(r"qos trust (\w+).*")
        return "dscp" if trusted == "dscp" else "pcp" if trusted == "dot1p" else "none"

    def _table(self, name: str, count: int, fact: Fact) -> tuple[int, ...]:
        results = [default_of(name, value) for value in range(count)]
        section = find(self.sections, name)
        for line in section.lines() if section else ():
            entries = [(value, result) for value, result in imports(line) if value < count]
            if not entries:
                self.lack(fact, f"{name}: {line}")
            for value, result in entries:
                results[value] = result
        return tuple(results)

    def _pfc(self, live: dict[str, LivePfc] | None) -> tuple[int, ...]:
        # What is said in system view holds for every port that says nothing of it.
        everywhere = [section.text for section in self.sections]
        mode, no_drop = (
            self.first(pattern) or first(everywhere, pattern)
            for pattern in (_PFC_MODE, r"priority-flow-control no-drop dot1p (.+)")
        )
        configured = tuple(sorted(set(of_list(no_drop)))) if mode and no_drop else ()
        if live is None:
            return configured
        seen = live.get(port_number(self.name))
        if seen is None:
            self.unread.append(f"live PFC state of {self.name}: not in '{PFC}'")
            return configured
        if not seen.operates:
            return ()
        return configured if seen.priorities is None else tuple(sorted(seen.priorities))

    def _buffers(self, priorities: Iterable[int]) -> Iterator[IngressBuffer]:
        for priority in priorities:
            head = f"priority-flow-control dot1p {priority}"
            headroom = self.number(f"{head} headroom")
            offset = self.number(f"{head} ingress-threshold-offset")
            static = self.number(f"{head} ingress-buffer static")
            dynamic = self.number(f"{head} ingress-buffer dynamic")
            sized = headroom is not None and offset is not None
            if not sized or (static is None and dynamic not in ALPHAS):
                self.lack(Fact.BUFFER, "not configured", f"of priority {priority}")
                continue
            room, distance = (headroom or 0) * CELL_BYTES, (offset or 0) * CELL_BYTES
            if static is not None:
                xoff = static * CELL_BYTES
                yield IngressBuffer(priority, xoff + room, xoff, max(xoff - distance, 0))
            elif dynamic is not None:
                yield IngressBuffer(priority, room + distance, distance, 0, ALPHAS[dynamic])

    def _queues(self) -> tuple[Queue, ...]:
        """Queues of ``qos wfq``; without it the model's default schedules them.

        ``qos gts`` shapes one, ``qos lr`` the port; rates are in kbit/s.
        """
        if limit := self.first(r"(qos (?:lr outbound|gts any) .*)"):
            self.lack(Fact.RATE, limit, "the port")
        if not self.first(r"(qos wfq (?:byte-count|weight))"):
            self.lack(Fact.SCHEDULING, "it is not by 'qos wfq'", "all queues")
        queues = []
        for number, name in enumerate(QUEUES):
            share = self.first(rf"qos wfq {name} group \d (?:byte-count|weight) (\d+)")
            scheduler = Scheduler("ets", int(share or 0))
            if f"qos wfq {name} group sp" in self.lines:
                scheduler = Scheduler("strict")
            rate_bps = int(self.first(rf"qos gts queue {number} cir (\d+)(?: .*)?") or 0) * 1000
            queues.append(Queue(number, scheduler, self._ecn(number), rate_bps))
        return tuple(queues)

    def _ecn(self, number: int) -> Ecn | None:
        """Thresholds of green packets: without a meter all are green.

        They are the port's own, or those of the WRED table that it applies. Source: HPE
        FlexFabric 11900, ACL and QoS Configuration Guide, "Configuring and applying a WRED
        table"; ECN is off in a table that does not say otherwise.
        """
        where = f"queue {number}"
        lines, head = self.lines, f"qos wred {where}"
        if applied := self.first(r"qos wred apply (\S+)"):
            table = find(self.sections, f"{_WRED_TABLE}{applied}")
            if table is None:
                self.lack(Fact.ECN, f"WRED table {applied} is not shown", where)
                return None
            lines, head = table.lines(), where
        if f"{head} ecn" not in lines:
            return None
        limits = rf"{head}(?: drop-level 0)? low-limit (\d+) high-limit (\d+) {_PROBABILITY}"
        match = next((m for line in lines if (m := re.fullmatch(limits, line))), None)
        if match is None:
            self.lack(Fact.ECN, "thresholds are not shown", where)
            return None
        return Ecn(int(match[1]) * CELL_BYTES, int(match[2]) * CELL_BYTES, int(match[3]))
