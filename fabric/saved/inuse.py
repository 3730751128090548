"""Which ports of saved devices are in use, where nobody knows their cables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fabric.qos import DeviceQos, PortQos
from fabric.saved.wiring import HOST_CABLE_M, UPLINK_SPEED_BPS
from fabric.topology import Link, PortRef

HOST_SPEED_BPS = 25 * 10**9


def loose_ports(
    states: Mapping[str, DeviceQos], links: Sequence[Link]
) -> dict[str, tuple[Link, ...]]:
    """Ports in use whose cable is not known: up, with a neighbour, or pausing; every NIC."""
    cabled = _ends(links)
    found = {
        name: tuple(
            _alone(state, port)
            for port in state.ports
            if PortRef(name, port.name) not in cabled and _in_use(state, port)
        )
        for name, state in states.items()
    }
    return {name: ports for name, ports in found.items() if ports}


def unsure_ports(
    states: Mapping[str, DeviceQos], links: Sequence[Link], loose: Mapping[str, Sequence[Link]]
) -> dict[str, tuple[Link, ...]]:
    """All ports that may be up of switches that show of none whether it is in use.

    A switch that nobody has configured shows no more than their names: were none of
    them judged, it would pass.
    """
    used = {end.device for end in _ends(links)} | set(loose)
    found = {name: tuple(_maybe(state)) for name, state in states.items() if name not in used}
    return {name: ports for name, ports in found.items() if ports}


def _ends(links: Sequence[Link]) -> set[PortRef]:
    return {end for link in links for end in (link.a, link.b)}


def _in_use(state: DeviceQos, port: PortQos) -> bool:
    up = state.facts_of(port.name).up
    if state.kind == "host" or up is not None:
        return state.kind == "host" or bool(up)
    seen = {neighbor.port for neighbor in state.neighbors or ()}
    return bool(port.pfc_priorities) or port.name in seen


def _maybe(state: DeviceQos) -> Iterator[Link]:
    for port in state.ports:
        if state.facts_of(port.name).up is None:
            yield _alone(state, port)


def _alone(state: DeviceQos, port: PortQos) -> Link:
    """A cable of which one end is known; of its speed and length, what that end shows."""
    usual = UPLINK_SPEED_BPS if state.kind == "switch" else HOST_SPEED_BPS
    speed = state.facts_of(port.name).speed_bps or usual
    length = float(port.nic.cable_m) if port.nic and port.nic.cable_m else HOST_CABLE_M
    return Link(PortRef(state.device, port.name), PortRef("", ""), speed, length)
