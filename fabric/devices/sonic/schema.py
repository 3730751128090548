"""Types and bounds of the CONFIG_DB tables that PAISoar writes.

Written down from the YANG modules of sonic-net/sonic-buildimage,
src/sonic-yang-models/yang-models: sonic-port-qos-map, sonic-dscp-tc-map,
sonic-tc-queue-map, sonic-tc-priority-group-map, sonic-pfc-priority-queue-map,
sonic-wred-profile, sonic-scheduler, sonic-queue, sonic-buffer-profile,
sonic-buffer-pg, sonic-pfcwd, sonic-port (read in revisions of 2021 to 2026).
Nothing on a switch checks what is written to CONFIG_DB by ``sonic-db-cli``;
this does, before anything is sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fabric.devices.sonic.database import Row, Tables, place, reference

Limits = range | frozenset[str] | re.Pattern[str]

UINT64 = range(2**64)
BOOLEAN = frozenset({"true", "false"})
PRIORITY_LIST = re.compile(r"(?:[0-7](?:,[0-7])*)?")
NAME = re.compile(r"[a-zA-Z0-9][-a-zA-Z0-9_]{0,31}")
ECN_MODES = frozenset(
    {
        "ecn_none",
        "ecn_green",
        "ecn_yellow",
        "ecn_red",
        "ecn_green_yellow",
        "ecn_green_red",
        "ecn_yellow_red",
        "ecn_all",
    }
)
_PERCENT = range(101)

FIELDS: dict[str, dict[str, Limits]] = {
    "PORT": {"mtu": range(68, 9217)},
    "WRED_PROFILE": {
        "ecn": ECN_MODES,
        **{f"wred_{color}_enable": BOOLEAN for color in ("green", "yellow", "red")},
        **{
            f"{color}_{bound}_threshold": UINT64
            for color in ("green", "yellow", "red")
            for bound in ("min", "max")
        },
        **{f"{color}_drop_probability": _PERCENT for color in ("green", "yellow", "red")},
    },
    "SCHEDULER": {"type": frozenset({"DWRR", "WRR", "STRICT"}), "weight": range(1, 101)},
    "BUFFER_PROFILE": {
        "size": UINT64,
        "xon": UINT64,
        "xoff": UINT64,
        "xon_offset": UINT64,
        "static_th": UINT64,
        "dynamic_th": range(-8, 8),
    },
    "PORT_QOS_MAP": {"pfc_enable": PRIORITY_LIST, "pfcwd_sw_enable": PRIORITY_LIST},
    "PFC_WD": {
        "action": frozenset({"drop", "forward", "alert"}),
        "detection_time": range(100, 5001),
        "restoration_time": range(100, 60_001),
        "POLL_INTERVAL": range(100, 1001),
    },
}
# Maps: what a field's name and its value may be.
MAPS: dict[str, tuple[range, range]] = {
    "DSCP_TO_TC_MAP": (range(64), range(16)),
    "TC_TO_QUEUE_MAP": (range(16), range(16)),
    "TC_TO_PRIORITY_GROUP_MAP": (range(16), range(8)),
    "MAP_PFC_PRIORITY_TO_QUEUE": (range(8), range(8)),
}
# Field -> the table in which its value must be a key.
REFERENCES: dict[str, dict[str, str]] = {
    "PORT_QOS_MAP": {
        "dscp_to_tc_map": "DSCP_TO_TC_MAP",
        "tc_to_queue_map": "TC_TO_QUEUE_MAP",
        "tc_to_pg_map": "TC_TO_PRIORITY_GROUP_MAP",
        "pfc_to_queue_map": "MAP_PFC_PRIORITY_TO_QUEUE",
    },
    "QUEUE": {"scheduler": "SCHEDULER", "wred_profile": "WRED_PROFILE"},
    "BUFFER_PG": {"profile": "BUFFER_PROFILE"},
    "BUFFER_PROFILE": {"pool": "BUFFER_POOL"},
}
NAMED = (*MAPS, "WRED_PROFILE", "SCHEDULER", "BUFFER_PROFILE")
_MANDATORY = {"BUFFER_PROFILE": ("size", "pool"), "BUFFER_PG": ("profile",)}


def violations(written: Tables, tables: Tables) -> Iterator[str]:
    """What in ``written`` no YANG model would take; references are sought in ``tables``."""
    for name, table in written.items():
        for key, row in table.items():
            for fault in _row(name, key, row, tables):
                yield f"{name}|{key}: {fault}"


def _row(name: str, key: str, row: Row, tables: Tables) -> Iterator[str]:
    if name in NAMED and not NAME.fullmatch(key):
        yield "no name of a row"
    if name in ("QUEUE", "BUFFER_PG"):
        ports, indices = place(key)
        if len(ports) != 1 or not indices or max(indices) > 7:
            yield "no port and index"
    for field in _MANDATORY.get(name, ()):
        if field not in row:
            yield f"{field} is mandatory"
    for field, value in row.items():
        yield from _field(name, field, value, tables)
    yield from _together(name, row, tables)


def _field(name: str, field: str, value: str, tables: Tables) -> Iterator[str]:
    if name in MAPS:
        from_, to = MAPS[name]
        if not (_fits(field, from_) and _fits(value, to)):
            yield f"{field} -> {value} is out of range"
        return
    table = REFERENCES.get(name, {}).get(field)
    if table is not None:
        if reference(value) not in tables.get(table, {}):
            yield f"{field}: there is no {table}|{value}"
        return
    limits = FIELDS.get(name, {}).get(field)
    if limits is None:
        yield f"{field} is no field of this table"
    elif not _fits(value, limits):
        yield f"{field}: {value!r} is not allowed"


def _fits(value: str, limits: Limits) -> bool:
    if isinstance(limits, re.Pattern):
        return limits.fullmatch(value) is not None
    if isinstance(limits, frozenset):
        return value in limits
    return re.fullmatch(r"-?\d+", value) is not None and int(value) in limits


def _together(name: str, row: Mapping[str, str], tables: Tables) -> Iterator[str]:
    if name == "WRED_PROFILE":
        for color in ("green", "yellow", "red"):
            low, high = row.get(f"{color}_min_threshold"), row.get(f"{color}_max_threshold")
            if low and high and int(high) < int(low):
                yield f"{color}_max_threshold is below {color}_min_threshold"
    if name == "PFC_WD":
        poll = tables.get("PFC_WD", {}).get("GLOBAL", {}).get("POLL_INTERVAL", "0")
        for field in ("detection_time", "restoration_time"):
            if field in row and int(row[field]) < int(poll):
                yield f"{field} is below POLL_INTERVAL ({poll} ms)"
