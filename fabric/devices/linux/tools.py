"""What ``ethtool``, ``ip -j`` and ``systemctl is-enabled`` print.

Formats: ethtool 5.x and 6.x (``-i``, ``-a``, ``-S``), iproute2 5.x and 6.x
(``ip -j link show``), systemd 245 to 257.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from fabric.devices.base import ReadError

_STATISTIC = re.compile(r"\s*([A-Za-z0-9_.\[\]-]+):\s*(\d+)\s*")
_FAILED_UNIT = re.compile(r"Failed to get unit file state for (\S+): .*")


def driver_info(text: str) -> dict[str, str]:
    """``ethtool -i``: driver, version, firmware-version, bus-info and more."""
    info = {}
    for line in text.splitlines():
        key, separator, value = line.partition(":")
        if separator and " " not in key.strip():
            info[key.strip()] = value.strip()
    return info


def link_pause(text: str) -> tuple[bool, bool] | None:
    """``ethtool -a``: whether 802.3x pause is received and sent; None where not shown."""
    shown = {
        key.strip(): value.strip()
        for key, separator, value in (line.partition(":") for line in text.splitlines())
        if separator
    }
    states = [shown.get("RX"), shown.get("TX")]
    if any(state not in ("on", "off") for state in states):
        return None
    return states[0] == "on", states[1] == "on"


def statistics(text: str) -> dict[str, int]:
    """``ethtool -S``: every counter whose value is a number."""
    return {
        match[1]: int(match[2])
        for line in text.splitlines()
        if (match := _STATISTIC.fullmatch(line))
    }


def link_mtu(command: str, text: str, interface: str) -> int | None:
    """``ip -j link show dev IF``: the MTU; None where the interface is not in it.

    Raises ReadError where the output is no JSON list.
    """
    try:
        links = json.loads(text)
    except ValueError as error:
        first = text.strip().splitlines()[0] if text.strip() else "nothing"
        raise ReadError(f"{command}: expected JSON, got {first!r}") from error
    if not isinstance(links, list):
        raise ReadError(f"{command}: expected a JSON list of links, got {text[:60]!r}")
    for link in links:
        if isinstance(link, dict) and link.get("ifname") == interface:
            mtu = link.get("mtu")
            return mtu if isinstance(mtu, int) else None
    return None


def link_admin_up(text: str, interface: str) -> bool | None:
    """``ip -j link show dev IF``: whether the interface is configured up; None where not shown."""
    try:
        links = json.loads(text)
    except ValueError:
        return None
    for link in links if isinstance(links, list) else ():
        if isinstance(link, dict) and link.get("ifname") == interface and "flags" in link:
            return "UP" in link["flags"]
    return None


def enabled_units(text: str, units: Sequence[str]) -> dict[str, bool]:
    """``systemctl is-enabled UNIT...``: which of these units start at boot.

    systemd prints one word a unit, in the order asked, but a complaint of its
    own (on another stream) about a unit that has no file. A unit that cannot be
    told is left out.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    absent = {match[1] for line in lines if (match := _FAILED_UNIT.fullmatch(line))}
    words = [line for line in lines if re.fullmatch(r"[a-z-]+", line)]
    present = [unit for unit in units if unit not in absent]
    known = dict.fromkeys((unit for unit in units if unit in absent), False)
    if len(words) == len(present):
        known |= {unit: word == "enabled" for unit, word in zip(present, words, strict=True)}
    return known
