"""Counters of a switch in the schema of ``fabric.counters``.

Formats: ``show interface``, fixtures of networktocode/ntc-templates
(tests/cisco_nxos); ``show queuing interface`` and ``show queuing pfc-queue
detail``, opentelemetry-collector-contrib (ciscoosreceiver) and a Nexus 9000
listing with the header of later releases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fabric.counters import CounterSnapshot
from fabric.devices.base import Outputs, ReadError, Target
from fabric.devices.booted import with_uptime
from fabric.devices.counted import Key, snapshot
from fabric.devices.nxos.names import interface_name, is_physical
from fabric.devices.nxos.read import INTERFACE, PFC, VERSION
from fabric.devices.nxos.state import number, parse_pfc

QUEUING = "show queuing interface"
WATCHDOG = "show queuing pfc-queue detail"

COMMANDS = (INTERFACE, PFC, QUEUING, WATCHDOG, VERSION)

NOT_COUNTED = {
    "link_down_events": "NX-OS shows the last flap, not how many there were",
    "rx_pause_us": "NX-OS counts pause frames, not their time",
    "tx_pause_us": "NX-OS counts pause frames, not their time",
    "rx_prio_packets": "NX-OS counts by egress queue, not by ingress priority",
    "tx_prio_packets": "NX-OS counts by egress queue: see tx_queue_packets",
    "rx_prio_discards": "NX-OS counts ingress drops by port: see rx_discards",
}

# Names that each command is expected to show for every cabled port.
_EXPECTED = {
    INTERFACE: (
        "rx_packets",
        "tx_packets",
        "rx_bytes",
        "tx_bytes",
        "rx_discards",
        "tx_discards",
        "rx_mtu_drops",
        "rx_crc_errors",
    ),
    PFC: ("rx_pause_frames", "tx_pause_frames"),
    QUEUING: ("tx_queue_packets", "tx_queue_bytes", "queue_drops", "ecn_marked_packets"),
    WATCHDOG: ("watchdog_storms",),
}

_INTERFACE_LABELS = {
    "input packets": "rx_packets",
    "output packets": "tx_packets",
    "CRC": "rx_crc_errors",
    "CRC/FCS": "rx_crc_errors",
    # Frames longer than the port takes are discarded and counted as giants.
    "giants": "rx_mtu_drops",
    "input discard": "rx_discards",
    "output discard": "tx_discards",
}
_QUEUE_LABELS = {
    "Tx Pkts": "tx_queue_packets",
    "Tx Byts": "tx_queue_bytes",
    "ECN Pkts": "ecn_marked_packets",
    # Rows for drops overlap: tail drops stand in more than one.
    "Dropped Pkts": "queue_drops",
    "Tail Drop Pkts": "queue_drops",
    "WRED & Tail Drop Pkts": "queue_drops",
    "WRED/AFD & Tail Drop Pkts": "queue_drops",
    "WD & Tail Drop Pkts": "queue_drops",
}
_INGRESS_DROPS = re.compile(
    r"\s*(Ingress (?:MMU|Overflow)|Hi(?:gh)? Priority|Low Priority) Drop Pkts\s+([\d,]+)\s*"
)
_PFC_ROW = re.compile(
    r"\s*(?P<cos>\d)\s+(?:\d+|-)\s+(?:(?:\d+|-)\s+)?"
    r"(?:Active|Inactive|-)\s+(?P<tx>[\d,]+|N/A|-)\s+"
    r"(?:Active|Inactive|-)\s+(?P<rx>[\d,]+|N/A|-)\s*",
    re.IGNORECASE,
)


def read_counters(target: Target, outputs: Outputs, taken_at_s: float) -> CounterSnapshot:
    """Every counter that the outputs show, for every physical port.

    Where two counters say the same (ingress drops in ``show interface`` and
    ``show queuing interface``) the larger one counts, so that no drop is lost: packets of
    high and of low priority are two counts, and whether the overflow counts them again is
    unverified.
    PFC frames are by priority where ``show queuing interface`` shows them, else
    a port's total. ``missing`` names what is not shown, port by port for the
    target's ports, and what NX-OS never counts. Raises ReadError where an
    output is none of NX-OS.
    """
    values: dict[Key, int] = {}
    readers = {INTERFACE: _interface, QUEUING: _queuing, WATCHDOG: _watchdog}
    for command, reader in readers.items():
        if command in outputs:
            _merge(values, reader(outputs[command]))
    _merge(values, _ingress_drops(outputs.get(QUEUING, "")))
    if PFC in outputs:
        by_priority = {(port, name) for port, name, priority in values if priority is not None}
        _merge(values, _pfc(outputs[PFC], by_priority))
    physical = {key: value for key, value in values.items() if is_physical(key[0])}
    taken = snapshot(target, outputs, taken_at_s, physical, _EXPECTED, NOT_COUNTED)
    return with_uptime(taken, outputs, VERSION, r"^\s*Kernel uptime is (.+)$")


_PORT_HEAD = re.compile(r"(\S+) is \w+")
# "0 runts  0 giants  0 CRC/FCS  0 no buffer": a number, then its name.
_COUNT = re.compile(r"([\d,]+) ((?:\D\S*)(?: [^\d\s]\S*)*)")


def _merge(values: dict[Key, int], found: Iterable[tuple[Key, int]]) -> None:
    for key, value in found:
        values[key] = max(value, values.get(key, 0))


def _pfc(text: str, by_priority: set[tuple[str, str]]) -> Iterator[tuple[Key, int]]:
    for port, state in parse_pfc(text).items():
        for name, value in (
            ("rx_pause_frames", state.rx_frames),
            ("tx_pause_frames", state.tx_frames),
        ):
            if value is not None and (port, name) not in by_priority:
                yield (port, name, None), value


def _interface(text: str) -> Iterator[tuple[Key, int]]:
    if not re.search(r"^\S+ is (?:up|down|administratively)", text, re.MULTILINE):
        raise ReadError(f"{INTERFACE}: no interface in its output")
    port, direction = "", ""
    for line in text.splitlines():
        words = line.strip()
        if match := _PORT_HEAD.match(line):
            port, direction = interface_name(match[1]), ""
        elif words in ("RX", "TX"):
            direction = words.lower()
        elif direction:
            for match in _COUNT.finditer(words):
                value = number(match[1])
                name = _INTERFACE_LABELS.get(match[2])
                if match[2] == "bytes":
                    name = f"{direction}_bytes"
                if name is not None and value is not None:
                    yield (port, name, None), value


def _queuing(text: str) -> Iterator[tuple[Key, int]]:
    if "Queuing for" not in text:
        raise ReadError(f"{QUEUING}: no 'Queuing for' in its output")
    port, group = "", None
    for line in text.splitlines():
        if match := re.match(r"\s*(?:Egress|Ingress) Queuing for (\S+)", line):
            port, group = interface_name(match[1]), None
        elif match := re.match(r"\|.*QOS GROUP\s*(\d)?\s*\|", line):
            # SPAN and control traffic have groups without a number.
            group = int(match[1]) if match[1] else None
        elif line.startswith("|"):
            for name, value in _queue_row(line):
                if group is not None:
                    yield (port, name, group), value
        elif match := _PFC_ROW.fullmatch(line):
            cos = int(match["cos"])
            for name, count in (
                ("tx_pause_frames", number(match["tx"])),
                ("rx_pause_frames", number(match["rx"])),
            ):
                if count is not None:
                    yield (port, name, cos), count


def _ingress_drops(text: str) -> Iterator[tuple[Key, int]]:
    """What ports drop as they receive; not what all ports of a slice do together."""
    port, shared = "", False
    by_priority: dict[str, int] = {}
    for line in text.splitlines():
        if match := re.match(r"\s*(?:Egress|Ingress) Queuing for (\S+)", line):
            port, shared = interface_name(match[1]), False
        elif "Per Slice" in line:
            shared = True
        elif (match := _INGRESS_DROPS.fullmatch(line)) and not shared:
            dropped = number(match[2]) or 0
            if not match[1].startswith("Ingress"):
                dropped = by_priority[port] = by_priority.get(port, 0) + dropped
            yield (port, "rx_discards", None), dropped


def _queue_row(line: str) -> Iterator[tuple[str, int]]:
    """Labels of a row with the sum of the cells after each (unicast, OOBFC, multicast)."""
    label, total = "", None
    for cell in (*line.strip().strip("|").split("|"), "end"):
        value = number(cell)
        if value is not None:
            total = value + (total or 0)
        elif cell.strip() not in ("-", "N/A", ""):
            if total is not None and label in _QUEUE_LABELS:
                yield _QUEUE_LABELS[label], total
            label, total = cell.strip(), None


def _watchdog(text: str) -> Iterator[tuple[Key, int]]:
    port, group = "", None
    for line in text.splitlines():
        if match := re.match(r"\s*(\S+) Interface PFC watchdog", line):
            port, group = interface_name(match[1]), None
        elif match := re.match(r"\|\s*QOS GROUP (\d)\b", line):
            group = int(match[1])
        elif group is not None and (match := re.match(r"\|\s*Shutdown\s*\|\s*([\d,]+)\s*\|", line)):
            yield (port, "watchdog_storms", group), number(match[1]) or 0
