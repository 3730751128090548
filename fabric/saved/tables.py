"""``cables.csv`` and ``devices.csv``, as people and spreadsheets write them.

A comma, a semicolon or a tab between the values; UTF-8, UTF-16 or Latin-1; the first
line names the columns in any order, or the columns stand in ours. What a table is of,
its columns tell; its file's name where they do not.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from fabric.devices.entries import HOSTS
from fabric.errors import InputError
from fabric.saved.systems import known_systems, system
from fabric.site import MAX_CABLE_M
from fabric.textfile import read_bytes, refuse_binary
from fabric.topology import PortRef
from fabric.units import format_speed, parse_size_bytes, parse_speed_bps

CABLES, DEVICES = "cables.csv", "devices.csv"
NIC_CELLS = ("interface", "family", "rdma", "speed", "address")
# In the order that they have where no line names them.
_CABLE_COLUMNS = ("a", "b", "speed", "length_m")
_DEVICE_COLUMNS = ("device", "kind", "os", "model")
_CHOICES = {"kind": ("switch", "host"), "role": ("leaf", "spine")}
_DECIMAL_COMMA = re.compile(r"(\d+),(\d{1,2})(?!\d)")
_DELIMITER = re.compile(r"sep=([,;\t])", re.IGNORECASE)
_LINE = "A line is a,b,speed,length_m, e.g. leaf1:Ethernet1/1,host1:ens1f0,25G,3."
_FIRST_LINE = (
    "The first line names the columns: a,b,speed,length_m of cables; "
    "device,kind,os,model,role,buffer,address,nics of devices."
)


class Origin(NamedTuple):
    """Where something was told; ``line`` from 1, None where the file has no lines of its own."""

    file: Path
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else str(self.file)


@dataclass(frozen=True, slots=True)
class CableRow:
    """One line of ``cables.csv``; what it leaves empty is None."""

    a: PortRef
    b: PortRef
    speed_bps: int | None = None
    length_m: float | None = None
    origin: Origin | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """One line of ``devices.csv``; what it leaves empty is empty.

    ``nics`` are a host's, blanks between them: ``ens1f0:mlx5:mlx5_0:100G:10.0.0.1``, of
    which only the interface has to be told (``NIC_CELLS``).
    """

    device: str
    kind: str = ""
    os: str = ""
    model: str = ""
    role: str = ""
    buffer: str = ""
    address: str = ""
    nics: str = ""
    origin: Origin | None = field(default=None, compare=False)


def decoded(data: bytes) -> str:
    """The text of a file: UTF-8, UTF-16 with its mark, or else one byte a character."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def kind_of_table(path: Path) -> str:
    """``CABLES`` or ``DEVICES``. InputError where the file is neither, or holds no line."""
    line, cells = _lines(path)[0]
    kind = _kind(path, cells)
    if not kind:
        raise InputError(
            f"names no columns that are known: {', '.join(cells)}",
            file=path,
            line=line,
            advice=_FIRST_LINE,
        )
    return kind


def _kind(path: Path, first: list[str]) -> str:
    """What the first line tells, or else the file's name; empty where neither does."""
    columns = _columns(first)
    if columns:
        return DEVICES if "device" in columns else CABLES
    if len(first) > 1 and all(_is_port(cell) for cell in first[:2]):
        return CABLES
    if path.name in (CABLES, DEVICES):
        return path.name
    return DEVICES if len(first) > 1 and first[1] in _CHOICES["kind"] else ""


def _columns(first: list[str]) -> tuple[str, ...]:
    """The columns that the first line names; none where it is a line like the others."""
    words = [cell.lower() for cell in first]
    if {"a", "b"} <= set(words):
        return tuple(words)
    if {"device", "name"} & set(words):
        return tuple("device" if word == "name" else word for word in words)
    return ()


