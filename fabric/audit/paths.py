"""Which pairs of hosts a port, a switch or a fault stands between.

All shortest paths are meant, as ECMP uses them. Worked out on classes: pairs of
leaves, not pairs of NICs, so that 8,192 NICs behind 256 leaves are 65,536 cells of
a matrix. A path's hop counts for a pair of leaves where the distances on both
sides of it add up to the distance between them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fabric.audit.findings import PathReport
from fabric.audit.rule import SOFTWARE_FAMILIES, Wanted
from fabric.qos import DeviceQos, PortQos
from fabric.reach.linkstate import down_ports
from fabric.topology import PortRef, Topology

_FAR = 10_000  # between switches that no path joins

Mask = npt.NDArray[np.bool_]


class Pairs:
    """Pairs of NIC ports of one rail, in both directions, and what lies between them.

    ``down`` are ports whose links carry nothing: paths are those over the others.
    """

    def __init__(self, topology: Topology, down: Collection[PortRef] = ()) -> None:
        self._topology = topology
        hosts = frozenset(topology.hosts)
        switches = frozenset(topology.switches)
        self._neighbors = {
            name: tuple(
                dict.fromkeys(
                    peer
                    for port in topology.ports_of[name]
                    if port not in down and (peer := topology.peer(port).device) in switches
                )
            )
            for name in topology.switches
        }
        self._rails = [
            {
                end: topology.peer(end).device
                for end in rail
                if end not in down and topology.peer(end).device not in hosts
            }
            for rail in topology.rails()
        ]
        self._rail_of = {end: number for number, rail in enumerate(self._rails) for end in rail}
        leaves = dict.fromkeys(leaf for rail in self._rails for leaf in rail.values())
        self._leaf = {name: index for index, name in enumerate(leaves)}
        self._masks: dict[tuple[str, str], Mask] = {}

    @cached_property
    def _distance(self) -> dict[str, npt.NDArray[np.int32]]:
        """Hops from every leaf (in their order) to each switch."""
        found = {name: np.full(len(self._leaf), _FAR, np.int32) for name in self._topology.switches}
        for leaf, index in self._leaf.items():
            found[leaf][index] = 0
            steps, queue = {leaf: 0}, deque([leaf])
            while queue:
                at = queue.popleft()
                for neighbor in self._neighbors[at]:
                    if neighbor not in steps:
                        steps[neighbor] = steps[at] + 1
                        found[neighbor][index] = steps[neighbor]
                        queue.append(neighbor)
        return found

    @cached_property
    def _between(self) -> npt.NDArray[np.int32]:
        if not self._leaf:
            return np.zeros((0, 0), np.int32)
        return np.stack([self._distance[leaf] for leaf in self._leaf])

    @cached_property
    def _none(self) -> Mask:
        return np.zeros((len(self._leaf), len(self._leaf)), np.bool_)

    def _over_cable(self, a: str, b: str) -> Mask:
        """Pairs of leaves with a shortest path over a cable between these switches."""
        key = (a, b) if a < b else (b, a)
        if key not in self._masks:
            to_a, to_b = self._distance[key[0]], self._distance[key[1]]
            one_way = (to_a[:, None] + 1 + to_b[None, :]) == self._between
            self._masks[key] = (one_way | one_way.T) & (self._between < _FAR)
        return self._masks[key]

    def _over_switch(self, name: str) -> Mask:
        to_it = self._distance[name]
        mask: Mask = ((to_it[:, None] + to_it[None, :]) == self._between) & (self._between < _FAR)
        return mask

    @cached_property
    def total(self) -> int:
        """All pairs that a path joins."""
        return self._left(set(), self._none)

    def over(self, places: Iterable[PortRef]) -> int:
        """Pairs with one of these ports on a path; ``DEVICE:`` without a port is all of it."""
        ends: set[PortRef] = set()
        mask = self._none
        for place in places:
            if place in self._rail_of:
                ends.add(place)
            elif not place.port:
                ends |= {end for rail in self._rails for end in rail if end.device == place.device}
                if place.device in self._neighbors:
                    mask = mask | self._over_switch(place.device)
            elif place in self._topology.link_of:
                peer = self._topology.peer(place)
                if peer in self._rail_of:
                    ends.add(peer)
                elif peer.device in self._neighbors and place.device in self._neighbors:
                    mask = mask | self._over_cable(place.device, peer.device)
        return self.total - self._left(ends, mask)

    def _left(self, ends: set[PortRef], mask: Mask) -> int:
        """Pairs whose ends are none of these, of leaves that the mask leaves."""
        open_to = (~mask & (self._between < _FAR)).astype(np.int64)
        pairs = 0
        for rail in self._rails:
            at = np.zeros(len(self._leaf), np.int64)
            for end, leaf in rail.items():
                if end not in ends:
                    at[self._leaf[leaf]] += 1
            pairs += int(at @ open_to @ at) - int(at @ np.diagonal(open_to))
        return pairs


def path_report(
    pairs: Pairs,
    topology: Topology,
    wanted: Wanted,
    states: Mapping[str, DeviceQos],
    intended: Mapping[str, DeviceQos],
) -> PathReport:
    """How many pairs are lossless, and treated alike, on every hop of every path."""
    down = down_ports(topology, states)
    joined = Pairs(topology, down) if down else pairs
    unread: set[PortRef] = set()
    lossy: set[PortRef] = set()
    odd: dict[str, set[PortRef]] = {name: set() for name in wanted.dscps}
    for device, ports in topology.ports_of.items():
        live = {port.name: port for port in states[device].ports} if device in states else {}
        should = {port.name: port for port in intended[device].ports} if device in intended else {}
        for ref in ports:
            if ref in down:
                continue
            got, want = live.get(ref.port), should.get(ref.port)
            if got is None or want is None or _software(got):
                unread.add(ref)
            elif got != want:
                if not _lossless(wanted, got):
                    lossy.add(ref)
                for name, ports_of_class in odd.items():
                    if _treatment(wanted, name, got) != _treatment(wanted, name, want):
                        ports_of_class.add(ref)
    total = joined.total
    cut = pairs.total - total
    return PathReport(
        pairs.total,
        total - joined.over(unread | lossy),
        joined.over(unread),
        {name: total - joined.over(unread | wrong) for name, wrong in odd.items()},
        cut_pairs=cut,
        thinned_pairs=pairs.over(down) - cut,
        down=tuple(dict.fromkeys(down.values())),
    )


def _software(port: PortQos) -> bool:
    """Software RDMA pauses nothing, whatever it was asked for: nothing is known of it."""
    return port.nic is not None and port.nic.family in SOFTWARE_FAMILIES


def _lossless(wanted: Wanted, port: PortQos) -> bool:
    """Whether the port pauses the priority that it puts RoCE into."""
    return all(
        port.priority_of_dscp(dscp) in port.pfc_priorities for dscp in wanted.dscps_of_role["roce"]
    )


def _treatment(wanted: Wanted, name: str, port: PortQos) -> list[object]:
    """What the port does with each DSCP of a class: queue, PFC, service, marking, length."""
    treated: list[object] = []
    for priority in sorted({port.priority_of_dscp(dscp) for dscp in wanted.dscps[name]}):
        traffic_class = port.priority_to_class[priority]
        queue = port.queue(traffic_class)
        treated += (
            priority,
            traffic_class,
            priority in port.pfc_priorities,
            queue.scheduler.mode if queue else None,
            queue is not None and queue.ecn is not None,
            min(port.mtu_bytes, port.class_mtu_bytes[priority]),
        )
    return treated
