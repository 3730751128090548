"""Which cables carry nothing now, and at which end that was decided.

A port is *shut* where somebody has configured it so (``shutdown``, ``ip link set
down``): that is configuration. It has *no link* where it is configured to work and
does not: that is an observation, and may pass.
"""

from __future__ import annotations

from collections.abc import Mapping

from fabric.qos import DeviceQos, PortFacts
from fabric.topology import Link, PortRef, Topology


def down_ports(topology: Topology, states: Mapping[str, DeviceQos]) -> dict[PortRef, str]:
    """Both ends of every link that is down, each with why: ``host1:ens1f0 is shut``.

    A link is down where either end is seen to be; of ends that show nothing, or were
    not read, nothing is said.
    """
    facts = {name: {seen.port: seen for seen in state.facts} for name, state in states.items()}
    found: dict[PortRef, str] = {}
    for link in topology.links:
        if why := _why_down(link, facts):
            found[link.a] = found[link.b] = why
    return found


def shut_ports(topology: Topology, state: DeviceQos) -> tuple[str, ...]:
    """Cabled ports of this device that are shut, sorted."""
    cabled = {port.port for port in topology.ports_of.get(state.device, ())}
    return tuple(
        sorted(seen.port for seen in state.facts if seen.admin_up is False and seen.port in cabled)
    )


def _why_down(link: Link, facts: Mapping[str, Mapping[str, PortFacts]]) -> str:
    ends = [(end, facts.get(end.device, {}).get(end.port)) for end in (link.a, link.b)]
    shut = [end for end, seen in ends if seen is not None and seen.admin_up is False]
    if shut:
        return " and ".join(f"{end} is shut" for end in shut)
    silent = [end for end, seen in ends if seen is not None and seen.up is False]
    return f"{silent[0]} has no link" if silent else ""