def _is_port(text: str) -> bool:
    try:
        PortRef.parse(text)
    except ValueError:
        return False
    return True


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    """Values line by line, without blank lines and remarks. InputError where there is none."""
    text = decoded(read_bytes(path))
    refuse_binary(path, text.encode("utf-8", "replace"))
    first = next((line for line in text.splitlines() if _says(line)), "")
    # Spreadsheets write semicolons where a comma is the decimal point, and some say so first.
    said = _DELIMITER.fullmatch(first.strip())
    delimiter = said[1] if said else max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    lines = []
    for number, cells in _cells(path, reader):
        values = [cell.strip() for cell in cells]
        is_text = any(values) and not values[0].startswith("#")
        if is_text and not (said and values[0].lower() == "sep="):
            lines.append((number, values))
    if not lines:
        raise InputError("is empty", file=path, line=1, advice=_FIRST_LINE)
    return lines


def _says(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _cells(path: Path, reader: Any) -> Iterator[tuple[int, list[str]]]:  # noqa: ANN401 - csv names no type
    """Each row with the line that it begins in."""
    begin = 1
    try:
        for cells in reader:
            yield begin, cells
            begin = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"is no CSV: {error}", file=path, line=reader.line_num) from error


def _rows(path: Path, kind: str) -> list[tuple[Origin, dict[str, str]]]:
    """Rows of a table of this kind; InputError where it is of the other, or has no row."""
    lines = _lines(path)
    first_line, first = lines[0]
    what, other = ("cable", "devices") if kind == CABLES else ("device", "cables")
    if _kind(path, first) not in (kind, ""):
        raise InputError(
            f"is a table of {other}, not of {what}s", file=path, line=first_line, advice=_FIRST_LINE
        )
    columns = _columns(first)
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise InputError(f"names the column {twice} twice", file=path, line=first_line)
    if columns and not lines[1:]:
        raise InputError(
            f"names no {what} below its columns", file=path, line=first_line, advice=_FIRST_LINE
        )
    named = columns or (_CABLE_COLUMNS if kind == CABLES else _DEVICE_COLUMNS)
    rows = []
    for line, values in lines[1:] if columns else lines:
        if any(values[len(named) :]):
            raise InputError(
                f"has {len(values)} values, and {len(named)} columns: {', '.join(named)}",
                file=path,
                line=line,
                advice="The first line names the columns. A value with a comma stands in quotes.",
            )
        rows.append((Origin(path, line), dict(zip(named, values, strict=False))))
    return rows


def load_cables(path: Path) -> tuple[CableRow, ...]:
    """Read ``cables.csv``: a, b, speed, length_m. InputError names a wrong line.

    A cable may stand there twice, once from either end; not with two speeds or lengths.
    """
    return united(_cable(origin, row) for origin, row in _rows(path, CABLES))


def _cable(origin: Origin, row: Mapping[str, str]) -> CableRow:
    try:
        a, b = PortRef.parse(row.get("a", "")), PortRef.parse(row.get("b", ""))
        if a.device == b.device:
            raise ValueError(f"the cable at {a} ends on the device it starts from")
        return CableRow(
            a,
            b,
            parse_speed_bps(_with_point(row["speed"])) if row.get("speed") else None,
            _metres(row["length_m"]) if row.get("length_m") else None,
            origin,
        )
    except ValueError as error:
        raise InputError(str(error), file=origin.file, line=origin.line, advice=_LINE) from None


def united(rows: Iterable[CableRow]) -> tuple[CableRow, ...]:
    """Every cable once.

    InputError where one is told with two speeds or lengths, or an end is in two cables.
    """
    at: dict[PortRef, CableRow] = {}
    for row in rows:
        earlier = at.get(row.a) or at.get(row.b)
        if earlier is not None:
            row = _same(earlier, row)  # noqa: PLW2901
        at[row.a] = at[row.b] = row
    return tuple(dict.fromkeys(at.values()))


