"""Faults that an operator's mistake leaves on a switch."""

from __future__ import annotations

from collections.abc import Callable

from fabric.twin.nxos.config import DEFAULT_MTU, Config


def pfc_off(config: Config, port: str) -> str:
    """One port no longer pauses anybody, nor lets itself be paused."""
    config.interfaces[port].pfc_mode = "off"
    config.interfaces[port].pfc_send_tlv = False
    return f"priority flow control switched off on {port}"


def mtu(config: Config, port: str) -> str:
    """One port is back to the default MTU."""
    config.interfaces[port].mtu = DEFAULT_MTU
    return f"MTU set back to {DEFAULT_MTU} on {port}"


def ecn_off(config: Config, _port: str) -> str:
    """The queuing policies lose WRED, and with it ECN. ``port`` does not matter."""
    changed = []
    for name, policy in config.queuing_policies.items():
        for actions in policy.classes.values():
            if actions.random_detect:
                actions.random_detect = ""
                changed.append(name)
    if not changed:
        raise ValueError("no queuing policy marks ECN: there is nothing to switch off")
    return f"random-detect (ECN) removed from policy-map {', '.join(dict.fromkeys(changed))}"


BREAKS: dict[str, Callable[[Config, str], str]] = {
    "pfc-off": pfc_off,
    "mtu": mtu,
    "ecn-off": ecn_off,
}
NEEDS_PORT = frozenset({"pfc-off", "mtu"})
