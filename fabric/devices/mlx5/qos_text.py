"""What ``mlnx_qos -i IF`` prints.

Source of the format: Mellanox/mlnx-tools python/mlnx_qos (``pretty_print``) and
its older form ofed_scripts/utils/mlnx_qos: the older one prints no default
priority, no receive buffers and no ``buffer`` row; the sum of the buffers is
called ``total_size`` or ``max_buffer_size``; traffic classes come in any order;
DSCPs come eight a line, ascending or descending, or as the driver's own table
(``DSCP  Priority``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from fabric.devices.base import ReadError
from fabric.qos import DSCP_COUNT, PRIORITY_COUNT

Tsa = tuple[str, int]  # ets, strict or vendor; percent (0 but for ets)

_DSCPS = re.compile(r"prio:(\d)\s+dscp:([\d,\s]*)")
_MORE_DSCPS = re.compile(r"(?:\d+,)+\d*")
_DSCP_ROW = re.compile(r"(\d+)\s+(\d)")
_CLASS = re.compile(r"tc:\s*(\d+)\b.*?tsa:\s*(\w+)(?:,\s*bw:\s*(\d+)%)?")
_RATE = re.compile(r"ratelimit:\s*(?:(unlimited)|(\d+(?:\.\d+)?)\s*([KMG])bps)")
_BPS = {"K": 10**3, "M": 10**6, "G": 10**9}
_NAMELESS_CLASS = re.compile(r"(?:ets|strict|vendor|unknown)\b.*")
_PRIORITY = re.compile(r"priority:\s*(\d)")


@dataclass
class QosText:
    """What one output shows; what it does not show is None or absent.

    ``max_rate_bps`` is 0 for a traffic class without a limit.
    """

    dcbx: Literal["os", "firmware"] | None = None
    trust: Literal["dscp", "pcp", "none"] | None = None
    dscp_to_priority: dict[int, int] = field(default_factory=dict)
    buffer_bytes: dict[int, int] = field(default_factory=dict)
    cable_m: int | None = None
    pfc: dict[int, bool] = field(default_factory=dict)
    priority_to_buffer: dict[int, int] = field(default_factory=dict)
    priority_to_class: dict[int, int] = field(default_factory=dict)
    tsa: dict[int, Tsa] = field(default_factory=dict)
    max_rate_bps: dict[int, int] = field(default_factory=dict)


@lru_cache(maxsize=256)
def parse_qos(command: str, text: str) -> QosText:
    """Read the output. Raises ReadError where nothing in it is mlnx_qos's own.

    The result is shared between ports that print the same: nobody changes it.
    """
    parser = _Parser()
    for line in text.splitlines():
        if line.strip():
            parser.line(line.strip())
    if parser.shown == QosText():
        first = text.strip().splitlines()[0] if text.strip() else "nothing"
        raise ReadError(f"{command}: this is not what mlnx_qos prints: {first!r}")
    return parser.shown


class _Parser:
    """Line by line: headings switch the section that later lines belong to."""

    def __init__(self) -> None:
        self.shown = QosText()
        self._section: Callable[[str], None] = self._skip
        self._columns: list[str] = []
        self._class: int | None = None
        self._priority: int | None = None

    def line(self, line: str) -> None:
        """Take one line, without blanks around it."""
        key, _, value = line.partition(":")
        single = {
            "DCBX mode": self._dcbx,
            "Priority trust state": self._trust,
            "Receive buffer size (bytes)": self._buffers,
            "Cable len": self._cable,
        }.get(key)
        sections = {
            "dscp2prio mapping": self._dscps,
            "default priority": self._skip,
            "PFC configuration": self._pfc,
        }
        if single is not None:
            single(value.strip())
        elif key in sections:
            self._section, self._priority = sections[key], None
        elif match := _CLASS.match(line):
            self._section, self._class = self._classes, int(match[1])
            self.shown.tsa[self._class] = (match[2], int(match[3] or 0))
            if rate := _RATE.search(line):
                bps = 0 if rate[1] else round(float(rate[2]) * _BPS[rate[3]])
                self.shown.max_rate_bps[self._class] = bps
        elif _NAMELESS_CLASS.fullmatch(line):
            self._section = self._skip
        else:
            self._section(line)

    def _skip(self, line: str) -> None:
        """Nothing that we read."""

    def _dcbx(self, value: str) -> None:
        self.shown.dcbx = _DCBX.get(value.partition(" ")[0].lower())

    def _trust(self, value: str) -> None:
        self.shown.trust = _TRUST.get(value)

    def _buffers(self, value: str) -> None:
        self.shown.buffer_bytes = _numbers(value.split(","))

    def _cable(self, value: str) -> None:
        self.shown.cable_m = int(value) if value.isdigit() else None

    def _dscps(self, line: str) -> None:
        self._priority = _dscps(self.shown.dscp_to_priority, line, self._priority)

    def _pfc(self, line: str) -> None:
        name, *cells = line.split()
        if name == "priority":
            self._columns = cells
        elif name == "enabled":
            row = _row(self._columns, cells)
            self.shown.pfc = {priority: bool(on) for priority, on in row.items()}
        elif name == "buffer":
            self.shown.priority_to_buffer = _row(self._columns, cells)

    def _classes(self, line: str) -> None:
        if self._class is not None and (match := _PRIORITY.fullmatch(line)):
            self.shown.priority_to_class[int(match[1])] = self._class


_DCBX: dict[str, Literal["os", "firmware"]] = {"os": "os", "firmware": "firmware"}
_TRUST: dict[str, Literal["dscp", "pcp", "none"]] = {"dscp": "dscp", "pcp": "pcp", "none": "none"}


def _dscps(table: dict[int, int], line: str, last_priority: int | None) -> int | None:
    """One line of the DSCP map into the table; the priority that a next line may continue."""
    if match := _DSCPS.match(line):
        last_priority, dscps = int(match[1]), match[2]
    elif last_priority is not None and _MORE_DSCPS.fullmatch(line):
        dscps = line
    elif match := _DSCP_ROW.fullmatch(line):
        last_priority, dscps = int(match[2]), match[1]
        if int(dscps) < DSCP_COUNT and last_priority < PRIORITY_COUNT:
            table[int(dscps)] = last_priority
        return None
    else:
        return None
    for dscp in re.findall(r"\d+", dscps):
        if int(dscp) < DSCP_COUNT and last_priority < PRIORITY_COUNT:
            table[int(dscp)] = last_priority
    return last_priority


def _numbers(cells: list[str]) -> dict[int, int]:
    """The numbers among the first eight cells, by their position."""
    return {
        index: int(cell)
        for index, cell in enumerate(cells[:PRIORITY_COUNT])
        if cell.strip().isdigit()
    }


def _row(columns: list[str], cells: list[str]) -> dict[int, int]:
    """A row of the PFC table by priority; cells that are no number are left out."""
    return {
        int(column): int(cell)
        for column, cell in zip(columns, cells, strict=False)
        if column.isdigit() and int(column) < PRIORITY_COUNT and cell.isdigit()
    }
