"""Faults that only CONFIG_DB itself shows.

Sources: sonic-net/sonic-buildimage sonic-port-qos-map.yang, sonic-port.yang
(``pfc_asym``), sonic-pfcwd.yang; sonic-net/sonic-swss cfgmgr/buffermgr.cpp and
pg_profile_lookup.ini, whose lengths are 5, 40 and 300 m.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fabric.devices.base import Target
from fabric.devices.sonic.change import CLI
from fabric.devices.sonic.database import Row, Tables, cells, numbers, reference
from fabric.devices.sonic.owned import DYNAMIC_PROFILES
from fabric.qos import Remark

# Longest cable in metres of each set of headrooms that platforms come with.
_LENGTHS_M = (5, 40, 300)


def remarks(target: Target, tables: Tables) -> Iterator[Remark]:
    """What is wrong with the cabled ports that no port's state can say."""
    for port in target.ports:
        maps = tables.get("PORT_QOS_MAP", {}).get(port.name, {})
        if paused := numbers(maps.get("pfc_enable", "")):
            yield from _other_queue(tables, port.name, maps, paused)
            yield from _long_poll(tables, port.name)
            yield from _cable(tables, port.name, port.cable_m, paused)
        if tables.get("PORT", {}).get(port.name, {}).get("pfc_asym") == "on":
            yield Remark(
                "pfc",
                port.name,
                "PFC is asymmetric (pfc_asym on): the port obeys a pause of any priority",
                (f"PORT|{port.name}: pfc_asym on",),
                (f"{CLI} HSET 'PORT|{port.name}' pfc_asym off",),
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


def _cable(tables: Tables, port: str, cable_m: float, paused: Iterable[int]) -> Iterator[Remark]:
    """The length from which buffermgrd takes the headroom of the groups that it fills itself."""
    found = {row[port] for row in tables.get("CABLE_LENGTH", {}).values() if port in row}
    groups = cells(tables.get("BUFFER_PG", {}), port)
    profiles = {reference(groups.get(number, {}).get("profile", "")) for number in paused}
    if not any(name.startswith(DYNAMIC_PROFILES) for name in profiles):
        return
    for text in found:
        length = re.fullmatch(r"(\d+)m", text)
        least = next((metres for metres in _LENGTHS_M if metres >= cable_m), int(cable_m))
        if length and int(length[1]) and not cable_m <= int(length[1]) <= least:
            yield Remark(
                "cable-length",
                port,
                f"CABLE_LENGTH is {text}, the cable of {port} is {cable_m:g} m long",
                (f"buffers of {port} that follow from it: {', '.join(sorted(profiles))}",),
            )
