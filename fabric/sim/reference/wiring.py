"""Ports of a topology in rows, and which of them lead where."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from fabric.sim.reference import columns as c
from fabric.sim.reference.topofile import TopologyFile


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a host or switch: its row, its number there (from 1), what is opposite."""

    row: int
    node: int
    number: int
    peer: int
    rate_bps: int
    delay_ns: int


class Wiring:
    """Ports in rows, and which of them lead to each host."""

    def __init__(self, topology: TopologyFile) -> None:
        self.topology = topology
        self.ports: list[Port] = []
        self.of_node: list[list[Port]] = [[] for _ in range(topology.nodes)]
        for cable in topology.cables:
            for node, peer in ((cable.a, cable.b), (cable.b, cable.a)):
                row = len(self.ports) * c.PORT_WORDS
                number = len(self.of_node[node]) + 1
                port = Port(row, node, number, peer, cable.rate_bps, cable.delay_ns)
                self.ports.append(port)
                self.of_node[node].append(port)
        self.switch_set = frozenset(topology.switches)
        self.to_peer = {(port.node, port.peer): port for port in self.ports}

    def leaf(self, host: int) -> int | None:
        """The switch that a host is cabled to."""
        return self.of_node[host][0].peer if self.of_node[host] else None

    def next_hops(self, leaf: int) -> dict[int, list[Port]]:
        """For each node that reaches this switch, its ports on shortest paths, in hash order."""
        distance = {leaf: 0}
        hops: dict[int, list[Port]] = {}
        waiting = deque([leaf])
        while waiting:
            node = waiting.popleft()
            for peer in self._neighbours(node):
                if peer not in distance:
                    distance[peer] = distance[node] + 1
                    if peer in self.switch_set:
                        waiting.append(peer)
                if distance[peer] == distance[node] + 1:
                    hops.setdefault(peer, []).append(self.to_peer[peer, node])
        return hops

    def _neighbours(self, node: int) -> list[int]:
        # The reference sorts nodes by address in memory; switches are so large that
        # each is mapped below the one before.
        switches = self.switch_set
        peers = [port.peer for port in self.of_node[node]]
        return sorted(peers, key=lambda p: (1, -p) if p in switches else (0, p))
