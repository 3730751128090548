"""Counters of a switch in the schema of ``fabric.counters``: what ``show interface`` has.

Format: Dell, "SmartFabric OS10 User Guide", ``show interface``: a line that a port is
up or down, then ``Input statistics:`` and ``Output statistics:`` blocks. No public
sample of queue or PFC counters could be found: ``missing`` says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fabric.counters import Counter, CounterSnapshot
from fabric.devices.base import Outputs, Target
from fabric.devices.booted import with_uptime
from fabric.devices.os10.lines import interface_name, is_physical
from fabric.devices.os10.read import VERSION

INTERFACES = "show interface"
COMMANDS = (INTERFACES, VERSION)

_HEAD = re.compile(r"(\S+(?: \d\S*)?) is (?:up|down)\b.*line protocol is")
_BLOCK = re.compile(r"\s*(Input|Output) statistics:?\s*", re.IGNORECASE)
_CELL = re.compile(r"(\d[\d,]*) ([A-Za-z][A-Za-z-]*)")
_NAMES = {
    ("input", "packets"): "rx_packets",
    ("input", "octets"): "rx_bytes",
    ("input", "bytes"): "rx_bytes",
    ("input", "crc"): "rx_crc_errors",
    ("input", "discarded"): "rx_discards",
    ("output", "packets"): "tx_packets",
    ("output", "octets"): "tx_bytes",
    ("output", "bytes"): "tx_bytes",
    ("output", "discarded"): "tx_discards",
}
_EXPECTED = tuple(dict.fromkeys(_NAMES.values()))
_NO_SAMPLE = "no sample of what OS10 prints of it could be found"
NOT_READ = dict.fromkeys(
    (
        "rx_pause_frames",
        "tx_pause_frames",
        "tx_queue_packets",
        "queue_drops",
        "ecn_marked_packets",
        "watchdog_storms",
        "link_down_events",
        "rx_mtu_drops",
    ),
    _NO_SAMPLE,
)


def read_counters(target: Target, outputs: Outputs, taken_at_s: float) -> CounterSnapshot:
    """Every counter that is understood, for every physical port."""
    values = dict(_interfaces(outputs.get(INTERFACES, "")))
    missing = [
        f"{name}: '{INTERFACES}' does not show it for {port.name}"
        for port in target.ports
        for name in _EXPECTED
        if (port.name, name) not in values
    ]
    missing += [f"{name}: {reason}" for name, reason in NOT_READ.items()]
    taken = CounterSnapshot(
        target.device,
        taken_at_s,
        tuple(Counter(target.device, port, name, n) for (port, name), n in values.items()),
        tuple(missing),
    )
    return with_uptime(taken, outputs, VERSION, r"^Up Time: (.+)$")


def _interfaces(text: str) -> Iterator[tuple[tuple[str, str], int]]:
    port = block = ""
    for line in text.splitlines():
        if head := _HEAD.match(line):
            name = interface_name(head[1])
            port, block = (name if is_physical(name) else ""), ""
        elif match := _BLOCK.fullmatch(line):
            block = match[1].lower()
        elif block and not line.startswith((" ", "\t")):
            block = ""
        elif port and block:
            for number, label in _CELL.findall(line):
                name = _NAMES.get((block, label.lower()), "")
                if name:
                    yield (port, name), int(number.replace(",", ""))
