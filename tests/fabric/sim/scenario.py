"""Small sites, states with faults, and sums over counters, for the simulator's tests."""

import dataclasses
import functools
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from fabric.counters import Counter
from fabric.intended import intended_qos
from fabric.qos import DeviceQos, PortQos
from fabric.sim.api import Flow, SimResult
from fabric.site import Site, load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape, PortRef

ROCE = 26
CLOS = ClosShape(hosts=16, leaves=4, spines=2)
# Payload of a 25G wire: packets of 4096 with IPv4, UDP, BTH, ICRC (44), Ethernet
# with preamble and gap (38) and a RETH (16) in the first of a message's 16.
PAYLOAD_BPS = 25e9 * 4096 / (4096 + 44 + 38 + 1)


@functools.cache
def site_of(shape: ClosShape = CLOS, *replace: tuple[str, str]) -> Site:
    """The site that ``paisoar init`` writes, with some of its text replaced."""
    text = starter_yaml(shape, site="test", environment="twin")
    for old, new in replace:
        assert old in text
        text = text.replace(old, new)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fabric.yaml"
        path.write_text(text)
        return load_site(path)


def star(hosts: int, *replace: tuple[str, str]) -> Site:
    """Hosts on one leaf."""
    return site_of(ClosShape(hosts=hosts, leaves=1, spines=0), *replace)


def states_of(site: Site) -> dict[str, DeviceQos]:
    """Every device as it should be."""
    return {device: intended_qos(site, device) for device in site.devices}


def change(
    states: dict[str, DeviceQos], edit: Callable[[PortQos], PortQos], *ports: PortRef
) -> None:
    """Change some ports of these states."""
    for port in ports:
        state = states[port.device]
        states[port.device] = dataclasses.replace(
            state,
            ports=tuple(edit(p) if p.name == port.port else p for p in state.ports),
        )


def change_all(states: dict[str, DeviceQos], edit: Callable[[PortQos], PortQos], kind: str) -> None:
    """Change every port of the devices of one kind."""
    for device, state in states.items():
        if state.kind == kind:
            states[device] = dataclasses.replace(
                state, ports=tuple(edit(port) for port in state.ports)
            )


def without_pfc(port: PortQos) -> PortQos:
    """PFC mode off; the no-drop class and its buffer are still configured."""
    return dataclasses.replace(port, pfc_priorities=())


def without_ecn(port: PortQos) -> PortQos:
    """No queue marks."""
    return dataclasses.replace(
        port, queues=tuple(dataclasses.replace(queue, ecn=None) for queue in port.queues)
    )


def without_dcqcn(port: PortQos) -> PortQos:
    """The NIC neither notifies nor reacts."""
    return dataclasses.replace(port, nic=dataclasses.replace(port.nic, dcqcn=None))


def with_tos(tos: int) -> Callable[[PortQos], PortQos]:
    """The NIC sends RDMA with this TOS byte."""
    return lambda port: dataclasses.replace(
        port, nic=dataclasses.replace(port.nic, verbs_traffic_class=tos)
    )


def reset_nic(port: PortQos) -> PortQos:
    """A NIC that has lost everything that was set on it."""
    return dataclasses.replace(
        port,
        mtu_bytes=1500,
        class_mtu_bytes=(1500,) * 8,
        trust="pcp",
        pfc_priorities=(),
        ingress_buffers=(),
        nic=dataclasses.replace(port.nic, verbs_traffic_class=None, rdma_cm_tos=None),
    )


def incast(site: Site, target: int = 0, senders: int | None = None, qps: int = 1) -> list[Flow]:
    """Long flows from other hosts' NICs to one, all from the start."""
    ends = site.topology.endpoints
    others = [end for end in ends if end != ends[target]][:senders]
    return [Flow(end, ends[target], ROCE, qps=qps) for end in others]


def total(counters: Iterable[Counter], name: str, port: PortRef | None = None) -> int:
    """A counter summed over priorities, at one port or everywhere."""
    return sum(
        counter.value
        for counter in counters
        if counter.name == name and port in (None, PortRef(counter.device, counter.port))
    )


def dropped(result: SimResult) -> int:
    """Packets dropped anywhere."""
    return total(result.counters, "rx_discards") + total(result.counters, "tx_discards")
