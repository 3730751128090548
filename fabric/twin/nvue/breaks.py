"""Faults that an operator's mistake leaves on a switch."""

from __future__ import annotations

from collections.abc import Callable

from fabric.twin.nvue.configuration import Configuration

OLD_MTU = "1500"


def pfc_off(configuration: Configuration, port: str) -> str:
    """One port no longer pauses anybody, nor lets itself be paused."""
    configuration.remove(("interface", port, "qos", "pfc"))
    configuration.remove(("interface", port, "qos", "pfc-watchdog"))
    return f"priority flow control switched off on {port}"


def mtu(configuration: Configuration, port: str) -> str:
    """One port has the MTU of plain Ethernet."""
    configuration.put(("interface", port, "link", "mtu"), OLD_MTU)
    return f"MTU set back to {OLD_MTU} on {port}"


def ecn_off(configuration: Configuration, _port: str) -> str:
    """The congestion-control profiles no longer mark. ``port`` does not matter."""
    changed = []
    for name, profile in configuration.at("qos", "congestion-control").items():
        for row in profile.get("traffic-class", {}).values():
            if row.get("ecn") != "disable":
                row["ecn"] = "disable"
                changed.append(name)
    if not changed:
        raise ValueError("no congestion-control profile marks ECN: nothing to switch off")
    return f"ecn disabled in congestion-control {', '.join(dict.fromkeys(changed))}"


BREAKS: dict[str, Callable[[Configuration, str], str]] = {
    "pfc-off": pfc_off,
    "mtu": mtu,
    "ecn-off": ecn_off,
}
