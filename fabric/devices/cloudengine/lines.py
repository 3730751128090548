"""The lines of VRP's configuration that are read and written, and where they were seen.

Sources: Huawei, CloudEngine configuration guides: "Example for Configuring AI ECN" and
other examples with their configuration scripts (``dcb pfc``, ``priority 3 4``, ``dcb pfc
enable mode manual``, ``diffserv domain``, ``ip-dscp-inbound 24 phb af3 green``, ``trust
dscp``, ``trust upstream``), "Configuring PFC" (EDOC1100155250: ``qos pq``, ``qos drr``);
published CE6863 configurations (``drop-profile``, ``color green buffer-size low-limit
... high-limit ... discard-percentage``, ``qos queue 3 wred ecn``, ``qos queue 3 ecn``, a
PFC profile with a name and ``dcb pfc enable NAME mode manual``).

Unverified: ``qos queue N drr weight W``; that ``buffer-size`` limits are bytes; that
``jumboframe enable N`` counts 18 bytes of Ethernet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fabric.qos import DSCP_COUNT

PREFIX = "paisoar-"
PFC = "dcb pfc "
DOMAIN = "diffserv domain "
DROP = "drop-profile "
HEADS = (PFC, DOMAIN, DROP)

# Per-hop behaviours in the order of their queues.
PHBS = ("be", "af1", "af2", "af3", "af4", "ef", "cs6", "cs7")

HEADER_BYTES = 18
MAX_FRAME_BYTES = 9216
DEFAULT_FRAME_BYTES = 9216
MIN_FRAME_BYTES = 1536

_PORT = re.compile(r"(?:\d+GE|GE|XGE|10GE)\d+(?:/\d+)+(?::\d+)?")
_INBOUND = re.compile(r"ip-dscp-inbound (\d+) phb (\w+)(?: \w+)?")


def is_physical(name: str) -> bool:
    """Whether this is a front port: ``100GE1/0/1``, ``25GE1/0/1:2``; no sub-interface."""
    return _PORT.fullmatch(name) is not None


def default_priority(dscp: int) -> int:
    """Where a domain puts a DSCP of which it says nothing: its eighth."""
    return dscp // 8


def inbound_line(dscp: int, priority: int) -> str:
    """The line of a domain that puts a DSCP into a priority."""
    return f"ip-dscp-inbound {dscp} phb {PHBS[priority]} green"


def inbound(line: str) -> tuple[int, int] | None:
    """DSCP and priority of such a line; None for another one."""
    match = _INBOUND.fullmatch(line)
    if match is None or match[2] not in PHBS or int(match[1]) >= DSCP_COUNT:
        return None
    return int(match[1]), PHBS.index(match[2])


def goes_without_saying(_section: str, line: str) -> bool:
    """Whether a domain may not show this line, since it does so anyway."""
    found = inbound(line)
    return found is not None and default_priority(found[0]) == found[1]


def to_list(values: Iterable[int]) -> str:
    """``0 to 5 7`` of numbers in order."""
    numbers = sorted(values)
    parts = []
    while numbers:
        first = last = numbers.pop(0)
        while numbers and numbers[0] == last + 1:
            last = numbers.pop(0)
        parts.append(str(first) if first == last else f"{first} to {last}")
    return " ".join(parts)


def of_list(text: str) -> Iterator[int]:
    """The numbers of ``0 to 5 7``."""
    for low, high in re.findall(r"(\d+)(?: to (\d+))?", text):
        yield from range(int(low), int(high or low) + 1)
