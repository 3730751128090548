"""What the fabric carries: goodput of a ring's and of parameter servers' traffic.

All rates come from the flow-level simulator (``fabric.sim.flowlevel``) on the ports and
settings of the site, or of a Clos.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fabric.errors import InputError
from fabric.sim.api import Flow
from fabric.sim.flowlevel.network import FlowNetwork
from fabric.sim.flowlevel.run import prepare_flows
from fabric.sim.flowlevel.units import Units
from fabric.topology import PortRef

Order = Literal["fabric", "scattered"]

MAX_FLOWS = 8192
_MESSAGE_BYTES = 1 << 20
# Flows are endless and their rates steady: any time will do.
_DURATION_US = 1000.0


@dataclass(frozen=True, slots=True)
class LossyPort:
    """A port that loses this part of its packets, whichever way they go."""

    port: PortRef
    loss: float


@dataclass(frozen=True, slots=True)
class Rate:
    """What a pattern gets. ``bps`` is payload a host and direction, all its NICs together.

    ``loss`` is the part of packets that the lossy port loses where the pattern crosses
    it, ``crossing`` the part of flows that do.
    """

    bps: float
    line_bps: float
    regime: str
    loss: float = 0.0
    crossing: float = 0.0
    notes: tuple[str, ...] = ()


@dataclass
class Fabric:
    """Hosts that train, in the order of their ranks, and the network between them.

    ``rails`` are the NICs, rail by rail, each host's in the same order. What has been
    simulated is kept.
    """

    name: str
    network: FlowNetwork
    dscp: int
    rails: tuple[tuple[PortRef, ...], ...]
    lossy: LossyPort | None = None
    _known: dict[tuple[str, int, int], Rate] = field(default_factory=dict)

    @property
    def hosts(self) -> int:
        """How many hosts there are."""
        return len(self.rails[0])

    @property
    def nic_bps(self) -> float:
        """Line rate of a host, all its NICs together."""
        return float(sum(self.network.topology.link_of[rail[0]].speed_bps for rail in self.rails))

    def ring(self, hosts: int) -> Rate:
        """Each of the first ``hosts`` hosts to the next: a ring is as fast as its slowest."""
        return self._rate("ring", hosts, 0)

    def servers(self, hosts: int, servers: int) -> Rate:
        """All of the first ``hosts`` hosts to the ``servers`` of them: the slowest server."""
        return self._rate("servers", hosts, servers)

    def _rate(self, kind: str, hosts: int, servers: int) -> Rate:
        key = (kind, hosts, servers)
        if key not in self._known:
            self._check(hosts)
            pairs = ring_pairs(hosts) if kind == "ring" else server_pairs(hosts, servers)
            rates = [self._simulate(rail, pairs, kind) for rail in self.rails]
            self._known[key] = Rate(
                bps=sum(rate.bps for rate in rates),
                line_bps=self.nic_bps,
                regime=rates[0].regime,
                loss=max(rate.loss for rate in rates),
                crossing=max(rate.crossing for rate in rates),
                notes=tuple(dict.fromkeys(note for rate in rates for note in rate.notes)),
            )
        return self._known[key]

    def _check(self, hosts: int) -> None:
        if hosts > self.hosts:
            raise InputError(
                f"{self.name} has {self.hosts} hosts, {hosts} would have to train",
                advice="Take fewer --gpus, more --gpus-per-host, or --clos for a fabric "
                "of any size.",
            )

    def _simulate(
        self, ends: Sequence[PortRef], pairs: Sequence[tuple[int, int]], kind: str
    ) -> Rate:
        flows = [Flow(ends[a], ends[b], self.dscp, message_bytes=_MESSAGE_BYTES) for a, b in pairs]
        try:
            simulation = prepare_flows(self.network, flows, _DURATION_US)
        except InputError as error:
            raise InputError(
                error.message,
                advice="A prediction needs all ports on the way set alike, so that nothing is "
                "lost: paisoar audit finds the odd one.",
            ) from error
        simulation.advance()
        found = simulation.result()
        crossing = self._crossing(simulation.units.paths.hops, simulation.units.paths.starts)
        slowest = found.goodput_bps.min()
        if kind == "servers":
            into = np.array([b for _, b in pairs])
            sums = np.bincount(into, found.goodput_bps)[np.unique(into)]
            # As many bytes on every flow: the last byte waits for the fullest part of the way.
            share = self._even_share(simulation.units) * len(pairs) / len(sums)
            slowest = min(sums.min(), share)
        line = self.network.topology.link_of[ends[0]].speed_bps
        loss = self.lossy.loss if self.lossy is not None and crossing.any() else 0.0
        return Rate(float(slowest), line, found.regime, loss, float(crossing.mean()), found.notes)

    def _even_share(self, units: Units) -> float:
        """Payload rate of each flow if all had the same: what the fullest part leaves.

        Parts are NICs' ports, and all cables between a switch and other switches, up or
        down, together: many flows spread evenly over them.
        """
        graph, hops = self.network.graph, units.paths.hops
        speeds, load = self.network.speed_bps, np.bincount(hops, minlength=len(graph.ports))
        here, there = graph.switch, graph.switch[graph.peer]
        between = (here >= 0) & (there >= 0)
        parts = [speeds[~between & (load > 0)] / load[~between & (load > 0)]]
        for side in (here, there):
            total, full = (np.bincount(side[between], x[between]) for x in (load, speeds))
            parts.append(full[total > 0] / total[total > 0])
        return float(np.concatenate(parts).min() * units.payload_share.min())

    def _crossing(self, hops: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which flows leave or enter the lossy port."""
        crossed = np.zeros(len(starts) - 1, bool)
        if self.lossy is not None:
            index = self.network.graph.index
            ends = [index[self.lossy.port], index[self.network.topology.peer(self.lossy.port)]]
            flow = np.repeat(np.arange(len(crossed)), np.diff(starts))
            crossed[flow[np.isin(hops, ends)]] = True
        return crossed


