"""What the devices and cables of a ``fabric.yaml`` must be: pure rules, each fault at its key.

A device, cable or intent that is None is one that the file has, with faults of its own:
nothing follows from it.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from fabric.devices.entries import HOSTS, NICS, SWITCHES, known, load
from fabric.headroom import (
    headroom_bytes,
    mlx5_cable_m,
    mlx5_headroom_bytes,
    mlx5_min_buffer_bytes,
)
from fabric.topology import PortRef, Topology, unreachable_pairs
from fabric.units import format_size, format_speed, parse_speed_bps

if TYPE_CHECKING:
    from fabric.intent import Intent, Place
    from fabric.site import Cable, FabricFile, HostSpec, SwitchSpec

    Devices = Mapping[str, SwitchSpec | HostSpec] | Mapping[str, SwitchSpec | HostSpec | None]

# Ansible's own names, and the groups of our inventory: no device can have them.
RESERVED = ("all", "ungrouped", "localhost", "switches", "hosts")


def device_faults(devices: Devices) -> Iterator[Place]:
    """Names, systems, NIC families and addresses, device by device."""
    systems = [name for name in known(SWITCHES) if name != HOSTS]
    reached: dict[tuple[str, int], str] = {}
    addressed: dict[object, str] = {}
    for name, device in devices.items():
        if name in RESERVED:
            yield ("devices", name), f"no device can be called {name!r}: Ansible calls a group so"
        if device is None:
            continue
        if device.kind == "switch" and device.os not in systems:
            at = ("devices", name, "os")
            yield at, f"{device.os!r} is no system that is known; there are {', '.join(systems)}"
        way = ((device.mgmt.address or name).lower(), device.mgmt.port)
        if way in reached:
            reason = f"{way[0]} port {way[1]} is where {reached[way]} is reached, too"
            yield ("devices", name, *["mgmt"] * bool(device.mgmt.address)), reason
        reached.setdefault(way, name)
        if device.kind == "host":
            yield from _nic_faults(name, device, addressed)


def _nic_faults(host: str, spec: HostSpec, addressed: dict[object, str]) -> Iterator[Place]:
    families = known(NICS)
    for nic, port in spec.nics.items():
        at = ("devices", host, "nics", nic)
        if port.family not in families:
            there = ", ".join(families)
            yield (*at, "family"), f"{port.family!r} is no family that is known; there are {there}"
        if not port.address:
            continue
        try:
            address = ipaddress.ip_address(port.address)
        except ValueError:
            yield (*at, "address"), f"{port.address!r} is no IP address; one looks like 10.0.0.1"
            continue
        if address.is_multicast or address.is_unspecified or address.is_loopback:
            yield (*at, "address"), f"{port.address} cannot be the address of a NIC"
        elif address in addressed:
            yield (*at, "address"), f"{port.address} is the address of {addressed[address]}, too"
        addressed.setdefault(address, f"{host}:{nic}")


def cable_faults(
    devices: Devices,
    cables: Sequence[Cable | None],
    intent: Intent | None,
    line_of: Callable[[tuple[str | int, ...]], int],
) -> Iterator[Place]:
    """Both ends of every cable. ``line_of`` a place in the file."""
    speeds = set() if intent is None else {parse_speed_bps(text) for text in intent.profiles}
    cabled: dict[PortRef, int] = {}
    for index, cable in enumerate(cables):
        if cable is None:
            continue
        ends = []
        for side, text in (("a", cable.a), ("b", cable.b)):
            at = ("cables", index, side)
            try:
                end = _end(devices, text, cable.speed)
            except ValueError as error:
                yield at, str(error)
                continue
            if end in cabled:
                first = line_of(("cables", cabled[end]))
                yield at, f"{end} is cabled twice, first in line {first}"
            cabled.setdefault(end, index)
            ends.append(end)
        if len(ends) == 2 and ends[0].device == ends[1].device:
            yield ("cables", index), "the cable ends on the device it starts from"
        elif len(ends) == 2 and all(_is_host(devices, end) for end in ends):
            yield ("cables", index), "the cable joins two hosts; a site needs a switch between"
        if intent is not None and cable.speed not in speeds:
            speeds.add(cable.speed)  # said once
            yield (
                ("cables", index, "speed"),
                f"intent.profiles has no thresholds for {format_speed(cable.speed)} ports",
            )


def _is_host(devices: Devices, end: PortRef) -> bool:
    device = devices[end.device]
    return device is not None and device.kind == "host"


def _end(devices: Devices, text: str, speed_bps: int) -> PortRef:
    """The port that a cable's end names; ValueError where it names none."""
    end = PortRef.parse(text)
    if end.device not in devices:
        raise ValueError(f"no device is called {end.device!r}")
    device = devices[end.device]
    if device is None:
        return end
    if device.kind == "switch":
        return PortRef(end.device, _switch_port(end, device.os))
    nic = device.nics.get(end.port)
    if nic is None:
        raise ValueError(f"{end.device} has no NIC {end.port!r}")
    if nic.speed != speed_bps:
        raise ValueError(
            f"the cable runs at {format_speed(speed_bps)}, {end} at {format_speed(nic.speed)}"
        )
    return end


