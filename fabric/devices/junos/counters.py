"""Counters of a switch in the schema of ``fabric.counters``.

Formats: ``show interfaces extensive`` of a QFX with Junos 22.4 and ``show interfaces
queue`` of an ACX, public captures; ``ECN-CE packets`` stands among the transmitted
counts, as several public parsers of QFX output read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fabric.counters import CounterSnapshot
from fabric.devices.base import Outputs, ReadError, Target
from fabric.devices.booted import with_uptime
from fabric.devices.counted import Key, snapshot
from fabric.devices.junos.statements import is_physical

EXTENSIVE = "show interfaces extensive"
QUEUES = "show interfaces queue"
UPTIME = "show system uptime"

COMMANDS = (EXTENSIVE, QUEUES, UPTIME)

NOT_COUNTED = {
    "rx_pause_us": "Junos counts pause frames, not their time",
    "tx_pause_us": "Junos counts pause frames, not their time",
    "rx_prio_packets": "Junos counts by egress queue, not by ingress priority",
    "tx_prio_packets": "Junos counts by egress queue: see tx_queue_packets",
    "rx_prio_discards": "Junos counts ingress drops by port: see rx_discards",
    "watchdog_storms": "Junos logs what its watchdog does; no count of it is read",
}
_EXPECTED = {
    EXTENSIVE: (
        "rx_packets",
        "tx_packets",
        "rx_bytes",
        "tx_bytes",
        "rx_discards",
        "tx_discards",
        "rx_mtu_drops",
        "rx_crc_errors",
        "link_down_events",
        "rx_pause_frames",
        "tx_pause_frames",
    ),
    QUEUES: ("tx_queue_packets", "tx_queue_bytes", "queue_drops", "ecn_marked_packets"),
}

_HEAD = re.compile(r"^Physical interface: ([^,\s]+)", re.MULTILINE)
_COUNT = r"\s*:?\s*(\d[\d,]*)"
_EXTENSIVE = (
    ("rx_bytes", re.compile(rf"^\s*Input  bytes\s*{_COUNT}", re.MULTILINE)),
    ("tx_bytes", re.compile(rf"^\s*Output bytes\s*{_COUNT}", re.MULTILINE)),
    ("rx_packets", re.compile(rf"^\s*Input  packets\s*{_COUNT}", re.MULTILINE)),
    ("tx_packets", re.compile(rf"^\s*Output packets\s*{_COUNT}", re.MULTILINE)),
    ("rx_mtu_drops", re.compile(rf"^\s*Oversized frames{_COUNT}", re.MULTILINE)),
    ("rx_crc_errors", re.compile(rf"^\s*CRC/Align errors{_COUNT}", re.MULTILINE)),
)
# The list is wrapped where the terminal is narrow.
_INPUT = re.compile(r"Input errors:\s*((?:.*: \d+.*\n?)+)")
_OUTPUT = re.compile(r"Output errors:\s*((?:.*: \d+.*\n?)+)")
# A comma parts cells, and thousands.
_ERRORS_CELL = re.compile(r"([\w/ ]+): (\d{1,3}(?:,\d{3})+|\d+)")
_PFC = re.compile(r"^\s*Priority\s*:\s*(\d)\s+(\d[\d,]*)\s+(\d[\d,]*)", re.MULTILINE)
_QUEUE = re.compile(r"^\s*Queue: (\d+)\b.*$", re.MULTILINE)
_QUEUE_COUNTS = (
    ("tx_queue_packets", ("Packets",)),
    ("tx_queue_bytes", ("Bytes",)),
    ("queue_drops", ("Tail-dropped packets", "RED-dropped packets", "RL-dropped packets")),
    ("ecn_marked_packets", ("ECN-CE packets",)),
)


def read_counters(target: Target, outputs: Outputs, taken_at_s: float) -> CounterSnapshot:
    """Every counter that the outputs show, for every physical port.

    ``rx_discards`` are drops and resource errors of the input, the latter being
    what Junos calls packets without headroom. ``missing`` names what is not shown,
    port by port for the target's ports, and what Junos never counts. Raises
    ReadError where an output is none of Junos.
    """
    values: dict[Key, int] = {}
    for command, reader in ((EXTENSIVE, _extensive), (QUEUES, _queues)):
        if command in outputs:
            for port, text in _blocks(command, outputs[command]):
                values.update(reader(port, text))
    taken = snapshot(target, outputs, taken_at_s, values, _EXPECTED, NOT_COUNTED)
    return with_uptime(taken, outputs, UPTIME, r"^System booted: .*\((.+) ago\)")


def _blocks(command: str, text: str) -> Iterator[tuple[str, str]]:
    """Text of each physical port."""
    parts = _HEAD.split(text)
    if len(parts) == 1 and text.strip():
        first = text.strip().splitlines()[0]
        raise ReadError(f"{command}: no interface in {first!r}")
    for name, block in zip(parts[1::2], parts[2::2], strict=True):
        if is_physical(name):
            yield name, block


def _extensive(port: str, text: str) -> Iterator[tuple[Key, int]]:
    physical = text.partition("Logical interface ")[0]
    for name, pattern in _EXTENSIVE:
        if match := pattern.search(physical):
            yield (port, name, None), _number(match[1])
    errors = _list(_INPUT.search(physical))
    if errors:
        drops = errors.get("Drops", 0) + errors.get("Resource errors", 0)
        yield (port, "rx_discards", None), drops
    output = _list(_OUTPUT.search(physical))
    for label, name in (("Drops", "tx_discards"), ("Carrier transitions", "carrier")):
        if label in output:
            # A port starts down: every second transition is one to down.
            value = output[label] if name == "tx_discards" else output[label] // 2
            yield (port, name if name == "tx_discards" else "link_down_events", None), value
    _, found, pfc = physical.partition("MAC Priority Flow Control Statistics")
    for match in _PFC.finditer(pfc) if found else ():
        yield (port, "rx_pause_frames", int(match[1])), _number(match[2])
        yield (port, "tx_pause_frames", int(match[1])), _number(match[3])


def _list(match: re.Match[str] | None) -> dict[str, int]:
    """``Errors: 0, Drops: 3, ...``: name -> count."""
    if match is None:
        return {}
    return {name.strip(): _number(value) for name, value in _ERRORS_CELL.findall(match[1])}


def _queues(port: str, text: str) -> Iterator[tuple[Key, int]]:
    parts = _QUEUE.split(text.partition("Logical interface ")[0])
    for number, block in zip(parts[1::2], parts[2::2], strict=True):
        sent = block.partition("Transmitted:")[2]
        counts = dict(re.findall(r"^\s*([A-Z][\w -]*?)\s*:\s+(\d[\d,]*)", sent, re.MULTILINE))
        for name, labels in _QUEUE_COUNTS:
            found = [_number(counts[label]) for label in labels if label in counts]
            if found:
                yield (port, name, int(number)), sum(found)


def _number(text: str) -> int:
    return int(text.replace(",", ""))
