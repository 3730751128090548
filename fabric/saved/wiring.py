"""Cables from what LLDP sees at both ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fabric.qos import DeviceQos
from fabric.saved.tables import CableRow
from fabric.topology import Link, PortRef
from fabric.units import format_speed

HOST_CABLE_M, UPLINK_CABLE_M = 3.0, 30.0
UPLINK_SPEED_BPS = 100 * 10**9


@dataclass(frozen=True)
class Wiring:
    """Cables, and what about them is odd. ``assumed`` names what nobody shows.

    ``faults`` are contradictions of LLDP: two ends that name different cables.
    """

    links: tuple[Link, ...]
    assumed: tuple[str, ...] = field(default=())
    faults: tuple[str, ...] = field(default=())


class _Names:
    """Devices and ports as neighbours call them."""

    def __init__(self, states: Mapping[str, DeviceQos]) -> None:
        self._devices = {name.lower(): name for name in states}
        self._ports: dict[str, dict[str, str]] = {}
        for name, state in states.items():
            known = {port.name.lower(): port.name for port in state.ports}
            for facts in state.facts:
                known[facts.port.lower()] = facts.port
                if facts.mac:
                    known[facts.mac] = facts.port
            self._ports[name] = known

    def device(self, seen: str) -> str | None:
        """``Leaf1.example.com`` and ``leaf1(FDO123)`` are leaf1, where there is one."""
        text = seen.lower().partition("(")[0].strip()
        return self._devices.get(text) or self._devices.get(text.partition(".")[0])

    def port(self, device: str, seen: str) -> str | None:
        """A port by its name or its address; the only one of a device by any name."""
        known = self._ports[device]
        plain = "".join(c for c in seen.lower() if c not in ".:-")
        found = known.get(seen.lower()) or known.get(plain)
        if found is None and len(set(known.values())) == 1:
            return next(iter(known.values()))
        return found


def wire(states: Mapping[str, DeviceQos], rows: Sequence[CableRow] | None) -> Wiring:
    """The cables of ``cables.csv`` where there is one, of LLDP otherwise.

    A cable that one end alone sees is taken; where the ends disagree, the one
    that is seen from both goes first, and the contradiction is a fault.
    """
    assumed: list[str] = []
    faults: list[str] = []
    if rows is None:
        ends = list(_from_lldp(states, faults))
        rows = [CableRow(a, b) for a, b in ends]
    links = [_link(row, states, assumed) for row in rows]
    return Wiring(tuple(links), tuple(assumed), tuple(faults))


def _from_lldp(
    states: Mapping[str, DeviceQos], faults: list[str]
) -> Iterator[tuple[PortRef, PortRef]]:
    names = _Names(states)
    seen: dict[tuple[PortRef, PortRef], int] = {}
    for name, state in states.items():
        for neighbor in state.neighbors or ():
            device = names.device(neighbor.peer)
            if device is None or device == name:
                continue
            port = names.port(device, neighbor.peer_port)
            if port is None:
                faults.append(
                    f"{name}:{neighbor.port}: LLDP sees {neighbor.peer}:{neighbor.peer_port}, "
                    f"and {device} shows no such port"
                )
                continue
            a, b = sorted((PortRef(name, neighbor.port), PortRef(device, port)))
            seen[a, b] = seen.get((a, b), 0) + 1
    taken: dict[PortRef, tuple[PortRef, PortRef]] = {}
    for (a, b), _ in sorted(seen.items(), key=lambda item: -item[1]):
        if a in taken or b in taken:
            other = taken.get(a) or taken[b]
            faults.append(f"LLDP sees {a} - {b}, and also {other[0]} - {other[1]}")
            continue
        taken[a] = taken[b] = (a, b)
    yield from (pair for pair in seen if taken.get(pair[0]) == pair)


def _link(row: CableRow, states: Mapping[str, DeviceQos], assumed: list[str]) -> Link:
    kinds = {end.device: states[end.device].kind for end in (row.a, row.b) if end.device in states}
    to_host = "host" in kinds.values()
    speed = row.speed_bps or _seen_speed(row, states)
    if speed is None:
        speed = 25 * 10**9 if to_host else UPLINK_SPEED_BPS
        assumed.append(f"{row.a} - {row.b}: speed {format_speed(speed)}: no end shows it")
    length = row.length_m or _seen_length(row, states)
    if length is None:
        length = HOST_CABLE_M if to_host else UPLINK_CABLE_M
        assumed.append(f"{row.a} - {row.b}: length {length:g} m: nothing shows it")
    return Link(row.a, row.b, speed, length)


def _seen_speed(row: CableRow, states: Mapping[str, DeviceQos]) -> int | None:
    for end in (row.a, row.b):
        state = states.get(end.device)
        if state is not None and (speed := state.facts_of(end.port).speed_bps):
            return speed
    return None


def _seen_length(row: CableRow, states: Mapping[str, DeviceQos]) -> float | None:
    """The cable's length as the NIC at one end was told it, or else a switch."""
    for end in (row.a, row.b):
        state = states.get(end.device)
        port = state.port(end.port) if state else None
        if port is not None and port.nic is not None and port.nic.cable_m:
            return float(port.nic.cable_m)
    for end in (row.a, row.b):
        state = states.get(end.device)
        if state is not None and (fits := state.facts_of(end.port).headroom_cable_m):
            return float(fits[1])
    return None
