"""Faults that an operator's mistake leaves on a switch."""

from __future__ import annotations

from collections.abc import Callable

from fabric.twin.sonic.configdb import ConfigDb

OLD_MTU = "1500"


def pfc_off(database: ConfigDb, port: str) -> str:
    """One port no longer pauses anybody, nor lets itself be paused."""
    database.write(f"PORT_QOS_MAP|{port}", {"pfc_enable": ""})
    return f"priority flow control switched off on {port}"


def mtu(database: ConfigDb, port: str) -> str:
    """One port has the MTU of plain Ethernet."""
    database.write(f"PORT|{port}", {"mtu": OLD_MTU})
    return f"MTU set back to {OLD_MTU} on {port}"


def ecn_off(database: ConfigDb, _port: str) -> str:
    """The WRED profiles no longer mark. ``port`` does not matter."""
    used = {row.get("wred_profile") for row in database.table("QUEUE").values()}
    changed = []
    for name, row in database.table("WRED_PROFILE").items():
        if name in used and row.get("ecn", "ecn_none") != "ecn_none":
            database.write(f"WRED_PROFILE|{name}", {"ecn": "ecn_none"})
            changed.append(name)
    if not changed:
        raise ValueError("no WRED profile marks ECN: there is nothing to switch off")
    return f"ecn set to ecn_none in WRED_PROFILE {', '.join(changed)}"


BREAKS: dict[str, Callable[[ConfigDb, str], str]] = {
    "pfc-off": pfc_off,
    "mtu": mtu,
    "ecn-off": ecn_off,
}
