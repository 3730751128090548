"""Paths of many flows at once: the same ECMP choices as ``fabric.sim.ecmp.Router``.

``Router`` walks named ports; here switches and ports are numbers, distances are
computed once for each switch that flows end at, and paths are one flat array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabric.errors import InputError
from fabric.sim.ecmp import hash_of
from fabric.sim.flowlevel.jit import kernel
from fabric.topology import PortRef, Topology

_UNREACHED = -1

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Paths:
    """Egress ports of each path, the sending NIC's own first.

    ``hops`` holds port numbers, path after path; path k is ``hops[starts[k]:starts[k + 1]]``.
    """

    hops: Ints
    starts: Ints

    def of(self, number: int) -> Ints:
        """The ports of one path."""
        return self.hops[self.starts[number] : self.starts[number + 1]]


class Graph:
    """A topology in numbers: hosts' ports first, device by device, then the switches'."""

    def __init__(self, topology: Topology, ports: Sequence[PortRef]) -> None:
        self.topology = topology
        self.ports = tuple(ports)
        self.index = {port: number for number, port in enumerate(self.ports)}
        switches = {name: number for number, name in enumerate(topology.switches)}
        self.switch = np.array([switches.get(port.device, -1) for port in self.ports], np.int64)
        self.peer = np.array([self.index[topology.peer(port)] for port in self.ports], np.int64)
        counts = np.bincount(self.switch[self.switch >= 0], minlength=len(switches))
        hosts = int(np.sum(self.switch < 0))
        self.first = hosts + np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def lay(
        self,
        pairs: Sequence[tuple[PortRef, PortRef, int]],
        seed: int,
        progress: Callable[[int], None] | None = None,
    ) -> Paths:
        """Paths of (source, target, queue pair number); ``progress`` counts finished ones.

        InputError names the ends of a pair that no path joins.
        """
        ends = np.array([[self.index[a], self.index[b]] for a, b, _ in pairs], np.int64)
        ends = ends.reshape(len(pairs), 2)
        last = self.switch[self.peer[ends[:, 1]]]
        found: list[list[int]] = [[] for _ in pairs]
        distance = np.empty(0, np.int64)
        choices: dict[int, list[int]] = {}
        before = _UNREACHED
        order = np.argsort(last, kind="stable").tolist()
        for done, k in enumerate(order, start=1):
            if last[k] != before:
                before = int(last[k])
                distance = _distances(self.first, self.peer, self.switch, before)
                choices = {}
            found[k] = self._walk(pairs[k], ends[k], distance, choices, seed)
            if progress is not None and done % 1024 == 0:
                progress(done)
        starts = np.concatenate([[0], np.cumsum([len(path) for path in found])]).astype(np.int64)
        hops = np.array([port for path in found for port in path], np.int64)
        return Paths(hops, starts)

    def _walk(
        self,
        pair: tuple[PortRef, PortRef, int],
        ends: Ints,
        distance: Ints,
        choices: dict[int, list[int]],
        seed: int,
    ) -> list[int]:
        source, target = int(ends[0]), int(ends[1])
        last = int(self.peer[target])
        path, at = [source], int(self.switch[self.peer[source]])
        if distance[at] == _UNREACHED:
            raise InputError(f"no path leads from {pair[0]} to {pair[1]}")
        while distance[at] > 1:
            if at not in choices:
                found = _next_hops(self.first, self.peer, self.switch, distance, at)
                choices[at] = found.tolist()
            ways = choices[at]
            chosen = 0
            if len(ways) > 1:
                name = self.topology.switches[at]
                chosen = hash_of(seed, name, pair[0], pair[1], pair[2]) % len(ways)
            path.append(ways[chosen])
            at = int(self.switch[self.peer[ways[chosen]]])
        path.append(last)
        return path


@kernel
def _distances(first: Ints, peer: Ints, switch: Ints, target: int) -> Ints:
    """Hops from every switch to the hosts of ``target``: 1 at itself; hosts do not forward."""
    distance = np.full(len(first) - 1, _UNREACHED, np.int64)
    queue = np.empty(len(first) - 1, np.int64)
    queue[0] = target
    distance[target] = 1
    head, tail = 0, 1
    while head < tail:
        at = queue[head]
        head += 1
        for port in range(first[at], first[at + 1]):
            neighbor = switch[peer[port]]
            if neighbor >= 0 and distance[neighbor] == _UNREACHED:
                distance[neighbor] = distance[at] + 1
                queue[tail] = neighbor
                tail += 1
    return distance


@kernel
def _next_hops(first: Ints, peer: Ints, switch: Ints, distance: Ints, at: int) -> Ints:
    """Ports of switch ``at`` that lead one hop nearer, in the order of its cables."""
    found = np.empty(first[at + 1] - first[at], np.int64)
    count = 0
    for port in range(first[at], first[at + 1]):
        neighbor = switch[peer[port]]
        if neighbor >= 0 and distance[neighbor] == distance[at] - 1:
            found[count] = port
            count += 1
    return found[:count]
