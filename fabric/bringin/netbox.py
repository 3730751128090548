"""Devices and cables from a NetBox export: what its REST API returns, as JSON.

One object with ``devices`` and, where they were exported, ``cables`` and
``interfaces``; each a list, or the API's page with ``results``. Source of the
fields: NetBox 3.x and 4.x, ``/api/dcim/devices/``, ``/api/dcim/cables/`` and
``/api/dcim/interfaces/``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fabric.bringin.ansible_source import nics_of
from fabric.bringin.sources import Source, SourceDevice, SourceNic, kind_of, role_of, system
from fabric.errors import InputError
from fabric.saved.layout import CableRow
from fabric.textfile import read_text
from fabric.topology import PortRef

_METRES = {"m": 1.0, "cm": 0.01, "km": 1000.0, "ft": 0.3048, "in": 0.0254, "mi": 1609.344}
_SPEED = re.compile(r"(\d+)gbase")


def read_netbox(path: Path) -> Source:
    """Devices and cables of an export. InputError names what is not as NetBox writes it."""
    text = read_text(path)
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"is no JSON: {error.msg}", file=path, line=error.lineno) from error
    except RecursionError:
        raise InputError("is no export: it is nested too deeply", file=path) from None
    except ValueError as error:  # a number of more digits than Python reads
        reason = str(error).partition(";")[0]
        raise InputError(f"is no export: {reason}", file=path) from error
    if isinstance(data, list) or (isinstance(data, dict) and "results" in data):
        data = {"devices": data}
    if not isinstance(data, dict) or "devices" not in data:
        raise InputError(
            "has no devices",
            file=path,
            advice="One object with the lists devices, cables and interfaces.",
        )
    notes: list[str] = []
    try:
        interfaces = list(_list(data.get("interfaces", [])))
        pairs = ((_end(item), _bps(item)) for item in interfaces)
        speeds = {end: speed for end, speed in pairs if end and speed}
        devices = {}
        for item in _list(data["devices"]):
            device = _device(path, item, interfaces)
            if device is None:
                notes.append(f"{path.name}: a device without a name")
            else:
                devices[device.name] = device
        cables = tuple(_cables(_list(data.get("cables", [])), speeds, devices, notes))
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(
            f"is not as NetBox exports it: {type(error).__name__}: {error}", file=path
        ) from error
    return Source(devices, cables, notes=tuple(notes))


def _list(value: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401 - JSON
    yield from value["results"] if isinstance(value, Mapping) else value


def _slug(value: Any) -> str:  # noqa: ANN401 - an object, its slug, or nothing
    if isinstance(value, Mapping):
        return str(value.get("slug") or value.get("value") or value.get("name") or "")
    return str(value or "")


def _device(
    path: Path, item: Mapping[str, Any], interfaces: list[Mapping[str, Any]]
) -> SourceDevice | None:
    if not item.get("name"):
        return None
    name = str(item["name"])
    context = item.get("config_context") or {}
    ours = context.get("paisoar") or {}
    kind_type = item.get("device_type") or {}
    words = [_slug(item.get("role") or item.get("device_role")), name]
    os_name = system(str(ours.get("os") or "")) or system(_slug(item.get("platform")))
    kind = str(ours.get("kind") or kind_of(os_name, words))
    address = item.get("primary_ip4") or item.get("primary_ip") or {}
    nics = nics_of(path, name, ours.get("nics"))
    if kind == "host" and not nics:
        nics = tuple(_nics(name, interfaces))
    return SourceDevice(
        name,
        kind,
        "" if kind == "host" else os_name,
        str(ours.get("model") or kind_type.get("part_number") or kind_type.get("model") or ""),
        str(ours.get("role") or role_of(words)),
        str(ours.get("buffer") or ""),
        str(address.get("address", "")).partition("/")[0],
        nics=nics,
    )


def _nics(device: str, interfaces: list[Mapping[str, Any]]) -> Iterator[SourceNic]:
    """Interfaces of a host of 25G or more: what carries RDMA, and not its management."""
    for item in interfaces:
        end = _end(item)
        if end is not None and end.device == device and not item.get("mgmt_only"):
            speed = _bps(item)
            if speed is not None and speed >= 25 * 10**9:
                yield SourceNic(end.port, speed_bps=speed)


def _end(item: Mapping[str, Any]) -> PortRef | None:
    """The port that an interface, or a cable's termination, is."""
    device = item.get("device")
    name = device.get("name") if isinstance(device, Mapping) else device
    return PortRef(str(name), str(item["name"])) if name and item.get("name") else None


def _bps(item: Mapping[str, Any]) -> int | None:
    """``speed`` is in kbit/s; a type is like ``25gbase-x-sfp28``."""
    if item.get("speed"):
        return int(item["speed"]) * 1000
    match = _SPEED.match(_slug(item.get("type")))
    return int(match[1]) * 10**9 if match else None


def _cables(
    items: Iterator[Mapping[str, Any]],
    speeds: Mapping[PortRef, int],
    devices: Mapping[str, SourceDevice],
    notes: list[str],
) -> Iterator[CableRow]:
    for item in items:
        a, b = _termination(item, "a"), _termination(item, "b")
        if a is None or b is None:
            continue  # power, console, patch panels
        missing = [end.device for end in (a, b) if end.device not in devices]
        if missing:
            notes.append(f"cable {a} - {b}: {missing[0]} is not among the devices")
            continue
        length = item.get("length")
        unit = _slug(item.get("length_unit")) or "m"
        metres = float(length) * _METRES[unit] if length else None
        known = [speeds[end] for end in (a, b) if end in speeds]
        yield CableRow(a, b, min(known, default=None), metres)


def _termination(item: Mapping[str, Any], side: str) -> PortRef | None:
    """NetBox 3.3 and later list terminations; before, there was one of each."""
    many = item.get(f"{side}_terminations")
    if many:
        first = many[0]
        if first.get("object_type", "dcim.interface") != "dcim.interface":
            return None
        return _end(first.get("object") or {})
    if item.get(f"termination_{side}_type", "dcim.interface") != "dcim.interface":
        return None
    return _end(item.get(f"termination_{side}") or {})
