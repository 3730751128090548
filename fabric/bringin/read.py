"""Telling what a source is, and reading it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fabric.bringin.ansible_source import VARIABLES, nics_of, read_inventory
from fabric.bringin.names import refuse_names
from fabric.bringin.netbox import read_netbox
from fabric.bringin.sources import (
    Source,
    SourceDevice,
    SourceNic,
    kind_of,
    merged,
    role_of,
)
from fabric.errors import InputError
from fabric.saved.layout import SUFFIX
from fabric.saved.offline import SavedFabric, read_folder
from fabric.saved.tables import (
    CABLES,
    DEVICES,
    NIC_CELLS,
    DeviceRow,
    Origin,
    kind_of_table,
    load_cables,
    load_devices,
    nic_cells,
)
from fabric.site import HostSpec, SwitchSpec

_ADVICE = "Name an inventory, a NetBox export, a devices.csv or a folder of outputs."


def read_sources(paths: Sequence[Path]) -> Source:
    """All of these sources in one: what an earlier one does not tell, a later one may.

    Files of a NetBox export (``*.json``) are one source, in the place of the first.
    InputError as for :func:`read_source`, and for names that no device can have.
    """
    exports = [path for path in paths if _is_export(path)]
    sources = []
    for path in paths:
        if path in exports[1:]:
            continue
        sources.append(read_netbox(exports) if path in exports else read_source(path))
    source = merged(sources)
    refuse_names(source)
    return source


def read_source(path: Path) -> Source:
    """Read a source: a folder of saved outputs, ``*.csv``, ``*.json``, or an inventory.

    A folder is an inventory where it has ``group_vars`` or ``host_vars``, or files and
    no folder for any device. InputError where it is none of these.
    """
    if path.is_dir():
        return _folder(path)
    if not path.exists():
        raise InputError("no such file", file=path, advice=_ADVICE)
    if _is_table(path):
        return _table(path)
    if _is_export(path):
        return read_netbox([path])
    return read_inventory(path)


def _is_export(path: Path) -> bool:
    return path.suffix.lower() == ".json" and path.is_file()


def _is_table(path: Path) -> bool:
    return path.suffix.lower() == ".csv" and path.is_file()


def _folder(path: Path) -> Source:
    try:
        entries = [entry for entry in sorted(path.iterdir()) if not entry.name.startswith(".")]
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from error
    if not entries:
        raise InputError("is an empty folder", file=path, advice=_ADVICE)
    tables = [entry for entry in entries if _is_table(entry)]
    others = [entry for entry in entries if entry not in tables]
    if not others:
        return merged([_table(table) for table in tables])
    told = [_table(table) for table in tables if table.name in (DEVICES, CABLES)]
    is_device = all(entry.suffix == SUFFIX for entry in others)
    has_folders = any(entry.is_dir() for entry in others)
    if any(e.name in VARIABLES for e in others) or not (has_folders or is_device):
        # Another CSV is the playbooks' own, perhaps.
        strange = [table for table in tables if table.name not in (DEVICES, CABLES)]
        notes = tuple(f"not looked at, unless it is named by itself: {table}" for table in strange)
        return merged([read_inventory(path), *told, Source(notes=notes)])
    return merged([*told, source_of(read_folder(path))])


def _table(path: Path) -> Source:
    """A table of devices, with the ``cables.csv`` that lies beside it; or one of cables."""
    if kind_of_table(path) == CABLES:
        return Source(cables=load_cables(path))
    rows = load_devices(path)
    devices = {name: _row(path, row) for name, row in rows.items()}
    beside = path.parent / CABLES
    has_cables = path.name != CABLES and beside.exists()
    return Source(devices, load_cables(beside) if has_cables else ())


def _row(path: Path, row: DeviceRow) -> SourceDevice:
    kind = row.kind or kind_of(row.os, [row.role, row.device])
    nics = {cells[0]: dict(zip(NIC_CELLS, cells, strict=False)) for cells in nic_cells(row.nics)}
    return SourceDevice(
        row.device,
        kind,
        "" if kind == "host" else row.os,
        model=row.model,
        role=row.role or role_of([row.device]),
        buffer=row.buffer,
        address=row.address,
        nics=nics_of(row.origin or Origin(path), row.device, nics),
        origin=row.origin,
    )


def source_of(saved: SavedFabric) -> Source:
    """What saved outputs show: systems, models, NICs, cables by LLDP, and the intent.

    InputError where no device can be read from them.
    """
    if not saved.states:
        reasons = [f"{name}: {why}" for name, why in saved.failed.items()]
        more = f"; and {len(reasons) - 2} more" if len(reasons) > 2 else ""
        raise InputError(
            f"shows no device: {'; '.join(reasons[:2])}{more}", file=saved.site.path.parent
        )
    devices: dict[str, SourceDevice] = {}
    for name, spec in saved.site.devices.items():
        origin = Origin(saved.site.path.parent / name)
        if isinstance(spec, SwitchSpec):
            model = "" if spec.model == "unknown" else spec.model
            devices[name] = SourceDevice(
                name, "switch", spec.os, model=model, role=spec.role, origin=origin
            )
        elif isinstance(spec, HostSpec):
            nics = tuple(
                SourceNic(port, nic.family, nic.rdma, nic.speed) for port, nic in spec.nics.items()
            )
            devices[name] = SourceDevice(name, "host", nics=nics, origin=origin)
    notes = [f"left out, it cannot be read: {name}: {why}" for name, why in saved.failed.items()]
    return Source(
        devices,
        saved.cables,
        saved.site.intent,
        (*saved.notes, *notes),
        saved.assumed,
    )
