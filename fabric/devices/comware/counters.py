"""Counters of a switch in the schema of ``fabric.counters``.

Formats: as in :mod:`fabric.devices.comware.shown` for PFC; of Comware 7, ``display
interface`` (``Input (total):``, ``Output (total):``, ``-`` for what is not counted) and
``display qos queue-statistics interface outbound`` (``Queue N``, then ``Forwarded:`` and
``Dropped:``); the latter two are written from memory of Comware 7 and unverified.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fabric.counters import CounterSnapshot
from fabric.devices.base import Outputs, Target
from fabric.devices.booted import with_uptime
from fabric.devices.comware.lines import is_physical, port_number
from fabric.devices.comware.read import PFC, VERSION
from fabric.devices.comware.shown import parse_pfc
from fabric.devices.counted import Key, snapshot

INTERFACES = "display interface"
QUEUES = "display qos queue-statistics interface outbound"

COMMANDS = (INTERFACES, PFC, QUEUES, VERSION)

_TOTAL = re.compile(r"\s*(Input|Output) \(total\):\s*(\d[\d,]*) packets, (\d[\d,]*) bytes")
_CRC = re.compile(r"(\d[\d,]*) CRC\b")
_GIANTS = re.compile(r"(\d[\d,]*) giants\b")
_QUEUE = re.compile(r"\s*Queue ([0-7])\s*")
_QUEUE_LINE = re.compile(r"\s*(Forwarded|Dropped):\s*(\d[\d,]*) packets, (\d[\d,]*) bytes.*")
_EXPECTED = {
    INTERFACES: (
        "rx_packets",
        "tx_packets",
        "rx_bytes",
        "tx_bytes",
        "rx_crc_errors",
        "rx_mtu_drops",
    ),
    PFC: ("rx_pause_frames", "tx_pause_frames"),
    QUEUES: ("tx_queue_packets", "tx_queue_bytes", "queue_drops"),
}
NOT_READ = dict.fromkeys(
    ("ecn_marked_packets", "rx_discards", "watchdog_storms", "link_down_events"),
    "no sample of what Comware prints of it could be found",
)


def read_counters(target: Target, outputs: Outputs, taken_at_s: float) -> CounterSnapshot:
    """Every counter that is understood, for the target's ports."""
    names = {port_number(port.name): port.name for port in target.ports}
    values = dict(_interfaces(outputs.get(INTERFACES, "")))
    values.update(_queues(outputs.get(QUEUES, "")))
    for short, pfc in parse_pfc(outputs.get(PFC, "")).items():
        port = names.get(port_number(short), "")
        for priority, (received, sent) in pfc.frames.items() if port else ():
            values[port, "rx_pause_frames", priority] = received
            values[port, "tx_pause_frames", priority] = sent
    taken = snapshot(target, outputs, taken_at_s, values, _EXPECTED, NOT_READ)
    return with_uptime(taken, outputs, VERSION, r"^(?:H3C|HPE?) .*uptime is (.+)$")


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _interfaces(text: str) -> Iterator[tuple[Key, int]]:
    port = ""
    for line in text.splitlines():
        if line and not line[0].isspace() and is_physical(line.strip()):
            port = line.strip()
        elif re.fullmatch(r"[A-Za-z-]+\d\S*", line):
            port = ""
        if not port:
            continue
        if total := _TOTAL.match(line):
            way = "rx" if total[1] == "Input" else "tx"
            yield (port, f"{way}_packets", None), _number(total[2])
            yield (port, f"{way}_bytes", None), _number(total[3])
        if crc := _CRC.search(line):
            yield (port, "rx_crc_errors", None), _number(crc[1])
        if giants := _GIANTS.search(line):
            yield (port, "rx_mtu_drops", None), _number(giants[1])


def _queues(text: str) -> Iterator[tuple[Key, int]]:
    port, queue = "", None
    for line in text.splitlines():
        if head := re.fullmatch(r"\s*Interface: (\S+)\s*", line):
            port, queue = (head[1] if is_physical(head[1]) else ""), None
        elif match := _QUEUE.fullmatch(line):
            queue = int(match[1])
        elif port and queue is not None and (match := _QUEUE_LINE.fullmatch(line)):
            if match[1] == "Dropped":
                yield (port, "queue_drops", queue), _number(match[2])
            else:
                yield (port, "tx_queue_packets", queue), _number(match[2])
                yield (port, "tx_queue_bytes", queue), _number(match[3])
