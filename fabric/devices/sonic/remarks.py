"""Faults that only CONFIG_DB itself shows.

Sources: sonic-net/sonic-buildimage sonic-port-qos-map.yang, sonic-port.yang
(``pfc_asym``), sonic-pfcwd.yang.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fabric.devices.sonic.change import CLI
from fabric.devices.sonic.database import Row, Tables, numbers, reference
from fabric.devices.sonic.names import is_physical
from fabric.qos import Remark


def remarks(tables: Tables) -> Iterator[Remark]:
    """What is wrong with front ports that no port's state can say."""
    for port, held in tables.get("PORT", {}).items():
        if not is_physical(port):
            continue
        maps = tables.get("PORT_QOS_MAP", {}).get(port, {})
        if paused := numbers(maps.get("pfc_enable", "")):
            yield from _other_queue(tables, port, maps, paused)
            yield from _long_poll(tables, port)
        if held.get("pfc_asym") == "on":
            yield Remark(
                "pfc",
                port,
                "PFC is asymmetric (pfc_asym on): the port obeys a pause of any priority",
                (f"PORT|{port}: pfc_asym on",),
                (f"{CLI} HSET 'PORT|{port}' pfc_asym off",),
            )


def _other_queue(tables: Tables, port: str, maps: Row, paused: Iterable[int]) -> Iterator[Remark]:
    """PFC's own map of priorities to queues against where these priorities are sent from."""
    name = reference(maps.get("pfc_to_queue_map", ""))
    held = tables.get("MAP_PFC_PRIORITY_TO_QUEUE", {}).get(name, {})
    sent = tables.get("TC_TO_QUEUE_MAP", {}).get(reference(maps.get("tc_to_queue_map", "")), {})
    for priority in paused:
        key = str(priority)
        stopped, used = held.get(key, key), sent.get(key, key)
        if stopped != used:
            yield Remark(
                "class-map",
                port,
                f"PFC of priority {key} stops queue {stopped}, its packets leave by queue {used}",
                (f"MAP_PFC_PRIORITY_TO_QUEUE|{name}: {key} -> {stopped}",),
                (f"{CLI} HSET 'MAP_PFC_PRIORITY_TO_QUEUE|{name}' {key} {used}",),
            )


def _long_poll(tables: Tables, port: str) -> Iterator[Remark]:
    """The watchdog looks at most once in each of its polls."""
    table = tables.get("PFC_WD", {})
    poll_ms = table.get("GLOBAL", {}).get("POLL_INTERVAL", "")
    detect_ms = table.get(port, {}).get("detection_time", "")
    if poll_ms.isdecimal() and detect_ms.isdecimal() and int(poll_ms) > int(detect_ms):
        yield Remark(
            "watchdog-times",
            port,
            f"the PFC watchdog looks every {poll_ms} ms, "
            f"and is to detect a storm within {detect_ms} ms",
            (f"PFC_WD|GLOBAL: POLL_INTERVAL {poll_ms}",),
            (f"{CLI} HSET 'PFC_WD|GLOBAL' POLL_INTERVAL {detect_ms}",),
        )
