"""How saved outputs lie on disk, and reading them however they were saved.

One folder a device, named as the device; one file a command, named as the
command, with every character that is no letter, digit, point, underscore or dash
replaced by an underscore, and ``.txt`` behind it. ``cables.csv`` and ``devices.csv``
lie beside the folders; both may be absent.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from fabric.errors import InputError
from fabric.provisioning.planfile import write_private
from fabric.saved.forms import named_as_read
from fabric.saved.terminal import clean
from fabric.site import MAX_CABLE_M, Site
from fabric.textfile import MAX_FILE_BYTES, read_bytes, refuse_binary
from fabric.topology import PortRef
from fabric.units import format_speed, parse_speed_bps

SUFFIX = ".txt"
CABLES, DEVICES = "cables.csv", "devices.csv"
MAX_NAME = 200
NIC_CELLS = ("interface", "family", "rdma", "speed", "address")
_CHOICES = {"kind": ("switch", "host"), "role": ("leaf", "spine")}
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class CableRow:
    """One line of ``cables.csv``; what it leaves empty is None."""

    a: PortRef
    b: PortRef
    speed_bps: int | None = None
    length_m: float | None = None


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


@dataclass(frozen=True)
class SavedFolder:
    """All files of a folder: by device, by file name. ``notes`` say what was odd."""

    path: Path
    files: dict[str, dict[str, str]]
    cables: tuple[CableRow, ...] | None
    devices: dict[str, DeviceRow]
    notes: tuple[str, ...] = field(default=())


@lru_cache(maxsize=8192)
def file_name(command: str) -> str:
    """The file that holds this command's output.

    A name that no file system takes is cut, and made unique by a digest.
    """
    name = _UNSAFE.sub("_", command)
    if len(name) > MAX_NAME:
        name = f"{name[:MAX_NAME]}-{hashlib.sha256(command.encode()).hexdigest()[:8]}"
    return name + SUFFIX


def save_outputs(folder: Path, outputs: Mapping[str, Mapping[str, str]]) -> None:
    """Write outputs by device and command; readable by their owner only.

    InputError where the folder cannot be written.
    """
    try:
        for device, by_command in outputs.items():
            (folder / device).mkdir(parents=True, exist_ok=True)
            for command, text in by_command.items():
                write_private(folder / device / file_name(command), text)
    except OSError as error:
        file = error.filename or folder
        raise InputError(f"cannot be written: {error.strerror}", file=file) from error


def save_site(folder: Path, site: Site) -> None:
    """Write ``cables.csv`` and ``devices.csv`` of a site beside its outputs."""
    cables = ["a,b,speed,length_m"]
    cables += [
        f"{link.a},{link.b},{format_speed(link.speed_bps)},{link.length_m:g}"
        for link in site.topology.links
    ]
    devices = ["device,kind,os,model,role"]
    for name, spec in site.devices.items():
        if spec.kind == "switch":
            devices.append(f"{name},switch,{spec.os},{spec.model},{spec.role}")
        else:
            devices.append(f"{name},host,linux,,")
    for file, lines in ((CABLES, cables), (DEVICES, devices)):
        write_private(folder / file, "".join(f"{line}\n" for line in lines))


def load_folder(path: Path) -> SavedFolder:
    """Read every device's folder. InputError where there is none, or a CSV is wrong."""
    try:
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}",
            file=path,
            advice="One folder a device, one file a command: see docs/audit.md.",
        ) from error
    files: dict[str, dict[str, str]] = {}
    notes: list[str] = []
    for entry in entries:
        if entry.is_dir():
            if not entry.name.startswith("."):
                files[entry.name] = _files(entry.path, notes)
        elif entry.name not in (CABLES, DEVICES):
            notes.append(f"{entry.name}: lies in no device's folder; not looked at")
    if not files:
        raise InputError(
            "holds no device's folder",
            file=path,
            advice="One folder a device, one file a command: see docs/audit.md.",
        )
    cables = load_cables(path / CABLES) if (path / CABLES).exists() else None
    devices = load_devices(path / DEVICES) if (path / DEVICES).exists() else {}
    return SavedFolder(path, files, cables, devices, tuple(notes))


def _files(folder: str, notes: list[str]) -> dict[str, str]:
    found = {}
    for entry in os.scandir(folder):
        name = entry.name
        if name.startswith(".") or not entry.is_file():
            continue
        if not name.endswith(SUFFIX):
            notes.append(f"{Path(folder).name}/{name}: does not end in {SUFFIX}; not looked at")
            continue
        try:
            with open(entry.path, "rb", buffering=0) as file:  # noqa: PTH123 - many, and quick
                too_large = entry.stat().st_size > MAX_FILE_BYTES
                data = b"" if too_large else file.readall()
        except OSError as error:
            notes.append(f"{Path(folder).name}/{name}: cannot be read: {error.strerror}")
            continue
        if too_large:
            limit = MAX_FILE_BYTES // 2**20
            notes.append(f"{Path(folder).name}/{name}: larger than {limit} MiB; not looked at")
            continue
        found[name] = clean(decoded(data), name.removesuffix(SUFFIX), Path(folder).name)
    return named_as_read(found, Path(folder).name, notes)


