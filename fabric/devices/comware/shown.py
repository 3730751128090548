"""Answers of Comware's display commands.

Formats: H3C, command references of S9825, S9855 and S6550X-HI, ``display
priority-flow-control interface`` (one row a priority, the port's name and modes in the
first; the list of priorities may be empty); of Comware 7, ``display lldp
neighbor-information list`` (columns below a header, whose order differs by release).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fabric.devices.comware.lines import of_list
from fabric.qos import PRIORITY_COUNT, Neighbor

_MODES = ("Disabled", "Auto", "Enabled")
_COLUMNS = ("System Name", "Local Interface", "Chassis ID", "Port ID")


@dataclass(slots=True)
class LivePfc:
    """PFC of one port: whether it operates, for which priorities, frames by priority."""

    operates: bool
    priorities: tuple[int, ...] | None
    frames: dict[int, tuple[int, int]] = field(default_factory=dict)


def parse_pfc(text: str) -> dict[str, LivePfc]:
    """Short name of a port -> what ``display priority-flow-control interface`` shows."""
    found: dict[str, LivePfc] = {}
    port: LivePfc | None = None
    for line in text.splitlines():
        words = line.split()
        if len(words) > 2 and words[1] in _MODES and words[2] in _MODES:
            port = found[words[0]] = LivePfc(words[2] == "Enabled", None)
            words = words[3:]
            # Prio Recv Send Inpps Outpps, with the list before them or without.
            if len(words) in (1, 4, 6):
                port.priorities = tuple(p for p in of_list(words[0]) if p < PRIORITY_COUNT)
                words = words[1:]
        if port is not None and len(words) in (3, 5) and all(map(str.isdecimal, words)):
            priority, received, sent = map(int, words[:3])
            port.frames[priority] = (received, sent)
    return found


def parse_neighbors(text: str, names: Mapping[str, str]) -> tuple[Neighbor, ...]:
    """Neighbours; ``names`` maps a short name's number to the port's full name.

    A name that is cut off by its column goes over to the next line: it is left out.
    """
    found = []
    starts: dict[str, int] = {}
    for line in text.splitlines():
        if all(column in line for column in ("System Name", "Local Interface", "Port ID")):
            starts = {column: line.index(column) for column in _COLUMNS if column in line}
            continue
        cells = _cells(line, starts)
        number = re.search(r"\d+(?:/\d+)+(?::\d+)?$", cells.get("Local Interface", ""))
        if number and cells.get("System Name") and number[0] in names:
            found.append(Neighbor(names[number[0]], cells["System Name"], cells["Port ID"]))
    return tuple(found)


def _cells(line: str, starts: Mapping[str, int]) -> dict[str, str]:
    ends = [*sorted(starts.values())[1:], len(line)]
    spans = zip(sorted(starts, key=lambda column: starts[column]), ends, strict=False)
    return {column: line[starts[column] : end].strip() for column, end in spans}
