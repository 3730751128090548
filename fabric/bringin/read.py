"""Telling what a source is, and reading it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fabric.bringin.ansible_source import VARIABLES, nics_of, read_inventory
from fabric.bringin.netbox import read_netbox
from fabric.bringin.sources import (
    Source,
    SourceDevice,
    SourceNic,
    kind_of,
    merged,
    role_of,
    system,
)
from fabric.errors import InputError
from fabric.saved.layout import (
    CABLES,
    DEVICES,
    NIC_CELLS,
    DeviceRow,
    load_cables,
    load_devices,
    nic_cells,
)
from fabric.saved.offline import SavedFabric, read_folder
from fabric.site import HostSpec, SwitchSpec

_ADVICE = "Name an inventory, a NetBox export, a devices.csv or a folder of outputs."


def read_sources(paths: Sequence[Path]) -> Source:
    """All of these sources in one: what an earlier one does not tell, a later one may.

    Files of a NetBox export (``*.json``) are one source, in the place of the first.
    InputError as for :func:`read_source`.
    """
    exports = [path for path in paths if _is_export(path)]
    sources = []
    for path in paths:
        if path in exports[1:]:
            continue
        sources.append(read_netbox(exports) if path in exports else read_source(path))
    return merged(sources)


def read_source(path: Path) -> Source:
    """Read a source: a folder of saved outputs, ``*.csv``, ``*.json``, or an inventory.

    A folder is an inventory where it has ``group_vars`` or ``host_vars``, or files and
    no folder for any device. InputError where it is none of these.
    """
    if path.is_dir():
        return _folder(path)
    if not path.exists():
        raise InputError("no such file", file=path, advice=_ADVICE)
    if path.suffix == ".csv":
        return _table(path)
    if _is_export(path):
        return read_netbox([path])
    return read_inventory(path)


def _is_export(path: Path) -> bool:
    return path.suffix == ".json" and path.is_file()


def _folder(path: Path) -> Source:
    entries = [entry for entry in sorted(path.iterdir()) if not entry.name.startswith(".")]
    if not entries:
        raise InputError("is an empty folder", file=path, advice=_ADVICE)
    foreign = [entry for entry in entries if entry.name not in (DEVICES, CABLES)]
    folders = [entry for entry in foreign if entry.is_dir() and entry.name not in VARIABLES]
    devices = [_table(path / DEVICES)] if (path / DEVICES).exists() else []
    tables = devices or ([_table(path / CABLES)] if (path / CABLES).exists() else [])
    if not foreign:
        return tables[0]
    if not folders or any(entry.name in VARIABLES for entry in foreign):
        return merged([read_inventory(path), *tables])
    return merged([*devices, source_of(read_folder(path))])


def _table(path: Path) -> Source:
    """``devices.csv``, with the ``cables.csv`` that lies beside it; or cables alone."""
    if path.name == CABLES:
        return Source(cables=load_cables(path))
    rows = load_devices(path)
    devices = {name: _row(path, row) for name, row in rows.items()}
    beside = path.parent / CABLES
    return Source(devices, load_cables(beside) if beside.exists() else ())


def _row(path: Path, row: DeviceRow) -> SourceDevice:
    os_name = system(row.os) or row.os
    kind = row.kind or kind_of(os_name, [row.role, row.device])
    nics = {cells[0]: dict(zip(NIC_CELLS, cells, strict=False)) for cells in nic_cells(row.nics)}
    return SourceDevice(
        row.device,
        kind,
        "" if kind == "host" else os_name,
        row.model,
        row.role or role_of([row.device]),
        row.buffer,
        row.address,
        nics=nics_of(path, row.device, nics),
    )


def source_of(saved: SavedFabric) -> Source:
    """What saved outputs show: systems, models, NICs, cables by LLDP, and the intent."""
    devices: dict[str, SourceDevice] = {}
    for name, spec in saved.site.devices.items():
        if isinstance(spec, SwitchSpec):
            model = "" if spec.model == "unknown" else spec.model
            devices[name] = SourceDevice(name, "switch", spec.os, model, spec.role)
        elif isinstance(spec, HostSpec):
            nics = tuple(
                SourceNic(port, nic.family, nic.rdma, nic.speed) for port, nic in spec.nics.items()
            )
            devices[name] = SourceDevice(name, "host", nics=nics)
    notes = [f"left out, it cannot be read: {name}: {why}" for name, why in saved.failed.items()]
    return Source(
        devices,
        saved.cables,
        saved.site.intent,
        (*saved.notes, *notes, *(f"assumed: {line}" for line in saved.assumed)),
    )
