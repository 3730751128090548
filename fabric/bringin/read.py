"""Telling what a source is, and reading it."""

from __future__ import annotations

from pathlib import Path

from fabric.bringin.ansible_source import read_inventory
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
from fabric.saved.layout import CABLES, DEVICES, DeviceRow, load_cables, load_devices
from fabric.saved.offline import SavedFabric, read_folder
from fabric.site import HostSpec, SwitchSpec


def read_source(path: Path) -> Source:
    """Read a source: a folder of saved outputs, ``*.csv``, ``*.json``, or an inventory.

    A folder with ``group_vars`` or ``host_vars`` is an inventory too. InputError
    where it is none of these.
    """
    if path.is_dir():
        if any((path / name).is_dir() for name in ("group_vars", "host_vars")):
            return read_inventory(path)
        shown = source_of(read_folder(path))
        told = path / DEVICES
        return merged([_table(told), shown]) if told.exists() else shown
    if not path.exists():
        raise InputError(
            "no such file",
            file=path,
            advice="Name an inventory, a NetBox export, a devices.csv or a folder of outputs.",
        )
    if path.suffix == ".csv":
        return _table(path)
    if path.suffix == ".json":
        return read_netbox(path)
    return read_inventory(path)


def _table(path: Path) -> Source:
    """``devices.csv``, with the ``cables.csv`` that lies beside it; or cables alone."""
    if path.name == CABLES:
        return Source(cables=load_cables(path))
    devices = {name: _row(row) for name, row in load_devices(path).items()}
    beside = path.parent / CABLES
    return Source(devices, load_cables(beside) if beside.exists() else ())


def _row(row: DeviceRow) -> SourceDevice:
    os_name = system(row.os) or row.os
    kind = row.kind or kind_of(os_name, [row.role, row.device])
    nics = []
    for text in row.nics.split():
        name, _, rest = text.partition(":")
        family, _, rdma = rest.partition(":")
        nics.append(SourceNic(name, family, rdma))
    return SourceDevice(
        row.device,
        kind,
        "" if kind == "host" else os_name,
        row.model,
        row.role or role_of([row.device]),
        row.buffer,
        row.address,
        nics=tuple(nics),
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
    notes = [f"{name}: {why}" for name, why in saved.failed.items()]
    return Source(
        devices,
        saved.cables,
        saved.site.intent,
        (*saved.notes, *notes, *(f"assumed: {line}" for line in saved.assumed)),
    )
