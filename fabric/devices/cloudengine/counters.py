"""Counters of a switch in the schema of ``fabric.counters``.

Formats: Huawei, CloudEngine configuration guide, traffic shaping (``display qos queue
statistics interface``: two lines a queue, packets above bytes); published answers of
a CloudEngine to ``display interface`` (blocks ``Input:`` and ``Output:`` with ``Label:
number`` cells). No sample of the per-priority PFC counters could be found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fabric.counters import Counter, CounterSnapshot
from fabric.devices.base import Outputs, Target
from fabric.devices.booted import with_uptime
from fabric.devices.cloudengine.lines import is_physical
from fabric.devices.cloudengine.read import VERSION

INTERFACES = "display interface"

# (port, name, queue) -> value
Key = tuple[str, str, int | None]

_HEAD = re.compile(r"(\S+) current state\s*:")
_BLOCK = re.compile(r"\s*(Input|Output):\s*")
_CELL = re.compile(r"([A-Za-z][A-Za-z ]*):\s+(\d[\d,]*)(?=[\s,]|$)")
_NAMES = {
    ("input", "discard"): "rx_discards",
    ("input", "crc"): "rx_crc_errors",
    ("input", "giants"): "rx_mtu_drops",
    ("output", "discard"): "tx_discards",
}
_PACKETS = {"input": "rx_packets", "output": "tx_packets"}
_KINDS = ("unicast", "multicast", "broadcast")
_QUEUE = re.compile(r"\s*([0-7])\s+\S+\s+(\d[\d,]*)\s+\d[\d,]*\s+(\d[\d,]*)\s+\d[\d,]*\s+\S+\s*")
_BYTES = re.compile(r"\s*\d[\d,]*\s+(\d[\d,]*)\s+\d[\d,]*\s+\d[\d,]*\s+\d[\d,]*\s*")
_EXPECTED = ("rx_packets", "tx_packets", *_NAMES.values())
_QUEUE_NAMES = ("tx_queue_packets", "tx_queue_bytes", "queue_drops")
NOT_READ = dict.fromkeys(
    (
        "rx_pause_frames",
        "tx_pause_frames",
        "ecn_marked_packets",
        "watchdog_storms",
        "link_down_events",
        "rx_bytes",
        "tx_bytes",
    ),
    "no sample of what VRP prints of it by priority or queue could be found",
)


def queue_command(port: str) -> str:
    """Shows the queues of a port."""
    return f"display qos queue statistics interface {port}"


def commands(target: Target) -> tuple[str, ...]:
    """Commands that show counters of these ports; they clear nothing."""
    return (INTERFACES, *(queue_command(port.name) for port in target.ports), VERSION)


def read_counters(target: Target, outputs: Outputs, taken_at_s: float) -> CounterSnapshot:
    """Every counter that is understood."""
    values = dict(_interfaces(outputs.get(INTERFACES, "")))
    missing = []
    for port in target.ports:
        queues = dict(_queues(port.name, outputs.get(queue_command(port.name), "")))
        values |= queues
        missing += [
            f"{name}: '{INTERFACES}' does not show it for {port.name}"
            for name in _EXPECTED
            if (port.name, name, None) not in values
        ]
        if not queues:
            command = queue_command(port.name)
            missing += [f"{name}: '{command}' does not show it" for name in _QUEUE_NAMES]
    missing += [f"{name}: {reason}" for name, reason in NOT_READ.items()]
    taken = CounterSnapshot(
        target.device,
        taken_at_s,
        tuple(
            Counter(target.device, port, name, value, queue)
            for (port, name, queue), value in values.items()
        ),
        tuple(missing),
    )
    return with_uptime(taken, outputs, VERSION, r"^(?i:HUAWEI) .*uptime is (.+)$")


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _interfaces(text: str) -> Iterator[tuple[Key, int]]:
    totals: dict[Key, int] = {}
    port = block = ""
    for line in text.splitlines():
        if head := _HEAD.match(line):
            port, block = (head[1] if is_physical(head[1]) else ""), ""
        elif match := _BLOCK.fullmatch(line):
            block = match[1].lower()
        elif port and block:
            for label, number in _CELL.findall(line):
                kind = label.strip().lower()
                if kind in _KINDS:
                    key = (port, _PACKETS[block], None)
                    totals[key] = totals.get(key, 0) + _number(number)
                elif (block, kind) in _NAMES:
                    yield (port, _NAMES[block, kind], None), _number(number)
    yield from totals.items()


def _queues(port: str, text: str) -> Iterator[tuple[Key, int]]:
    queue: int | None = None
    for line in text.splitlines():
        if match := _QUEUE.fullmatch(line):
            queue = int(match[1])
            yield (port, "tx_queue_packets", queue), _number(match[2])
            yield (port, "queue_drops", queue), _number(match[3])
        elif queue is not None and (match := _BYTES.fullmatch(line)):
            yield (port, "tx_queue_bytes", queue), _number(match[1])
            queue = None
