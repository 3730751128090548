"""Names: of interfaces, of DSCPs, and of the objects that PAISoar makes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from fabric.devices.sections import Section

PREFIX = "PAISOAR-"
MAX_NAME = 40  # of a class map or policy map

# What NX-OS calls queue and class N of the 8-queue model.
DEFAULT_QUEUE = 0

_SHORT = {"Eth": "Ethernet", "Br-Eth": "Br-Ethernet", "Po": "port-channel", "Lo": "loopback"}
_PHYSICAL = re.compile(r"(?:Br-)?Ethernet\d+(?:/\d+)+")

_DSCP_WORDS = {
    "default": 0,
    "ef": 46,
    **{f"cs{number}": number * 8 for number in range(1, 8)},
    **{f"af{x}{y}": x * 8 + y * 2 for x in range(1, 5) for y in range(1, 4)},
}


def interface_name(text: str) -> str:
    """The long name of an interface: ``Eth1/1`` is ``Ethernet1/1``."""
    match = re.fullmatch(r"([A-Za-z-]+?)(\d.*)", text.strip())
    if not match:
        return text.strip()
    return _SHORT.get(match[1], match[1]) + match[2]


def is_physical(name: str) -> bool:
    """Whether this long name is a front port; breakout ports are, subinterfaces are not."""
    return _PHYSICAL.fullmatch(name) is not None


def parse_dscps(text: str) -> tuple[int, ...]:
    """DSCPs of a ``match dscp`` list, numbers or names; ValueError for anything else."""
    dscps: set[int] = set()
    for part in text.replace(" ", "").split(","):
        first, dash, last = part.partition("-")
        low = _dscp(first)
        high = _dscp(last) if dash else low
        if not 0 <= low <= high < 64:
            raise ValueError(f"{part} is no DSCP range")
        dscps.update(range(low, high + 1))
    return tuple(sorted(dscps))


def _dscp(word: str) -> int:
    return _DSCP_WORDS[word] if word in _DSCP_WORDS else int(word)


def format_dscps(dscps: Iterable[int]) -> str:
    """``24-31,46``: the list as NX-OS writes it."""
    ranges: list[list[int]] = []
    for dscp in sorted(dscps):
        if ranges and dscp == ranges[-1][1] + 1:
            ranges[-1][1] = dscp
        else:
            ranges.append([dscp, dscp])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def dscp_class_name(dscps: Iterable[int]) -> str:
    """Name of the class map of these DSCPs; spelled out where it fits."""
    text = format_dscps(dscps)
    name = f"{PREFIX}DSCP-{text.replace(',', '_')}"
    return name if len(name) <= MAX_NAME else f"{PREFIX}DSCP-H{_digest(text)}"


def content_name(kind: str, children: Iterable[Section]) -> str:
    """Name of an object of this kind, derived from the lines that it holds.

    An object is never redefined under its name: what holds other lines has
    another name, so that it can be defined beside the one in use.
    """
    text = "\n".join(line for child in children for line in child.texts())
    return f"{PREFIX}{kind}-{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