def decoded(data: bytes) -> str:
    """The text of a file: UTF-8, UTF-16 with its mark, or else one byte a character."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _rows(path: Path, first: str) -> list[tuple[int, dict[str, str]]]:
    """Rows of a CSV with their lines; a file without a header has the columns in order."""
    text = decoded(read_bytes(path))
    refuse_binary(path, text.encode("utf-8", "replace"))
    order = {"a": ("a", "b", "speed", "length_m"), "device": ("device", "kind", "os", "model")}
    head = text.partition("\n")[0]
    # Spreadsheets write semicolons where a comma is the decimal point.
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    columns: tuple[str, ...] = order[first]
    rows: list[tuple[int, dict[str, str]]] = []
    for cells in _cells(path, reader):
        line = reader.line_num
        values = [cell.strip() for cell in cells]
        if not any(values) or values[0].startswith("#"):
            continue
        if not rows and values[0].lower() in (first, "name"):
            columns = tuple(first if value.lower() == "name" else value.lower() for value in values)
            continue
        if any(values[len(columns) :]):
            raise InputError(
                f"has {len(values)} values, and {len(columns)} columns: {', '.join(columns)}",
                file=path,
                line=line,
                advice="The first line names the columns. A value with a comma stands in quotes.",
            )
        rows.append((line, dict(zip(columns, values, strict=False))))
    return rows


def _cells(path: Path, reader: Any) -> Iterator[list[str]]:  # noqa: ANN401 - csv names no type
    try:
        yield from reader
    except csv.Error as error:
        raise InputError(f"is no CSV: {error}", file=path, line=reader.line_num) from error


def load_cables(path: Path) -> tuple[CableRow, ...]:
    """Read ``cables.csv``: a, b, speed, length_m. InputError names a wrong line."""
    cables = []
    for line, row in _rows(path, "a"):
        try:
            cables.append(
                CableRow(
                    PortRef.parse(row.get("a", "")),
                    PortRef.parse(row.get("b", "")),
                    parse_speed_bps(row["speed"]) if row.get("speed") else None,
                    _metres(row["length_m"]) if row.get("length_m") else None,
                )
            )
        except ValueError as error:
            raise InputError(
                str(error),
                file=path,
                line=line,
                advice="A line is a,b,speed,length_m, e.g. leaf1:Ethernet1/1,host1:ens1f0,25G,3.",
            ) from None
    return tuple(cables)


def _metres(text: str) -> float:
    try:
        length_m = float(text)
    except ValueError:
        length_m = 0.0
    if not 0 < length_m <= MAX_CABLE_M:
        raise ValueError(f"{text!r} is no length in metres up to {MAX_CABLE_M:,}")
    return length_m


def load_devices(path: Path) -> dict[str, DeviceRow]:
    """Read ``devices.csv``: device, kind, os, model and more. InputError names a wrong line."""
    known = set(DeviceRow.__dataclass_fields__)
    devices: dict[str, DeviceRow] = {}
    for line, row in _rows(path, "device"):
        values = {name: value for name, value in row.items() if name in known}
        if not values.get("device"):
            raise InputError("names no device", file=path, line=line)
        if values["device"] in devices:
            raise InputError(f"names {values['device']} a second time", file=path, line=line)
        for name, choices in _CHOICES.items():
            if values.get(name) and values[name] not in choices:
                raise InputError(
                    f"{values[name]!r} is no {name}: {' or '.join(choices)}",
                    file=path,
                    line=line,
                    key=name,
                )
        try:
            nic_cells(values.get("nics", ""))
        except ValueError as error:
            raise InputError(str(error), file=path, line=line, key="nics") from None
        devices[values["device"]] = DeviceRow(**values)
    return devices


def nic_cells(text: str) -> list[list[str]]:
    """``NIC_CELLS`` of each NIC in the column ``nics``; ValueError where it is wrong."""
    found = [one.split(":", len(NIC_CELLS) - 1) for one in text.split()]
    for cells in found:
        if not cells[0]:
            raise ValueError(
                f"{':'.join(cells)!r} names no interface; "
                "write ens1f0:mlx5:mlx5_0:100G:10.0.0.1, what is not known left empty"
            )
        if len(cells) > 3 and cells[3]:
            parse_speed_bps(cells[3])
    return found
