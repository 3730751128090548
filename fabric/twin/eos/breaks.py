"""Faults that an operator's mistake leaves on a switch."""

from __future__ import annotations

from collections.abc import Callable

from fabric.twin.eos.config import Block, Config


def _profile(config: Config, port: str) -> tuple[str, Block | None]:
    line = config.interface(port).lines.get("service-profile", "")
    name = line.removeprefix("service-profile ")
    return name, config.blocks.get(f"qos profile {name}")


def pfc_off(config: Config, port: str) -> str:
    """One port gets a copy of its profile that neither pauses nor lets itself be paused."""
    name, profile = _profile(config, port)
    lines = dict(profile.lines) if profile else {}
    lines.pop("priority-flow-control", None)
    copy = config.below(f"qos profile {name or 'DEFAULT'}-NO-PFC")
    copy.lines = lines
    copy.blocks = dict(profile.blocks) if profile else {}
    own = config.interface(port).lines
    own.pop("priority-flow-control", None)
    own["service-profile"] = f"service-profile {name or 'DEFAULT'}-NO-PFC"
    return f"priority flow control switched off on {port}"


def mtu(config: Config, port: str) -> str:
    """One port is back to the default MTU."""
    config.interface(port).lines.pop("mtu", None)
    return f"MTU set back to 1500 on {port}"


def ecn_off(config: Config, _port: str) -> str:
    """The qos profiles lose their thresholds. ``port`` does not matter."""
    changed = []
    for name, profile in config.named("qos profile "):
        for queue in profile.blocks.values():
            if queue.lines.pop("random-detect ecn", None):
                changed.append(name)
    if not changed:
        raise ValueError("no qos profile marks ECN: there is nothing to switch off")
    return f"random-detect ecn removed from qos profile {', '.join(dict.fromkeys(changed))}"


BREAKS: dict[str, Callable[[Config, str], str]] = {
    "pfc-off": pfc_off,
    "mtu": mtu,
    "ecn-off": ecn_off,
}
