"""Counters of a switch in the schema of ``fabric.counters``.

Formats: sonic-net/sonic-utilities doc/Command-Reference.md and tests/
(portstat_test.py, queue_counter_test.py, pfcwd_input, pgdropstat_test.py). Each
``show`` counts from the last ``sonic-clear`` of the same user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from fabric.counters import CounterSnapshot
from fabric.devices.base import Outputs, ReadError, Target
from fabric.devices.booted import BOOT_ID, with_boot_id
from fabric.devices.counted import Key, snapshot
from fabric.devices.sonic.columns import number, tables
from fabric.devices.sonic.names import is_physical

INTERFACES = "show interfaces counters"
QUEUES = "show queue counters"
MARKS = "show queue wredcounters"
PFC = "show pfc counters"
GROUPS = "show priority-group drop counters"
WATCHDOG = "show pfcwd stats"

COMMANDS = (INTERFACES, QUEUES, MARKS, PFC, GROUPS, WATCHDOG, BOOT_ID)

Values = Iterator[tuple[Key, int]]

NOT_COUNTED = {
    "rx_bytes": "SONiC shows rates and packets of a port, bytes by egress queue only",
    "rx_mtu_drops": "SONiC counts packets that are too long as RX_ERR or RX_DRP",
    "link_down_events": "SONiC shows whether a link is up, not how often it went down",
    "rx_pause_us": "SONiC counts PFC frames, not their time",
    "tx_pause_us": "SONiC counts PFC frames, not their time",
    "rx_prio_packets": "SONiC counts by egress queue, not by ingress priority",
    "tx_prio_packets": "SONiC counts by egress queue: see tx_queue_packets",
}

_PORT_COLUMNS = {
    "RX_OK": "rx_packets",
    "TX_OK": "tx_packets",
    "RX_DRP": "rx_discards",
    "TX_DRP": "tx_discards",
    # All frames received with an error; a bad checksum is the usual one.
    "RX_ERR": "rx_crc_errors",
}
_QUEUE_COLUMNS = {
    "Counter/pkts": "tx_queue_packets",
    "Counter/bytes": "tx_queue_bytes",
    "Drop/pkts": "queue_drops",
}

# What each command is expected to show for every cabled port.
_EXPECTED = {
    INTERFACES: tuple(_PORT_COLUMNS.values()),
    QUEUES: (*_QUEUE_COLUMNS.values(), "tx_bytes"),
    MARKS: ("ecn_marked_packets",),
    PFC: ("rx_pause_frames", "tx_pause_frames"),
    GROUPS: ("rx_prio_discards",),
    WATCHDOG: ("watchdog_storms",),
}


def read_counters(target: Target, outputs: Outputs, taken_at_s: float) -> CounterSnapshot:
    """Every counter that the outputs show, for every front port.

    A priority group has the number of its lossless priority; drops of the groups
    are by priority as far as each has a group of its own. Queues are unicast ones
    (``UC3``) or serve both (``ALL3``). ``missing`` names what is not shown, port by
    port for the target's ports, and what SONiC never counts. Raises ReadError
    where an output has no table.
    """
    readers: dict[str, Callable[[str], Values]] = {
        INTERFACES: _interfaces,
        QUEUES: _queues,
        MARKS: _marks,
        PFC: _pfc,
        GROUPS: _groups,
        WATCHDOG: _watchdog,
    }
    values: dict[Key, int] = {}
    for command, reader in readers.items():
        if command in outputs:
            if not list(tables(outputs[command])):
                raise ReadError(f"{command}: no table in its output")
            values.update(reader(outputs[command]))
    values.update(_tx_bytes(values))
    physical = {key: value for key, value in values.items() if is_physical(key[0])}
    taken = snapshot(target, outputs, taken_at_s, physical, _EXPECTED, NOT_COUNTED)
    return with_boot_id(taken, outputs)


def _tx_bytes(values: Mapping[Key, int]) -> dict[Key, int]:
    totals: dict[Key, int] = {}
    for (port, name, _), value in values.items():
        if name == "tx_queue_bytes":
            key = (port, "tx_bytes", None)
            totals[key] = totals.get(key, 0) + value
    return totals


def _rows(text: str) -> Iterable[dict[str, str]]:
    for table in tables(text):
        yield from table


def _interfaces(text: str) -> Values:
    for row in _rows(text):
        for column, name in _PORT_COLUMNS.items():
            value = number(row.get(column, ""))
            if value is not None:
                yield (row.get("IFACE", ""), name, None), value


def _queue_of(row: Mapping[str, str]) -> int | None:
    """Number of a unicast queue; multicast ones are counted behind them."""
    name = row.get("TxQ", "")
    for kind in ("UC", "ALL"):
        queue = number(name.removeprefix(kind)) if name.startswith(kind) else None
        if queue is not None and queue < 8:
            return queue
    return None


def _queues(text: str) -> Values:
    for row in _rows(text):
        queue = _queue_of(row)
        for column, name in _QUEUE_COLUMNS.items() if queue is not None else ():
            value = number(row.get(column, ""))
            if value is not None:
                yield (row.get("Port", ""), name, queue), value


def _marks(text: str) -> Values:
    for row in _rows(text):
        queue, value = _queue_of(row), number(row.get("EcnMarked/pkts", ""))
        if queue is not None and value is not None:
            yield (row.get("Port", ""), "ecn_marked_packets", queue), value


def _pfc(text: str) -> Values:
    """Two tables, headed ``Port Rx`` and ``Port Tx``."""
    for row in _rows(text):
        for head, name in (("Port Rx", "rx_pause_frames"), ("Port Tx", "tx_pause_frames")):
            for priority in range(8) if head in row else ():
                value = number(row.get(f"PFC{priority}", ""))
                if value is not None:
                    yield (row[head], name, priority), value


def _groups(text: str) -> Values:
    for row in _rows(text):
        for group in range(8):
            value = number(row.get(f"PG{group}", ""))
            if value is not None:
                yield (row.get("Port", ""), "rx_prio_discards", group), value


def _watchdog(text: str) -> Values:
    """Queues are ``Ethernet0:3``, storms ``detected/restored``."""
    for row in _rows(text):
        port, _, queue = row.get("QUEUE", "").partition(":")
        storms = number(row.get("STORM DETECTED/RESTORED", "").partition("/")[0])
        if storms is not None and queue.isdecimal():
            yield (port, "watchdog_storms", int(queue)), storms
