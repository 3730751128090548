"""Faults that an operator's mistake leaves on a switch."""

from __future__ import annotations

from collections.abc import Callable

from fabric.twin.junos.config import COS, Config


def pfc_off(config: Config, port: str) -> str:
    """One port has no congestion notification profile any more."""
    config.delete((COS, "interfaces", port, "congestion-notification-profile"))
    return f"priority flow control switched off on {port}"


def mtu(config: Config, port: str) -> str:
    """One port is back to the default MTU."""
    config.delete(("interfaces", port, "mtu"))
    return f"MTU set back to 1514 on {port}"


def ecn_off(config: Config, _port: str) -> str:
    """The schedulers no longer mark, they drop. ``port`` does not matter."""
    mark = "explicit-congestion-notification"
    names = [row[0] for row in config.under(COS, "schedulers") if row[1:] == (mark,)]
    if not names:
        raise ValueError("no scheduler marks ECN: there is nothing to switch off")
    for name in names:
        config.delete((COS, "schedulers", name, mark))
    return f"{mark} removed from scheduler {', '.join(names)}"


BREAKS: dict[str, Callable[[Config, str], str]] = {
    "pfc-off": pfc_off,
    "mtu": mtu,
    "ecn-off": ecn_off,
}
