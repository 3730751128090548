"""Counters of a switch in the schema of ``fabric.counters``.

Formats: ``nv show interface counters`` and ``nv show interface PORT counters qos``
with ``-o json``, CumulusNetworks/docs, nvue-reference "QoS"; names below ``netstat``
and of the queues' members as public tools read them. Which unit the duration of a
pause has is unverified: microseconds are assumed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fabric.counters import Counter, CounterSnapshot
from fabric.devices.base import Outputs, ReadError, Target
from fabric.devices.booted import BOOT_ID, with_boot_id
from fabric.devices.nvue.names import is_physical

PORTS = "nv show interface counters -o json"

Key = tuple[str, str, int | None]

NOT_COUNTED = {
    "rx_mtu_drops": "packets that are too long are among a port's rx-drop or rx-error",
    "link_down_events": "NVUE shows whether a link is up, not how often it went down",
    "tx_prio_packets": "NVUE counts by egress queue: see tx_queue_packets",
    "rx_prio_packets": "NVUE counts by priority group, which lossy priorities share",
}
_NETSTAT = {
    "rx-okay": "rx_packets",
    "tx-okay": "tx_packets",
    "rx-drop": "rx_discards",
    "tx-drop": "tx_discards",
    # All frames received with an error; a bad checksum is the usual one.
    "rx-error": "rx_crc_errors",
}
_TABLES = {
    "egress-queue-stats": {
        "tx-frames": "tx_queue_packets",
        "tx-bytes": "tx_queue_bytes",
        "tx-uc-buffer-discards": "queue_drops",
        "ecn-marked-frames": "ecn_marked_packets",
    },
    "pfc-stats": {
        "rx-pause-frames": "rx_pause_frames",
        "tx-pause-frames": "tx_pause_frames",
        "rx-pause-duration": "rx_pause_us",
        "tx-pause-duration": "tx_pause_us",
    },
    "ingress-buffer-stats": {"rx-buffer-discards": "rx_prio_discards"},
}


def qos_command(port: str) -> str:
    """Shows a port's queues, PFC and priority groups."""
    return f"nv show interface {port} counters qos -o json"


def watchdog_command(port: str) -> str:
    """Shows a port's storms."""
    return f"nv show interface {port} qos pfc-watchdog -o json"


def commands(target: Target) -> tuple[str, ...]:
    """One command for all ports, two for each cabled one, one for the system."""
    ports = [port.name for port in target.ports]
    return (PORTS, *map(qos_command, ports), *map(watchdog_command, ports), BOOT_ID)


def read_counters(target: Target, outputs: Outputs, taken_at_s: float) -> CounterSnapshot:
    """Every counter that the outputs show, for every cabled port.

    ``missing`` names what is not shown, port by port, and what NVUE never counts.
    Raises ReadError where an output is no JSON.
    """
    values: dict[Key, int] = {}
    missing: list[str] = []
    everything = _json(outputs, PORTS) if PORTS in outputs else {}
    for port in (port.name for port in target.ports):
        netstat = everything.get(port, {}).get("counters", {}).get("netstat", {})
        values.update(_named((port, None), netstat, _NETSTAT))
        missing += _absent(PORTS, port, _NETSTAT, netstat)
        missing += _qos(port, outputs, values)
        missing += _watchdog(port, outputs, values)
    missing += [f"{name}: {reason}" for name, reason in NOT_COUNTED.items()]
    taken = CounterSnapshot(
        target.device,
        taken_at_s,
        tuple(
            Counter(target.device, port, name, value, priority)
            for (port, name, priority), value in values.items()
            if is_physical(port)
        ),
        tuple(missing),
    )
    return with_boot_id(taken, outputs)


def _qos(port: str, outputs: Outputs, values: dict[Key, int]) -> Iterator[str]:
    command = qos_command(port)
    shown = _json(outputs, command) if command in outputs else {}
    for table, names in _TABLES.items():
        rows = shown.get(table, {})
        for number, row in rows.items():
            if str(number).isdecimal() and int(number) < 8:
                values.update(_named((port, int(number)), row, names))
        if not rows:
            yield from (f"{name}: '{command}' does not show it" for name in names.values())
    queues = [v for (p, name, _), v in values.items() if p == port and name == "tx_queue_bytes"]
    if queues:
        values[port, "tx_bytes", None] = sum(queues)


def _watchdog(port: str, outputs: Outputs, values: dict[Key, int]) -> Iterator[str]:
    command = watchdog_command(port)
    rows = _json(outputs, command).get("status", {}) if command in outputs else {}
    for number, row in rows.items():
        count = _number(row.get("deadlock-count"))
        if count is not None:
            values[port, "watchdog_storms", int(number)] = count
    if not rows:
        yield f"watchdog_storms: '{command}' does not show it"


def _named(
    where: tuple[str, int | None], row: Mapping[str, Any], names: Mapping[str, str]
) -> Iterator[tuple[Key, int]]:
    for field, name in names.items():
        count = _number(row.get(field))
        if count is not None:
            yield (where[0], name, where[1]), count


def _absent(
    command: str, port: str, names: Mapping[str, str], row: Mapping[str, Any]
) -> Iterator[str]:
    for field, name in names.items():
        if _number(row.get(field)) is None:
            yield f"{name}: '{command}' does not show it for {port}"


def _number(count: object) -> int | None:
    """A count as a number or text, with or without separators; None for anything else."""
    digits = str(count).strip().replace(",", "")
    return int(digits) if digits.isdecimal() else None


def _json(outputs: Outputs, command: str) -> Mapping[str, Any]:
    text = outputs[command]
    try:
        data, _ = json.JSONDecoder().raw_decode(text, max(text.find("{"), 0))
    except ValueError as error:
        raise ReadError(f"'{command}' printed no JSON: {error}") from error
    return data if isinstance(data, dict) else {}
