"""The cables for which the switch has chosen the headroom of its ports by itself.

buffermgrd takes it from the length in ``CABLE_LENGTH``; platforms come with headrooms
for 5, 40 and 300 m. Source: sonic-net/sonic-swss cfgmgr/buffermgr.cpp;
sonic-net/sonic-buildimage, pg_profile_lookup.ini of the platforms.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from fabric.devices.sonic.database import Tables, cells, numbers, reference
from fabric.devices.sonic.owned import DYNAMIC_PROFILES
from fabric.qos import PortFacts

_LENGTHS_M = (0, 5, 40, 300)


def with_cables(facts: Sequence[PortFacts], tables: Tables) -> tuple[PortFacts, ...]:
    """These facts with the cables that headroom is for, and facts of ports that have no more."""
    lengths = {
        port: text for row in tables.get("CABLE_LENGTH", {}).values() for port, text in row.items()
    }
    known = {one.port: one for one in facts}
    for port, text in lengths.items():
        match = re.fullmatch(r"(\d+)m", text)
        if match and int(match[1]) and port in tables["PORT"] and _chosen(tables, port):
            shorter = max(length for length in _LENGTHS_M if length < int(match[1]))
            known[port] = dataclasses.replace(
                known.get(port, PortFacts(port)), headroom_cable_m=(shorter, int(match[1]))
            )
    return tuple(known.values())


def _chosen(tables: Tables, port: str) -> bool:
    """Whether a paused priority has a buffer that buffermgrd has chosen."""
    paused = numbers(tables.get("PORT_QOS_MAP", {}).get(port, {}).get("pfc_enable", ""))
    groups = cells(tables.get("BUFFER_PG", {}), port)
    profiles = (reference(groups.get(number, {}).get("profile", "")) for number in paused)
    return any(name.startswith(DYNAMIC_PROFILES) for name in profiles)
