"""Devices and cables from a NetBox export: what its REST API returns, as JSON.

Either one object with the lists ``devices``, ``cables`` and ``interfaces``, or a file
for each; a list is as the API's page has it (``results``), several pages, or bare.
Fields are those of NetBox 2.10 to 4.x, read in its own serializers
(``netbox/dcim/api/serializers_/`` devices, cables, device_components) and choices
(``netbox/dcim/choices.py``): ``/api/dcim/devices/``, ``cables/``, ``interfaces/``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fabric.bringin.ansible_source import nics_of
from fabric.bringin.netbox_cables import Ports, cable_rows
from fabric.bringin.netbox_file import Item, Lists, read_lists, slug
from fabric.bringin.sources import (
    Source,
    SourceDevice,
    SourceNic,
    beside_fabric,
    kind_of,
    left_out,
    role_of,
)
from fabric.errors import InputError
from fabric.saved.systems import system
from fabric.saved.tables import Origin

# Of its statuses, those of a device that is there and runs.
_IN_USE = ("", "active", "staged")
_MIN_NIC_BPS = 25 * 10**9


def read_netbox(paths: Sequence[Path]) -> Source:
    """Devices and cables of an export in these files.

    InputError names what is not as NetBox writes it, a page that is not the last, and
    devices that share a name.
    """
    lists = Lists()
    for path in paths:
        read_lists(path, lists)
    if not lists.devices and not lists.cables:
        raise InputError(
            "has no devices",
            file=paths[0],
            advice="One object with the lists devices, cables and interfaces, or a file for each.",
        )
    path = lists.files.get("devices", paths[0])
    try:
        return _source(path, lists)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(
            f"is not as NetBox exports it: {type(error).__name__}: {error}", file=path
        ) from error


def _source(path: Path, lists: Lists) -> Source:
    ports = Ports(lists.interfaces)
    devices: dict[str, SourceDevice] = {}
    out: list[tuple[str, str]] = []
    seen: dict[str, str] = {}
    for item in lists.devices:
        name = str(item.get("name") or "")
        for key in ("device_type", "primary_ip4", "primary_ip", "config_context"):
            if not isinstance(item.get(key) or {}, Mapping):
                raise InputError(
                    f"device {name}: {key} is a {type(item[key]).__name__}, and no object",
                    file=path,
                    key=key,
                    advice="Keep what /api/dcim/devices/?limit=0 answers, as it is.",
                )
        if not name:
            out.append((str(item.get("display") or f"id {item.get('id')}"), "it has no name"))
            continue
        reason = _not_ours(item)
        if reason:
            out.append((name, reason))
            continue
        if name in seen:
            raise InputError(
                f"two devices are called {name}, of sites {seen[name]} and {_site(item)}",
                file=path,
                advice="Export one site: /api/dcim/devices/?site=SLUG&limit=0.",
            )
        seen[name] = _site(item)
        devices[name] = _device(path, item, ports)
    rows, notes = cable_rows(
        lists, ports, set(devices) if lists.devices else None, {name for name, _ in out}
    )
    return Source(devices, rows, notes=(*left_out(out), *notes))


def _site(item: Item) -> str:
    return slug(item.get("site")) or "none"


def _ours(item: Item) -> Mapping[str, Any]:
    context = item.get("config_context") or {}
    ours = context.get("paisoar") or {}
    if not isinstance(ours, Mapping):
        raise TypeError(f"config context paisoar of {item.get('name')} is {ours!r}, no mapping")
    return ours


def _role(item: Item) -> str:
    # ``device_role`` until 3.5.
    return slug(item.get("role") or item.get("device_role"))


def _not_ours(item: Item) -> str:
    """Why this device is no part of the fabric; empty where it is one."""
    status = slug(item.get("status"))
    if status not in _IN_USE:
        return f"its status is {status}"
    if _ours(item).get("kind"):
        return ""
    role = _role(item)
    if beside_fabric([role]):
        return f"its role is {role}"
    # Counted since 3.6: what feeds others with power, or serves consoles, is no switch.
    for count, what in (
        ("power_outlet_count", "power outlets"),
        ("console_server_port_count", "ports for others' consoles"),
    ):
        if item.get(count):
            return f"it has {what}"
    if kind_of("", [role]):
        return ""
    model = item.get("device_type") or {}
    name = str(item["name"])
    words = [name, slug(model), str(model.get("model") or "")]
    if beside_fabric(words):
        return f"its role {role or '(none)'} says nothing, and its name or type is not a switch's"
    if not system(slug(item.get("platform"))) and not kind_of("", [name]):
        return (
            f"neither its role {role or '(none)'} nor a platform tells a switch or a host "
            "(config context paisoar.kind does)"
        )
    return ""


def _device(path: Path, item: Item, ports: Ports) -> SourceDevice:
    name = str(item["name"])
    ours = _ours(item)
    model = item.get("device_type") or {}
    role = _role(item)
    platform = str(ours.get("os") or slug(item.get("platform")))
    os_name = system(platform)
    # A switch that runs plain Linux is a switch all the same.
    kind = str(ours.get("kind") or kind_of("", [role]) or kind_of(os_name, [name]))
    address = item.get("primary_ip4") or item.get("primary_ip") or {}
    nics = nics_of(Origin(path), name, ours.get("nics"))
    if kind == "host" and not nics:
        nics = tuple(_nics(name, ports))
    return SourceDevice(
        name,
        kind,
        "" if kind == "host" or os_name == "linux" else os_name,
        "" if kind == "host" or os_name else platform,
        model=str(ours.get("model") or model.get("part_number") or model.get("model") or ""),
        role=str(ours.get("role") or role_of([role]) or role_of([name])),
        buffer=str(ours.get("buffer") or ""),
        address=str(address.get("address", "")).partition("/")[0],
        nics=nics,
        origin=Origin(path),
    )


def _nics(device: str, ports: Ports) -> Iterator[SourceNic]:
    """Interfaces of a host of 25G or more: what carries RDMA, and not its management."""
    for end, port in ports.known.items():
        if end.device == device and port.physical and (port.speed_bps or 0) >= _MIN_NIC_BPS:
            yield SourceNic(end.port, speed_bps=port.speed_bps)
