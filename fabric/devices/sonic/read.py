"""From a switch's outputs to what it does."""

from __future__ import annotations

from functools import partial

from fabric.devices.base import Outputs, ReadError, Target, understood
from fabric.devices.sonic import database
from fabric.devices.sonic.cables import with_cables
from fabric.devices.sonic.database import Tables
from fabric.devices.sonic.names import is_physical
from fabric.devices.sonic.ports import PortReader
from fabric.devices.sonic.remarks import remarks
from fabric.devices.sonic.state import Version, parse_links, parse_neighbors, parse_version
from fabric.qos import DeviceQos

RUNNING = "show runningconfiguration all"
SAVED = "cat /etc/sonic/config_db.json"
VERSION = "show version"
LLDP = "show lldp table"
LINKS = "show interfaces status"

COMMANDS = (RUNNING, SAVED, VERSION, LLDP, LINKS)


def running_tables(target: Target, outputs: Outputs) -> Tables:
    """CONFIG_DB; ReadError without it, for nothing is known then."""
    tables = database.parse(outputs.get(RUNNING, ""), RUNNING)
    if not tables.get("PORT"):
        raise ReadError(f"{target.device}: '{RUNNING}' shows no PORT table")
    return tables


def read(target: Target, outputs: Outputs) -> DeviceQos:
    """What the switch does on every front port of its configuration.

    CONFIG_DB is what is asked of the switch; whether orchagent and the ASIC took
    it stands in the system's log alone, which is not read. Raises ReadError
    where an output is none of SONiC.
    """
    tables = running_tables(target, outputs)
    unread: list[str] = []
    version = _version(outputs, unread)
    reader = PortReader(tables, unread)
    ports = tuple(reader.port(name) for name in sorted(_ports(tables), key=_number))
    return DeviceQos(
        device=target.device,
        kind="switch",
        os="sonic",
        ports=ports,
        model=version.model,
        firmware=version.firmware,
        serial=version.serial,
        config_sha256=database.sha256(tables),
        saved=_saved(outputs, tables, unread),
        neighbors=understood(outputs, LLDP, "neighbours", parse_neighbors, unread),
        unread=tuple(dict.fromkeys(unread)),
        facts=with_cables(
            parse_links(
                outputs.get(LINKS, ""), {port.name for port in ports if port.pfc_priorities}
            ),
            tables,
        ),
        remarks=tuple(remarks(tables)),
    )


def _ports(tables: Tables) -> list[str]:
    return [name for name in tables["PORT"] if is_physical(name)]


def _number(name: str) -> int:
    return int(name.removeprefix("Ethernet"))


def _version(outputs: Outputs, unread: list[str]) -> Version:
    version = parse_version(outputs.get(VERSION, ""))
    for name in ("model", "firmware", "serial"):
        if not getattr(version, name):
            unread.append(f"{name}: not in '{VERSION}'")
    return version


def _saved(outputs: Outputs, tables: Tables, unread: list[str]) -> bool | None:
    parse = partial(database.parse, command=SAVED)
    booted = understood(outputs, SAVED, "saved configuration", parse, unread)
    return None if booted is None else database.sha256(booted) == database.sha256(tables)