def _same(earlier: CableRow, row: CableRow) -> CableRow:
    """One of what two rows tell of a cable; InputError where they contradict each other."""
    origin = row.origin or Origin(Path())
    if {earlier.a, earlier.b} != {row.a, row.b}:
        twice = row.a if row.a in (earlier.a, earlier.b) else row.b
        reason = f"{twice} is in two cables, first in {earlier.origin}"
    elif earlier.speed_bps and row.speed_bps and earlier.speed_bps != row.speed_bps:
        reason = (
            f"{row.a} - {row.b} runs at {format_speed(row.speed_bps)} here, "
            f"at {format_speed(earlier.speed_bps)} in {earlier.origin}"
        )
    elif earlier.length_m and row.length_m and earlier.length_m != row.length_m:
        reason = (
            f"{row.a} - {row.b} is {row.length_m:g} m long here, "
            f"{earlier.length_m:g} m in {earlier.origin}"
        )
    else:
        speed, length = earlier.speed_bps or row.speed_bps, earlier.length_m or row.length_m
        return CableRow(earlier.a, earlier.b, speed, length, earlier.origin)
    raise InputError(reason, file=origin.file, line=origin.line, advice="Keep what is right.")


def _with_point(text: str) -> str:
    """``2,5G`` as ``2.5G``; a comma before three digits may mean thousands, and stays."""
    return _DECIMAL_COMMA.sub(r"\1.\2", text)


def _metres(text: str) -> float:
    try:
        length_m = float(_with_point(text))
    except ValueError:
        length_m = 0.0
    if not 0 < length_m <= MAX_CABLE_M:
        raise ValueError(f"{text!r} is no length in metres up to {MAX_CABLE_M:,}")
    return length_m


def load_devices(path: Path) -> dict[str, DeviceRow]:
    """Read ``devices.csv``: device, kind, os, model and more. InputError names a wrong line."""
    devices: dict[str, DeviceRow] = {}
    for origin, row in _rows(path, DEVICES):
        try:
            device = _device(origin, row)
        except _WrongCellError as error:
            raise InputError(error.reason, file=path, line=origin.line, key=error.column) from None
        earlier = devices.get(device.device)
        if earlier is not None and earlier.origin is not None:
            raise InputError(
                f"names {device.device} a second time, first in line {earlier.origin.line}",
                file=path,
                line=origin.line,
            )
        devices[device.device] = device
    return devices


class _WrongCellError(ValueError):
    def __init__(self, reason: str, column: str = "") -> None:
        super().__init__(reason)
        self.reason, self.column = reason, column


def _device(origin: Origin, row: Mapping[str, str]) -> DeviceRow:
    known = set(DeviceRow.__dataclass_fields__) - {"origin"}
    values = {name: value for name, value in row.items() if name in known}
    if not values.get("device"):
        raise _WrongCellError("names no device")
    for name, choices in _CHOICES.items():
        if values.get(name) and values[name] not in choices:
            raise _WrongCellError(f"{values[name]!r} is no {name}: {' or '.join(choices)}", name)
    if values.get("os") and values.get("kind") == "host":
        values["os"] = HOSTS
    elif values.get("os"):
        values["os"] = system(values["os"])
        if not values["os"] or (values["os"] == HOSTS and values.get("kind") == "switch"):
            raise _WrongCellError(f"{row['os']!r} is no system: {', '.join(known_systems())}", "os")
    if values.get("buffer"):
        values["buffer"] = _with_point(values["buffer"])
    for column, read in (("buffer", parse_size_bytes), ("nics", nic_cells)):
        try:
            if values.get(column):
                read(values[column])
        except ValueError as error:
            raise _WrongCellError(str(error), column) from None
    return DeviceRow(**values, origin=origin)


def nic_cells(text: str) -> list[list[str]]:
    """``NIC_CELLS`` of each NIC in the column ``nics``; ValueError where it is wrong."""
    found = [one.split(":", len(NIC_CELLS) - 1) for one in text.split()]
    names = [cells[0] for cells in found]
    for cells in found:
        if names.count(cells[0]) > 1:
            raise ValueError(f"names the interface {cells[0]!r} twice")
        if not cells[0]:
            raise ValueError(
                f"{':'.join(cells)!r} names no interface; "
                "write ens1f0:mlx5:mlx5_0:100G:10.0.0.1, what is not known left empty"
            )
        if len(cells) > 3 and cells[3]:
            cells[3] = _with_point(cells[3])
            parse_speed_bps(cells[3])
    return found
