"""Counters of a Linux switch in the schema of ``fabric.counters``.

Sources: recorded output of iproute2 6.1 (``ip -s -s``, ``tc -s qdisc`` and ``tc -s
class``) on Linux 6.1; names of ``ethtool -S``: Linux mlxsw ``spectrum_ethtool.c``;
``requests`` and ``indications`` of PFC: iproute2 ``dcb/dcb_pfc.c``. That
``*_pause_duration_prio_*`` counts microseconds is unverified.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fabric.counters import Counter, CounterSnapshot
from fabric.devices.base import Outputs, Target
from fabric.devices.booted import BOOT_ID, with_boot_id
from fabric.devices.linux.dump import parse_dump
from fabric.devices.linux.tools import statistics
from fabric.devices.switchdev import shown
from fabric.qos import PRIORITY_COUNT

LINKS = "ip -j -s -s link show"
QDISCS = "tc -j -s qdisc show"
DOWNS = "grep -H . /sys/class/net/*/carrier_down_count"

# (name, priority or queue) -> value
Values = dict[tuple[str, int | None], int]

_HARDWARE = {
    "rx_frames": "rx_prio_packets",
    "tx_frames": "tx_prio_packets",
    "rx_pause": "rx_pause_frames",
    "tx_pause": "tx_pause_frames",
    "rx_pause_duration": "rx_pause_us",
    "tx_pause_duration": "tx_pause_us",
}
_PRIO = re.compile(rf"({'|'.join(sorted(_HARDWARE, key=len, reverse=True))})_prio_([0-7])")
_PORT_NAMES = (
    "rx_packets",
    "tx_packets",
    "rx_bytes",
    "tx_bytes",
    "rx_discards",
    "tx_discards",
    "rx_crc_errors",
)
NOT_COUNTED = {
    "rx_prio_discards": "Linux counts ingress drops by port: see rx_discards",
    "rx_mtu_drops": "Linux counts frames that are too long among others: see rx_discards",
    "watchdog_storms": "plain Linux has no PFC watchdog",
}
_SORTED = "rx_prio_packets"
_NO_PRIORITIES = dict.fromkeys(
    (name for name in _HARDWARE.values() if name != _SORTED),
    "a software bridge neither pauses nor counts by priority what it sends",
)


def class_command(port: str) -> str:
    """Shows the bands of a port's ETS qdisc."""
    return f"tc -s class show dev {port}"


def hardware_command(port: str) -> str:
    """Shows what the driver counts."""
    return f"ethtool -S {port}"


def sorting_command(port: str) -> str:
    """Shows what the filters of a port of a bridge put into which priority."""
    return f"tc -j -s filter show dev {port} ingress"


def commands(target: Target, *, hardware: bool) -> tuple[str, ...]:
    """Commands that show counters of these ports; they clear nothing."""
    found = [LINKS, QDISCS, DOWNS]
    for port in target.ports:
        found.append(class_command(port.name))
        found.append((hardware_command if hardware else sorting_command)(port.name))
    return (*found, BOOT_ID)


def read_counters(
    target: Target, outputs: Outputs, taken_at_s: float, *, hardware: bool
) -> CounterSnapshot:
    """Every counter of the target's ports that the outputs show.

    A band of ETS is a queue, numbered as a traffic class. ``missing`` names what is
    not shown. Raises ReadError where an output is cut off.
    """
    links = {row.get("ifname"): row for row in shown.rows(LINKS, outputs.get(LINKS, ""))}
    qdiscs = shown.rows(QDISCS, outputs.get(QDISCS, ""))
    downs = parse_dump(outputs.get(DOWNS, ""))
    counters: list[Counter] = []
    missing: list[str] = []
    for port in target.ports:
        values = _port(links.get(port.name, {}))
        down = downs.number(f"/sys/class/net/{port.name}/carrier_down_count")
        values |= {} if down is None else {("link_down_events", None): down}
        values |= _bands(outputs.get(class_command(port.name), ""))
        values |= _marked(port.name, qdiscs)
        if hardware:
            values |= _hardware(outputs.get(hardware_command(port.name), ""))
        else:
            values |= _sorted(outputs.get(sorting_command(port.name), ""), port.name)
        missing += _missing(port.name, values, hardware=hardware)
        counters += (
            Counter(target.device, port.name, name, value, priority)
            for (name, priority), value in values.items()
        )
    reasons = NOT_COUNTED | ({} if hardware else _NO_PRIORITIES)
    missing += [f"{name}: {reason}" for name, reason in reasons.items()]
    taken = CounterSnapshot(target.device, taken_at_s, tuple(counters), tuple(missing))
    return with_boot_id(taken, outputs)


def _missing(port: str, values: Values, *, hardware: bool) -> Iterator[str]:
    shown_names = {name for name, _ in values}
    expected = dict.fromkeys(_PORT_NAMES, LINKS)
    expected |= {"link_down_events": DOWNS, "ecn_marked_packets": QDISCS}
    queue_names = ("tx_queue_packets", "tx_queue_bytes", "queue_drops")
    expected |= dict.fromkeys(queue_names, class_command(port))
    if hardware:
        expected |= dict.fromkeys(_HARDWARE.values(), hardware_command(port))
    else:
        expected[_SORTED] = sorting_command(port)
    for name, command in expected.items():
        if name not in shown_names:
            yield f"{name}: '{command}' does not show it for {port}"


def _port(link: Mapping[str, object]) -> Values:
    stats = link.get("stats64", link.get("stats"))
    if not isinstance(stats, Mapping):
        return {}
    values: Values = {}
    for way in ("rx", "tx"):
        side = stats.get(way, {})
        names = {"packets": "packets", "bytes": "bytes", "dropped": "discards"}
        if way == "rx":
            names["crc_errors"] = "crc_errors"
        for key, name in names.items():
            if isinstance(side.get(key), int):
                values[f"{way}_{name}", None] = side[key]
    return values


def _bands(text: str) -> Values:
    values: Values = {}
    for band, (size, packets, drops) in shown.band_statistics(text).items():
        if (queue := PRIORITY_COUNT - 1 - band) >= 0:
            values["tx_queue_packets", queue] = packets
            values["tx_queue_bytes", queue] = size
            values["queue_drops", queue] = drops
    return values


def _marked(port: str, qdiscs: list[dict[str, object]]) -> Values:
    """RED counts what it marks; it stands below a band of the port's ETS qdisc."""
    rows = [row for row in qdiscs if row.get("dev") == port]
    ets = next((str(row.get("handle")) for row in rows if row.get("kind") == "ets"), None)
    values: Values = {}
    for row in rows:
        parent = str(row.get("parent", ""))
        marked = row.get("marked")
        if ets and parent.startswith(ets) and row.get("kind") == "red" and isinstance(marked, int):
            values["ecn_marked_packets", PRIORITY_COUNT - int(parent[len(ets) :], 16)] = marked
    return values


def _sorted(text: str, port: str) -> Values:
    """Packets that came in, by the priority that a filter gave them; what none did is not seen."""
    values: Values = {}
    for priority, packets in shown.sorted_packets(shown.rows(sorting_command(port), text or "[]")):
        values[_SORTED, priority] = values.get((_SORTED, priority), 0) + packets
    return values


def _hardware(text: str) -> Values:
    values: Values = {}
    for name, value in statistics(text).items():
        if match := _PRIO.fullmatch(name):
            values[_HARDWARE[match[1]], int(match[2])] = value
    return values
