"""Counters of a switch in the schema of ``fabric.counters``, all from JSON.

Keys: ``show interfaces``, public captures; ``show interfaces counters queue
detail``, ``show priority-flow-control counters`` and ``show qos interfaces ecn
counters queue``, aristanetworks/anta (tests of interfaces); ``show
priority-flow-control counters watchdog``, a public health check that says an
interface without any event is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fabric.counters import CounterSnapshot
from fabric.devices.base import Outputs, Target
from fabric.devices.booted import with_uptime
from fabric.devices.counted import Key, snapshot
from fabric.devices.eos.lines import interface_name, is_physical
from fabric.devices.eos.read import INTERFACES, VERSION
from fabric.devices.eos.shown import count, members, parse_json
from fabric.qos import PRIORITY_COUNT

QUEUES = "show interfaces counters queue detail | json"
PFC = "show priority-flow-control counters | json"
ECN = "show qos interfaces ecn counters queue | json"
WATCHDOG = "show priority-flow-control counters watchdog | json"

COMMANDS = (INTERFACES, QUEUES, PFC, ECN, WATCHDOG, VERSION)

NOT_COUNTED = {
    "rx_pause_us": "EOS counts pause frames, not their time",
    "tx_pause_us": "EOS counts pause frames, not their time",
    "rx_prio_packets": "EOS counts by egress queue, not by ingress priority",
    "tx_prio_packets": "EOS counts by egress queue: see tx_queue_packets",
    "rx_prio_discards": "EOS counts ingress drops by port: see rx_discards",
}

# Names that each command is expected to show for every cabled port. The watchdog's
# shows a port only once something has happened there: what is absent is zero.
_EXPECTED = {
    INTERFACES: (
        "rx_packets",
        "tx_packets",
        "rx_bytes",
        "tx_bytes",
        "rx_discards",
        "tx_discards",
        "rx_mtu_drops",
        "rx_crc_errors",
        "link_down_events",
    ),
    QUEUES: ("tx_queue_packets", "tx_queue_bytes", "queue_drops"),
    PFC: ("rx_pause_frames", "tx_pause_frames"),
    ECN: ("ecn_marked_packets",),
    WATCHDOG: ("watchdog_storms",),
}


def read_counters(target: Target, outputs: Outputs, taken_at_s: float) -> CounterSnapshot:
    """Every counter that the outputs show, for every physical port.

    Packets are the sum of unicast, multicast and broadcast. ``missing`` names
    what is not shown, port by port for the target's ports, and what EOS never
    counts. Raises ReadError where an output is no JSON.
    """
    values: dict[Key, int] = {}
    readers = {
        INTERFACES: _interfaces,
        QUEUES: _queues,
        PFC: _pfc,
        ECN: _ecn,
    }
    for command, reader in readers.items():
        if command in outputs:
            values.update(reader(parse_json(command, outputs[command])))
    if WATCHDOG in outputs:
        values.update(_watchdog(target, parse_json(WATCHDOG, outputs[WATCHDOG])))
    physical = {key: value for key, value in values.items() if is_physical(key[0])}
    taken = snapshot(target, outputs, taken_at_s, physical, _EXPECTED, NOT_COUNTED)
    return with_uptime(taken, outputs, VERSION, r'"uptime"\s*:\s*([\d.]+)')


def _interfaces(data: object) -> Iterator[tuple[Key, int]]:
    for port, facts in members(data, "interfaces"):
        counters = dict(members(facts, "interfaceCounters"))
        errors = dict(members(facts, "interfaceCounters", "inputErrorsDetail"))
        # A port starts down: every second change of its state is one to down.
        changes = count(counters.get("linkStatusChanges"))
        found = {
            "rx_bytes": count(counters.get("inOctets")),
            "tx_bytes": count(counters.get("outOctets")),
            "rx_packets": _total(counters, "in"),
            "tx_packets": _total(counters, "out"),
            "rx_discards": count(counters.get("inDiscards")),
            "tx_discards": count(counters.get("outDiscards")),
            "rx_mtu_drops": count(errors.get("giantFrames")),
            "rx_crc_errors": count(errors.get("fcsErrors")),
            "link_down_events": None if changes is None else changes // 2,
        }
        for name, value in found.items():
            if value is not None:
                yield (interface_name(port), name, None), value


def _total(counters: Mapping[str, object], way: str) -> int | None:
    kinds = ("Ucast", "Multicast", "Broadcast")
    parts = [count(counters.get(f"{way}{kind}Pkts")) for kind in kinds]
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def _queues(data: object) -> Iterator[tuple[Key, int]]:
    """Sums over unicast and multicast and all drop precedences of each queue."""
    names = {
        "enqueuedPackets": "tx_queue_packets",
        "enqueuedBytes": "tx_queue_bytes",
        "droppedPackets": "queue_drops",
    }
    totals: dict[Key, int] = {}
    for port, facts in members(data, "egressQueueCounters", "interfaces"):
        for kind in ("ucastQueues", "mcastQueues"):
            for traffic_class, queue in members(facts, kind, "trafficClasses"):
                match = re.fullmatch(r"(?:TC)?(\d)", traffic_class)
                for _, cells in members(queue, "dropPrecedences") if match else ():
                    for label, name in names.items():
                        value = count(dict(members(cells)).get(label))
                        if value is not None and match is not None:
                            key = (interface_name(port), name, int(match[1]))
                            totals[key] = totals.get(key, 0) + value
    yield from totals.items()


def _pfc(data: object) -> Iterator[tuple[Key, int]]:
    for port, facts in members(data, "interfaceCounters"):
        frames = dict(members(facts))
        for label, name in (("rxFrames", "rx_pause_frames"), ("txFrames", "tx_pause_frames")):
            value = count(frames.get(label))
            if value is not None:
                yield (interface_name(port), name, None), value


def _ecn(data: object) -> Iterator[tuple[Key, int]]:
    """Marked packets by queue; ``-`` is a queue that is not counted."""
    for port, facts in members(data, "intfQueueCounters"):
        for queue, marked in members(facts, "queueCounters"):
            value = count(marked)
            if value is not None and queue.isdecimal():
                yield (interface_name(port), "ecn_marked_packets", int(queue)), value


def _watchdog(target: Target, data: object) -> Iterator[tuple[Key, int]]:
    for queue_number in range(PRIORITY_COUNT):
        yield from (((port.name, "watchdog_storms", queue_number), 0) for port in target.ports)
    for port, facts in members(data, "interfaces"):
        for queue, counts in members(facts, "txQueues"):
            value = count(dict(members(counts)).get("stuckCount"))
            if value is not None and queue.isdecimal():
                yield (interface_name(port), "watchdog_storms", int(queue)), value