def _switch_port(end: PortRef, system: str) -> str:
    """The port's name, if it is written as its system writes it."""
    name = end.port
    if system in known(SWITCHES):
        # A module from outside may not say what it calls its ports.
        name_of = getattr(load(SWITCHES, system), "port_name", None)
        name = str(name_of(end.port)) if name_of else end.port
    if name != end.port:
        raise ValueError(f"{end.device} calls its port {end.port} {name}: write it so")
    if not name.isprintable() or " " in name:
        raise ValueError(f"{end.port!r} names no port")
    return name


def fabric_faults(document: FabricFile, topology: Topology) -> Iterator[Place]:
    """All devices and cables together; the cables themselves are as they should be."""
    for name, device in document.devices.items():
        if device.kind == "host":
            for nic in device.nics:
                if PortRef(name, nic) not in topology.link_of:
                    yield ("devices", name, "nics", nic), f"{name}:{nic} has no cable"
        else:
            yield from _switch_faults(document, topology, name, device)
    yield from _receive_buffer_faults(document, topology)
    for source, target in unreachable_pairs(topology, limit=1):
        yield ("devices", source.device), f"no path leads from {source} to {target}"


def _switch_faults(
    document: FabricFile, topology: Topology, name: str, switch: SwitchSpec
) -> Iterator[Place]:
    at = ("devices", name)
    intent = document.intent
    if not topology.ports_of[name]:
        yield at, f"switch {name} has no cable"
    ratio = topology.oversubscription(name)
    if len(topology.switches) > 1 and math.isinf(ratio):
        yield at, f"{name} has hosts, but no cable to another switch"
    elif len(topology.switches) > 1 and ratio > document.max_oversubscription + 1e-9:
        yield (
            at,
            f"{name} is oversubscribed {ratio:g}:1, "
            f"max_oversubscription allows {document.max_oversubscription:g}:1",
        )
    lossless = sum(cls.lossless for cls in intent.classes.values())
    needed = 0
    for port in topology.ports_of[name]:
        link = topology.link_of[port]
        profile = intent.profile(link.speed_bps)
        headroom = headroom_bytes(link.speed_bps, link.length_m, intent.mtu.switch_port)
        needed += lossless * (profile.xoff + headroom)
    if needed > switch.buffer:
        yield (
            (*at, "buffer"),
            f"{name}'s lossless buffers need {format_size(needed)}, "
            f"it has {format_size(switch.buffer)}",
        )


def _receive_buffer_faults(document: FabricFile, topology: Topology) -> Iterator[Place]:
    """One for all NICs alike: that of the NIC that needs most."""

    def headroom_of(port: PortRef) -> int:
        link = topology.link_of[port]
        return mlx5_headroom_bytes(
            link.speed_bps, mlx5_cable_m(link.length_m), document.intent.mtu.host
        )

    neediest = max(topology.endpoints, key=headroom_of, default=None)
    if neediest is None:
        return
    headroom = headroom_of(neediest)
    needed = mlx5_min_buffer_bytes(headroom)
    if needed > document.intent.host.receive_buffer:
        yield (
            ("intent", "host", "receive_buffer"),
            f"{neediest} needs {format_size(needed)}, {format_size(headroom)} of it headroom",
        )