def ring_pairs(hosts: int) -> list[tuple[int, int]]:
    """Each to the next."""
    return [(host, (host + 1) % hosts) for host in range(hosts)]


def server_pairs(hosts: int, servers: int) -> list[tuple[int, int]]:
    """Every host to every server but itself; servers are spread over the hosts.

    Of more than ``MAX_FLOWS`` a sample: from every server the hosts at the same evenly
    spread distances, so that all servers and, where all hosts serve, all hosts carry alike.
    """
    placed = [server * hosts // servers for server in range(servers)]
    count = max(1, min(hosts - 1, MAX_FLOWS // servers))
    steps = [1 + number * (hosts - 1) // count for number in range(count)]
    return [((server + step) % hosts, server) for server in placed for step in steps]


def ordered(
    network: FlowNetwork, rails: Sequence[Sequence[PortRef]], order: Order
) -> tuple[tuple[PortRef, ...], ...]:
    """Hosts as the fabric lists them, or dealt out so that neighbours have other leaves."""
    if order == "fabric":
        return tuple(tuple(rail) for rail in rails)
    behind: dict[str, list[int]] = {}
    for number, end in enumerate(rails[0]):
        behind.setdefault(network.topology.peer(end).device, []).append(number)
    longest = max(len(hosts) for hosts in behind.values())
    dealt = [
        hosts[turn] for turn in range(longest) for hosts in behind.values() if turn < len(hosts)
    ]
    return tuple(tuple(rail[number] for number in dealt) for rail in rails)


def fabric_of(
    name: str,
    network: FlowNetwork,
    dscp: int,
    *,
    hosts: int | None = None,
    order: Order = "fabric",
    lossy: LossyPort | None = None,
) -> Fabric:
    """A fabric of these ports, with its first ``hosts`` hosts (None: all).

    InputError where hosts have different numbers of NICs, or the lossy port is none.
    """
    topology = network.topology
    rails = topology.rails() if topology.endpoints else ()
    if not rails:
        raise InputError(f"{name} has no host with a cabled NIC")
    if len({len(rail) for rail in rails}) > 1:
        raise InputError(f"the hosts of {name} have different numbers of NICs; rings need the same")
    speeds = {topology.link_of[end].speed_bps for rail in rails for end in rail}
    if len(speeds) > 1:
        raise InputError(f"the NICs of {name} have different speeds; rings need the same")
    if lossy is not None:
        if lossy.port not in network.graph.index:
            raise InputError(f"--lossy-port {lossy.port}: no cabled port of {name}")
        if not 0 < lossy.loss < 1:
            raise InputError(f"--loss {lossy.loss:g}: a part of all packets, between 0 and 1")
    chosen = [rail[:hosts] for rail in rails]
    return Fabric(name, network, dscp, ordered(network, chosen, order), lossy)
