"""A site that does what is intended, as its devices show it, and ways to spoil it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from fabric.counters import Counter, CounterSnapshot
from fabric.devices.registry import expected_qos
from fabric.qos import DeviceQos, Neighbor, PortFacts
from fabric.site import Site

States = dict[str, DeviceQos]
LEAF_PORT = "Ethernet1/1"
NIC = "ens1f0"


def healthy(site: Site, *, normalised: bool = False) -> tuple[States, States]:
    """(what devices show, what is intended)."""
    from fabric.intended import intended_qos

    make = expected_qos if normalised else intended_qos
    intended = {device: make(site, device) for device in site.devices}
    return {name: seen(site, state) for name, state in intended.items()}, intended


def seen(site: Site, state: DeviceQos) -> DeviceQos:
    """An intended state as the device itself would show it."""
    ends = site.topology.ports_of[state.device]
    host = state.kind == "host"
    facts = tuple(
        PortFacts(
            end.port,
            up=True,
            speed_bps=site.topology.link_of[end].speed_bps,
            fec="rs",
            pfc_mode=None if host else "on",
            rdma_mtu_bytes=4096 if host else None,
            gid_type="v2" if host else None,
            lldp_agents=() if host else None,
            bond="" if host else None,
            virtual_function=False if host else None,
        )
        for end in ends
    )
    neighbors = tuple(Neighbor(end.port, *site.topology.peer(end)) for end in ends)
    return replace(
        state,
        saved=True,
        neighbors=None if host else neighbors,
        config_sha256="" if host else "a" * 64,
        model="ConnectX-6" if host else "N9K",
        firmware="mlx5_core, firmware 22.43, Linux 6.8" if host else "10.5(2)",
        facts=facts,
    )


def no_counts(states: Mapping[str, DeviceQos]) -> dict[str, CounterSnapshot]:
    """Counters of a fabric on which nothing has ever gone wrong."""
    return {name: CounterSnapshot(name, 0.0, ()) for name in states}


def with_port(state: DeviceQos, name: str, **changes: object) -> DeviceQos:
    ports = tuple(replace(p, **changes) if p.name == name else p for p in state.ports)
    return replace(state, ports=ports)


def with_facts(state: DeviceQos, name: str, **changes: object) -> DeviceQos:
    facts = tuple(replace(f, **changes) if f.port == name else f for f in state.facts)
    return replace(state, facts=facts)


def wrong_dscp(port, dscp: int, priority: int) -> tuple[int, ...]:
    values = list(port.dscp_to_priority)
    values[dscp] = priority
    return tuple(values)


def queues(port, traffic_class: int, **changes: object):
    return tuple(
        replace(q, **changes) if q.traffic_class == traffic_class else q for q in port.queues
    )


Spoil = Callable[[States], None]


def leaf(change: Callable) -> Spoil:
    """Change the first port of leaf1: ``change`` gets it and gives fields."""

    def spoil(states: States) -> None:
        port = states["leaf1"].port(LEAF_PORT)
        states["leaf1"] = with_port(states["leaf1"], LEAF_PORT, **change(port))

    return spoil


def host(change: Callable) -> Spoil:
    """Change the port of host1."""

    def spoil(states: States) -> None:
        states["host1"] = with_port(states["host1"], NIC, **change(states["host1"].port(NIC)))

    return spoil


def nic(**changes: object) -> Spoil:
    """Change what only the NIC of host1 has."""
    return host(lambda port: {"nic": replace(port.nic, **changes)})


def dcqcn(**changes: object) -> Spoil:
    return host(lambda p: {"nic": replace(p.nic, dcqcn=replace(p.nic.dcqcn, **changes))})


def facts(device: str, port: str, **changes: object) -> Spoil:
    def spoil(states: States) -> None:
        states[device] = with_facts(states[device], port, **changes)

    return spoil


def device(name: str, **changes: object) -> Spoil:
    def spoil(states: States) -> None:
        states[name] = replace(states[name], **changes)

    return spoil


def every_port(name: str, change: Callable) -> Spoil:
    def spoil(states: States) -> None:
        for port in states[name].ports:
            states[name] = with_port(states[name], port.name, **change(port))

    return spoil


def both(*spoils: Spoil) -> Spoil:
    def spoil(states: States) -> None:
        for one in spoils:
            one(states)

    return spoil


def counted(device: str, port: str, name: str, value: int, priority: int | None = None) -> Counter:
    return Counter(device, port, name, value, priority)
