"""Which rows and fields of CONFIG_DB are ours, and what becomes of them.

Ours are the rows that bear our prefix and, on the ports of the intent, the
fields that it names: ``PORT`` mtu, the maps and PFC fields of ``PORT_QOS_MAP``,
the eight queues' ``scheduler`` and ``wred_profile``, the lossless priority
groups of ``BUFFER_PG``, the port's row of ``PFC_WD``. Everything else stays.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabric.devices.sonic.database import Row, Table, Tables, copy, place, reference, spans
from fabric.devices.sonic.names import PREFIX
from fabric.devices.sonic.schema import NAMED
from fabric.qos import PRIORITY_COUNT

MAP_FIELDS = (
    "dscp_to_tc_map",
    "tc_to_queue_map",
    "tc_to_pg_map",
    "pfc_to_queue_map",
    "pfc_enable",
    "pfcwd_sw_enable",
)
# A cable of no length: buffermgrd then leaves a port's priority groups alone,
# instead of putting its own profile in the place of ours at every reboot and
# change of PFC. Source: sonic-swss cfgmgr/buffermgr.cpp, doSpeedUpdateTask.
NO_CABLE = "0m"
# Profiles that buffermgrd chooses or computes by itself.
DYNAMIC_PROFILES = ("NULL", "pg_lossless_")


def adopted(running: Tables, intended: Tables) -> Tables:
    """The running tables with the intended rows in the place of ours."""
    ports = set(intended.get("PORT", {}))
    tables = copy(running)
    _objects(tables, intended)
    _fields(tables, intended, "PORT", ("mtu",), ports)
    _fields(tables, intended, "PORT_QOS_MAP", MAP_FIELDS, ports)
    _queues(tables, intended, ports)
    _groups(tables, intended, ports)
    _watchdogs(tables, intended, ports)
    _cables(tables, intended)
    _forget_unused(tables, intended)
    return tables


def _objects(tables: Tables, intended: Tables) -> None:
    for name in NAMED:
        for key, row in intended.get(name, {}).items():
            tables.setdefault(name, {})[key] = dict(row)


def _fields(
    tables: Tables, intended: Tables, name: str, fields: tuple[str, ...], ports: set[str]
) -> None:
    table = tables.setdefault(name, {})
    for port in ports:
        row = table.setdefault(port, {})
        wanted = intended.get(name, {}).get(port, {})
        for field in fields:
            row.pop(field, None)
            if field in wanted:
                row[field] = wanted[field]
        # Unchanged order and content compare equal; an emptied row is no row.
        if not row:
            del table[port]


def _queues(tables: Tables, intended: Tables, ports: set[str]) -> None:
    table = tables.setdefault("QUEUE", {})
    mine = {(port, number) for port in ports for number in range(PRIORITY_COUNT)}
    _take_out(table, mine)
    for key, row in intended.get("QUEUE", {}).items():
        table[key] = dict(row)


def _groups(tables: Tables, intended: Tables, ports: set[str]) -> None:
    """Lossless groups of our ports go, lossy ones stay but where a lossless one is wanted."""
    table = tables.setdefault("BUFFER_PG", {})
    mine = {
        (port, number)
        for key, row in table.items()
        for port in place(key)[0]
        for number in place(key)[1]
        if port in ports and _is_lossless(tables, row)
    }
    for key in intended.get("BUFFER_PG", {}):
        (port,), (number,) = place(key)
        mine.add((port, number))
    _take_out(table, mine)
    for key, row in intended.get("BUFFER_PG", {}).items():
        table[key] = dict(row)


def _is_lossless(tables: Tables, row: Row) -> bool:
    name = reference(row.get("profile", ""))
    profile = tables.get("BUFFER_PROFILE", {}).get(name, {})
    return name.startswith(DYNAMIC_PROFILES) or int(profile.get("xoff", 0)) > 0


def _take_out(table: Table, mine: set[tuple[str, int]]) -> None:
    """Remove these places; keys that hold others as well are split."""
    for key in list(table):
        ports, indices = place(key)
        held = {(port, number) for port in ports for number in indices}
        if not held & mine:
            continue
        row = table.pop(key)
        for port in ports:
            for span in spans(number for number in indices if (port, number) not in mine):
                table[f"{port}|{span}"] = dict(row)


def _watchdogs(tables: Tables, intended: Tables, ports: set[str]) -> None:
    table = tables.setdefault("PFC_WD", {})
    wanted = intended.get("PFC_WD", {})
    for port in ports:
        old = table.pop(port, {})
        if port in wanted:
            table[port] = {**_not_ours(old, wanted[port]), **wanted[port]}
    fields = ("detection_time", "restoration_time")
    times = [int(row[field]) for row in wanted.values() for field in fields]
    held = table.get("GLOBAL", {}).get("POLL_INTERVAL")
    if held is not None and times and int(held) > min(times):
        table["GLOBAL"] = {**table["GLOBAL"], "POLL_INTERVAL": str(min(times))}


def _not_ours(old: Row, wanted: Row) -> Row:
    return {field: value for field, value in old.items() if field not in wanted}


def _cables(tables: Tables, intended: Tables) -> None:
    """Keep buffermgrd off the groups of our ports.

    With the dynamic model (``buffer_model``) it respects a configured profile.
    """
    model = tables.get("DEVICE_METADATA", {}).get("localhost", {}).get("buffer_model")
    if model == "dynamic":
        return
    for row in tables.get("CABLE_LENGTH", {}).values():
        for port in intended.get("PORT", {}).keys() & row.keys():
            row[port] = NO_CABLE


def _forget_unused(tables: Tables, intended: Tables) -> None:
    """Drop rows of ours that are no longer intended and that nothing uses."""
    used = set(_used(tables))
    for name in NAMED:
        table = tables.get(name, {})
        for key in list(table):
            ours = key.startswith(PREFIX) and key not in intended.get(name, {})
            if ours and (name, key) not in used:
                del table[key]


def _used(tables: Tables) -> Iterator[tuple[str, str]]:
    for name, table in tables.items():
        if name in NAMED:
            continue
        for row in table.values():
            for value in row.values():
                for target in NAMED:
                    yield target, reference(value)
