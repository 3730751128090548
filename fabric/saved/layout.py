"""How saved outputs lie on disk, and reading them however they were saved.

One folder a device, named as the device; one file a command, named as the
command, with every character that is no letter, digit, point, underscore or dash
replaced by an underscore, and ``.txt`` behind it. ``cables.csv`` and ``devices.csv``
lie beside the folders; both may be absent.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from fabric.errors import InputError
from fabric.provisioning.planfile import write_private
from fabric.saved.forms import named_as_read
from fabric.saved.tables import (
    CABLES,
    DEVICES,
    CableRow,
    DeviceRow,
    decoded,
    load_cables,
    load_devices,
)
from fabric.saved.terminal import clean
from fabric.site import Site
from fabric.textfile import MAX_FILE_BYTES
from fabric.units import format_speed

SUFFIX = ".txt"
MAX_NAME = 200
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


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
        is_device = any(entry.name.endswith(SUFFIX) for entry in entries)
        raise InputError(
            "holds no device's folder",
            file=path,
            advice=f"It may be one itself: name {path.resolve().parent}."
            if is_device
            else "One folder a device, one file a command: see docs/audit.md.",
        )
    cables = load_cables(path / CABLES) if (path / CABLES).exists() else None
    devices = load_devices(path / DEVICES) if (path / DEVICES).exists() else {}
    return SavedFolder(path, files, cables, devices, tuple(notes))


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether it can be a file to read: a link to itself is, and reading it then fails."""
    try:
        return entry.is_file()
    except OSError:
        return True


def _files(folder: str, notes: list[str]) -> dict[str, str]:
    found = {}
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        notes.append(f"{Path(folder).name}: cannot be read: {error.strerror}")
        entries = []
    for entry in entries:
        name = entry.name
        if name.startswith(".") or not _is_file(entry):
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
