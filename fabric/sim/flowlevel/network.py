"""What the flow level needs to know of a site's ports, as arrays.

From the devices' states like ``fabric.sim.network``; or, for a Clos too large to
write down, from what an intent gives to each kind of port.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fabric.qos import DeviceQos, Ecn, PortQos
from fabric.sim.flowlevel.paths import Graph
from fabric.sim.network import pfc_of, read_network
from fabric.site import Site
from fabric.topology import PortRef, Topology

ECT_BITS = 0b11


@dataclass(frozen=True)
class FlowNetwork:
    """Cabled ports, hosts' first, and what each does; ports may share one ``PortQos``.

    ``pool_bytes`` is each port's switch's shared buffer, 0 for NICs.
    """

    name: str
    topology: Topology
    ports: tuple[PortRef, ...]
    qos: tuple[PortQos, ...]
    pool_bytes: NDArray[np.float64]

    @cached_property
    def graph(self) -> Graph:
        """The topology in numbers."""
        return Graph(self.topology, self.ports)

    @cached_property
    def speed_bps(self) -> NDArray[np.float64]:
        """Speed of each port, in bits a second."""
        link_of = self.topology.link_of
        return np.array([link_of[port].speed_bps for port in self.ports], np.float64)

    def of(self, port: PortRef) -> PortQos:
        """What this port does."""
        return self.qos[self.graph.index[port]]


@dataclass(frozen=True)
class ClassFacts:
    """What ports do to packets of one DSCP. All arrays are (ports,).

    Thresholds in bytes, ``pmax`` a probability; ``marks`` says that the egress queue
    marks, ``pauses`` that the ingress sends PFC frames.
    """

    marks: NDArray[np.bool_]
    kmin_bytes: NDArray[np.float64]
    kmax_bytes: NDArray[np.float64]
    pmax: NDArray[np.float64]
    pauses: NDArray[np.bool_]
    xoff_bytes: NDArray[np.float64]
    mtu_bytes: NDArray[np.int64]


def network_of_site(site: Site, states: Mapping[str, DeviceQos]) -> FlowNetwork:
    """A site with its devices' states. InputError names what a state lacks."""
    network = read_network(site, states)
    switches = frozenset(site.topology.switches)
    pools = [
        site.switch(port.device).buffer if port.device in switches else 0 for port in network.ports
    ]
    return FlowNetwork(
        site.name, site.topology, network.ports, network.qos, np.array(pools, np.float64)
    )


def class_facts(network: FlowNetwork, tos: int) -> ClassFacts:
    """What this network's ports do to packets with this TOS byte."""
    seen: dict[int, tuple[Ecn | None, bool, float, float | None, int]] = {}
    rows = [
        seen.setdefault(id(qos), _facts(qos, tos)) if id(qos) not in seen else seen[id(qos)]
        for qos in network.qos
    ]
    marks = [row[0] for row in rows]
    xoff = np.array([row[2] for row in rows])
    alpha = np.array([row[3] or 0.0 for row in rows])
    return ClassFacts(
        marks=np.array([ecn is not None for ecn in marks]),
        kmin_bytes=_column([ecn.kmin_bytes if ecn else 0 for ecn in marks]),
        kmax_bytes=_column([ecn.kmax_bytes if ecn else 0 for ecn in marks]),
        pmax=_column([ecn.pmax_percent / 100 if ecn else 0 for ecn in marks]),
        pauses=np.array([row[1] for row in rows]),
        # A dynamic threshold: alpha times what is free when one port is filled.
        xoff_bytes=np.where(alpha > 0, alpha * network.pool_bytes / (1 + alpha), xoff),
        mtu_bytes=np.array([row[4] for row in rows], np.int64),
    )


def _column(values: Sequence[float]) -> NDArray[np.float64]:
    return np.array(values, np.float64)


def _facts(qos: PortQos, tos: int) -> tuple[Ecn | None, bool, float, float | None, int]:
    priority = qos.priority_of_dscp(tos >> 2)
    queue = qos.queue(qos.priority_to_class[priority])
    buffer = qos.ingress_buffer(priority)
    return (
        queue.ecn if queue is not None and tos & ECT_BITS else None,
        priority in pfc_of(qos),
        float(buffer.xoff_bytes) if buffer else 0.0,
        buffer.alpha if buffer else None,
        min(qos.mtu_bytes, qos.class_mtu_bytes[priority]),
    )
