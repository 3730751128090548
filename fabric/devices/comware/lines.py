"""The lines of Comware's configuration that are read and written, and where they were seen.

Sources: H3C, command references of S9825, S9855, S6850 and S6550X-HI ("PFC commands",
"QoS commands": ``qos map-table``, ``import ... export ...``, ``qos trust``, ``qos wfq``, ``qos
wred queue``); published configurations of FourHundredGigE ports (``priority-flow-control
dot1p 5 headroom``, ``ingress-buffer dynamic``, ``qos wfq cs6 group sp``, ``qos wred queue
5 drop-level 0 low-limit ... high-limit ... discard-probability ...``).

Unverified: that a cell has 256 bytes (it depends on the chip); which share of the free
buffer a number behind ``dynamic`` stands for (that of Broadcom's chips is assumed); that
``byte-count`` takes every share from 1 to 100; that ``jumboframe enable N`` counts 18 bytes
of Ethernet; that lists are written ``3,4``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

CELL_BYTES = 256
HEADER_BYTES = 18
MIN_FRAME_BYTES = 1536
MAX_FRAME_BYTES = 9416

# Names of queues 0 to 7 in ``qos wfq``.
QUEUES = ("be", "af1", "af2", "af3", "af4", "ef", "cs6", "cs7")
DSCP_TABLE = "qos map-table dscp-dot1p"
QUEUE_TABLE = "qos map-table dot1p-lp"
# 802.1p priority -> local precedence, which is the queue, where the table says nothing.
DEFAULT_QUEUES = (2, 0, 1, 3, 4, 5, 6, 7)

ALPHAS = {number: 2.0 ** (number - 7) for number in range(11)}

_NAME = re.compile(r"([A-Za-z-]+)(\d+(?:/\d+)+(?::\d+)?)")
_IMPORT = re.compile(r"import ([\d ,to-]+) export (\d+)")
_FRONT = re.compile(r"(?:[A-Za-z-]+GigE|(?:Ten-)?GigabitEthernet)\d+(?:/\d+)+(?::\d+)?")


def is_physical(name: str) -> bool:
    """Whether this is a front port: ``HundredGigE1/0/1``, also broken out (``:2``).

    The management port ``M-GigabitEthernet0/0/0`` and sub-interfaces are none.
    """
    return _FRONT.fullmatch(name) is not None


def port_number(name: str) -> str:
    """``1/0/1`` of ``HundredGigE1/0/1`` and of its short name ``HGE1/0/1``."""
    match = _NAME.fullmatch(name)
    return match[2] if match else name


def default_of(table: str, value: int) -> int:
    """What a table makes of a value of which it says nothing."""
    return value // 8 if table == DSCP_TABLE else DEFAULT_QUEUES[value]


def import_line(value: int, result: int) -> str:
    """The line of a table for one value."""
    return f"import {value} export {result}"


def imports(line: str) -> Iterator[tuple[int, int]]:
    """Each value that a line names, and its result; none for another line."""
    match = _IMPORT.fullmatch(line)
    if match:
        yield from ((value, int(match[2])) for value in of_list(match[1]))


def goes_without_saying(table: str, line: str) -> bool:
    """Whether a table may not show this line, since it does so anyway."""
    found = list(imports(line))
    return bool(found) and all(default_of(table, value) == result for value, result in found)


def to_list(values: Iterable[int]) -> str:
    """``3,4`` of numbers."""
    return ",".join(map(str, sorted(values)))


def of_list(text: str) -> Iterator[int]:
    """The numbers of ``0,3-5``, ``0 to 3`` or ``3 4``."""
    for low, high in re.findall(r"(\d+)(?:\s*(?:-|to)\s*(\d+))?", text):
        yield from range(int(low), int(high or low) + 1)
