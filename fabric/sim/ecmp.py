"""Which of the equal paths a queue pair's packets take.

Every switch hashes (source, target, queue pair), as a switch hashes the UDP
source port that a RoCEv2 queue pair keeps for its life; the hash is seeded by
switch and simulation, so that leaves and spines do not polarise. A path never
changes while a simulation runs, so it is laid out before it starts.
"""

from __future__ import annotations

import hashlib

from fabric.topology import PortRef, Topology


class Router:
    """Lays out paths on one topology; the same seed gives the same paths."""

    def __init__(self, topology: Topology, seed: int) -> None:
        self.topology = topology
        self._seed = seed
        self._next_hops: dict[PortRef, dict[str, tuple[PortRef, ...]]] = {}

    def path(self, source: PortRef, target: PortRef, qp: int) -> tuple[PortRef, ...] | None:
        """Egress ports of the switches from ``source`` to ``target``; None without a path."""
        if not {source, target} <= self.topology.link_of.keys():
            return None
        if target not in self._next_hops:
            self._next_hops[target] = self.topology.next_hops(target)
        hops = self._next_hops[target]
        at = self.topology.peer(source)
        if at.device not in hops:
            return None
        path: list[PortRef] = []
        while at != target:
            choices = hops[at.device]
            chosen = hash_of(self._seed, at.device, source, target, qp) % len(choices)
            egress = choices[chosen]
            path.append(egress)
            at = self.topology.peer(egress)
        return tuple(path)


def hash_of(seed: int, switch: str, source: PortRef, target: PortRef, qp: int) -> int:
    """What this switch hashes this queue pair's packets to."""
    text = f"{seed}|{switch}|{source}|{target}|{qp}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
