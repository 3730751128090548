"""Cables of a NetBox export: from port to port, also through patch panels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from fabric.bringin.netbox_file import Item, Lists, slug
from fabric.saved.tables import CableRow
from fabric.topology import PortRef

_METRES = {"m": 1.0, "cm": 0.01, "km": 1000.0, "ft": 0.3048, "in": 0.0254, "mi": 1609.344}
_SPEED = re.compile(r"(\d+(?:\.\d+)?)([gt])base")
_BPS = {"g": 10**9, "t": 10**12}
_MANAGEMENT = re.compile(r"mgmt|management|oob|ipmi|bmc|idrac|ilo", re.IGNORECASE)
_INTERFACE = "dcim.interface"
_NOT_THERE = ("planned", "decommissioning")
_QUOTED = 5


@dataclass(frozen=True, slots=True)
class Port:
    """What is told of an interface. ``physical``: it carries data, and is no LAG or VLAN."""

    speed_bps: int | None
    physical: bool
    peers: tuple[PortRef, ...]


class Ports:
    """The interfaces of an export, by device and name."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.known: dict[PortRef, Port] = {}
        for item in items:
            end = _end(item)
            if end is not None:
                self.known[end] = _port(item)

    def is_management(self, end: PortRef) -> bool:
        """Whether this is a port for management."""
        port = self.known.get(end)
        return bool(_MANAGEMENT.match(end.port)) or (port is not None and not port.physical)

    def speed_bps(self, *ends: PortRef) -> int | None:
        """The speed of the slower of these ports that are known."""
        speeds = [port.speed_bps for end in ends if (port := self.known.get(end)) is not None]
        return min((speed for speed in speeds if speed), default=None)


def cable_rows(
    lists: Lists, ports: Ports, devices: AbstractSet[str] | None, out: AbstractSet[str]
) -> tuple[tuple[CableRow, ...], tuple[str, ...]]:
    """Cables between these devices (all, where None), and what is odd about others.

    ``out`` were left out on purpose: their cables go without a word.
    """
    rows: dict[frozenset[PortRef], CableRow] = {}
    notes: list[str] = []
    strangers: dict[str, int] = {}
    ends = [*_direct(lists.cables, notes), *_through_panels(ports)]
    for a, b, length_m in ends:
        if ports.is_management(a) or ports.is_management(b):
            continue
        absent = [end.device for end in (a, b) if devices is not None and end.device not in devices]
        for device in set(absent) - out:
            strangers[device] = strangers.get(device, 0) + 1
        if not absent and a.device != b.device:
            rows.setdefault(frozenset((a, b)), CableRow(a, b, ports.speed_bps(a, b), length_m))
    if strangers:
        some = ", ".join(f"{name} ({count})" for name, count in list(strangers.items())[:_QUOTED])
        more = f" and {len(strangers) - _QUOTED} more" if len(strangers) > _QUOTED else ""
        notes.append(f"cables left out, to what is not among the devices: {some}{more}")
    return tuple(rows.values()), tuple(notes)


def _direct(
    items: Sequence[Item], notes: list[str]
) -> Iterator[tuple[PortRef, PortRef, float | None]]:
    absent = 0
    open_ended: list[PortRef] = []
    for item in items:
        try:
            a, b = _terminations(item, "a"), _terminations(item, "b")
            length_m = _metres(item)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"cable {item.get('id')}: {error!r}") from error
        if not a or not b:  # power, console, patch panels, or an end that nobody has entered
            if (a and _is_open(item, "b")) or (b and _is_open(item, "a")):
                open_ended += a or b
            continue
        if slug(item.get("status")) in _NOT_THERE:
            absent += 1
        elif len(a) != len(b):
            ends = f"{a[0]} - {b[0]}"
            notes.append(
                f"cable left out, {ends}: {len(a)} ports on one end and {len(b)} on the other; "
                "a port that is broken out has an interface for each part"
            )
        else:
            yield from ((one, other, length_m) for one, other in zip(a, b, strict=True))
    if open_ended:
        some = ", ".join(map(str, open_ended[:_QUOTED]))
        more = f" and {len(open_ended) - _QUOTED} more" if len(open_ended) > _QUOTED else ""
        notes.append(f"cables left out, their other end is missing in NetBox: {some}{more}")
    if absent:
        notes.append(f"cables left out, planned or being removed: {absent}")


def _through_panels(ports: Ports) -> Iterator[tuple[PortRef, PortRef, float | None]]:
    """What interfaces say they reach; the cable itself ends at a panel."""
    for end, port in ports.known.items():
        if len(port.peers) == 1:
            yield end, port.peers[0], None


def _metres(item: Item) -> float | None:
    length = item.get("length")
    return float(length) * _METRES[slug(item.get("length_unit")) or "m"] if length else None


def _terminations(item: Item, side: str) -> list[PortRef]:
    """The ports of one side; NetBox 3.3 and later list them, before there was one of each."""
    many = item.get(f"{side}_terminations")
    if many is None:
        kind = item.get(f"termination_{side}_type", _INTERFACE)
        many = [{"object_type": kind, "object": item.get(f"termination_{side}")}]
    ends = [
        _end(one.get("object") or {})
        for one in many
        if one.get("object_type", _INTERFACE) == _INTERFACE
    ]
    return [end for end in ends if end is not None]


def _is_open(item: Item, side: str) -> bool:
    """Whether nothing at all is entered at this side, not even a panel."""
    many = item.get(f"{side}_terminations")
    return not (many or item.get(f"termination_{side}"))


def _port(item: Item) -> Port:
    peers = item.get("connected_endpoints")
    kind = item.get("connected_endpoints_type")
    reached = item.get("connected_endpoints_reachable")
    if peers is None:  # until 3.2
        one = item.get("connected_endpoint")
        peers = [one] if one else []
        kind = item.get("connected_endpoint_type")
        reached = item.get("connected_endpoint_reachable")
    ends = [_end(peer) for peer in peers] if kind == _INTERFACE and reached is not False else []
    virtual = slug(item.get("type")) in ("virtual", "bridge", "lag")
    return Port(
        _bps(item),
        not (virtual or item.get("mgmt_only") or item.get("enabled") is False),
        tuple(end for end in ends if end is not None),
    )


def _end(item: Item) -> PortRef | None:
    """The port that an interface, or a cable's termination, is."""
    device = item.get("device")
    name = device.get("name") if isinstance(device, Mapping) else device
    return PortRef(str(name), str(item["name"])) if name and item.get("name") else None


def _bps(item: Item) -> int | None:
    """``speed`` is in kbit/s; a type is like ``25gbase-x-sfp28`` or ``1.6tbase-x-osfp1600``."""
    if item.get("speed"):
        return int(item["speed"]) * 1000
    match = _SPEED.match(slug(item.get("type")))
    return round(float(match[1]) * _BPS[match[2]]) if match else None
