"""Devices, ports and cables: who is wired to whom, and over which paths.

Pure: built from plain values, no I/O. Paths are all shortest ones, since that
is what ECMP uses on a Clos.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple


class PortRef(NamedTuple):
    """One port of one device, written ``leaf1:Ethernet1/1``."""

    device: str
    port: str

    def __str__(self) -> str:
        return f"{self.device}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> PortRef:
        """ValueError where the text is not ``DEVICE:PORT``."""
        device, separator, port = text.partition(":")
        if not (device and separator and port):
            raise ValueError(f"{text!r} is not a port; write it like leaf1:Ethernet1/1")
        return cls(device, port)


@dataclass(frozen=True, slots=True)
class Link:
    """One cable."""

    a: PortRef
    b: PortRef
    speed_bps: int
    length_m: float


@dataclass(frozen=True)
class Topology:
    """A graph of hosts and switches. ``hosts`` and ``switches`` are device names."""

    hosts: tuple[str, ...]
    switches: tuple[str, ...]
    links: tuple[Link, ...]

    @cached_property
    def link_of(self) -> dict[PortRef, Link]:
        """Every cabled port's link."""
        return {end: link for link in self.links for end in (link.a, link.b)}

    @cached_property
    def ports_of(self) -> dict[str, tuple[PortRef, ...]]:
        """Cabled ports of every device, in the order of the cables."""
        ports: dict[str, list[PortRef]] = {name: [] for name in (*self.hosts, *self.switches)}
        for link in self.links:
            for end in (link.a, link.b):
                ports[end.device].append(end)
        return {name: tuple(ends) for name, ends in ports.items()}

    def peer(self, port: PortRef) -> PortRef:
        """The port at the other end of this port's cable; KeyError where uncabled."""
        link = self.link_of[port]
        return link.b if link.a == port else link.a

    @cached_property
    def endpoints(self) -> tuple[PortRef, ...]:
        """Every cabled NIC port, host by host."""
        return tuple(port for host in self.hosts for port in self.ports_of[host])

    def rails(self) -> tuple[tuple[PortRef, ...], ...]:
        """Endpoints by their position in their host: rail 0 holds every first NIC."""
        rails: list[list[PortRef]] = []
        for host in self.hosts:
            for index, port in enumerate(self.ports_of[host]):
                if index == len(rails):
                    rails.append([])
                rails[index].append(port)
        return tuple(tuple(rail) for rail in rails)

    def distances(self, target: PortRef) -> dict[str, int]:
        """Hops from every switch that reaches this NIC port; hosts do not forward."""
        first = self.peer(target).device
        distance = {first: 1}
        queue = deque([first])
        while queue:
            device = queue.popleft()
            for port in self.ports_of[device]:
                neighbor = self.peer(port).device
                if neighbor in self._switch_set and neighbor not in distance:
                    distance[neighbor] = distance[device] + 1
                    queue.append(neighbor)
        return distance

    @cached_property
    def _switch_set(self) -> frozenset[str]:
        return frozenset(self.switches)

    def next_hops(self, target: PortRef) -> dict[str, tuple[PortRef, ...]]:
        """Egress ports towards this NIC port, for every switch that reaches it."""
        distance = self.distances(target)
        last = self.peer(target)
        hops: dict[str, tuple[PortRef, ...]] = {last.device: (last,)}
        for device, steps in distance.items():
            if device != last.device:
                hops[device] = tuple(
                    port
                    for port in self.ports_of[device]
                    if distance.get(self.peer(port).device, steps) == steps - 1
                )
        return hops

    def paths(self, source: PortRef, target: PortRef) -> tuple[tuple[PortRef, ...], ...]:
        """All shortest paths, each as its egress ports from the source NIC on.

        Empty where the target cannot be reached.
        """
        hops = self.next_hops(target)
        if self.peer(source).device not in hops:
            return ()
        complete: list[tuple[PortRef, ...]] = []
        partial: list[tuple[PortRef, ...]] = [(source,)]
        while partial:
            path = partial.pop()
            at = self.peer(path[-1])
            if at == target:
                complete.append(path)
            else:
                partial.extend((*path, port) for port in reversed(hops[at.device]))
        return tuple(complete)

    def oversubscription(self, switch: str) -> float:
        """Host-side over fabric-side speed of a switch; 0 without hosts, inf without uplinks."""
        down = up = 0
        host_set = frozenset(self.hosts)
        for port in self.ports_of[switch]:
            speed_bps = self.link_of[port].speed_bps
            if self.peer(port).device in host_set:
                down += speed_bps
            else:
                up += speed_bps
        if not down:
            return 0.0
        return down / up if up else float("inf")


@dataclass(frozen=True, slots=True)
class ClosShape:
    """A two-level Clos: what ``build_clos`` needs to know.

    ``nics_per_host`` 2 is dual-homed: NIC k of a host goes to leaf 2i + k of its
    pair of leaves.
    """

    hosts: int
    leaves: int
    spines: int
    nics_per_host: int = 1
    host_speed_bps: int = 25 * 10**9
    uplink_speed_bps: int = 100 * 10**9
    host_cable_m: float = 3
    uplink_cable_m: float = 30


def build_clos(shape: ClosShape) -> Topology:
    """A 1:1 (or better) Clos with NX-OS port names; ValueError where it cannot be built.

    Hosts are spread evenly over the leaves; each leaf gets as many uplinks to
    every spine as it needs not to be oversubscribed.
    """
    if min(shape.hosts, shape.leaves) < 1 or shape.spines < 0:
        raise ValueError("a Clos needs at least one host and one leaf")
    if shape.leaves > 1 and shape.spines < 1:
        raise ValueError("several leaves need at least one spine to join them")
    if shape.nics_per_host not in (1, 2):
        raise ValueError("hosts have one NIC, or two when dual-homed")
    if shape.leaves % shape.nics_per_host:
        raise ValueError("dual-homed hosts need an even number of leaves")
    hosts = tuple(f"host{i + 1}" for i in range(shape.hosts))
    leaves = tuple(f"leaf{i + 1}" for i in range(shape.leaves))
    spines = tuple(f"spine{i + 1}" for i in range(shape.spines))
    used: dict[str, int] = dict.fromkeys((*leaves, *spines), 0)

    def next_port(switch: str) -> PortRef:
        used[switch] += 1
        return PortRef(switch, f"Ethernet1/{used[switch]}")

    groups = shape.leaves // shape.nics_per_host
    links: list[Link] = []
    for index, host in enumerate(hosts):
        group = index * groups // shape.hosts
        for nic in range(shape.nics_per_host):
            leaf = leaves[group * shape.nics_per_host + nic]
            links.append(
                Link(
                    next_port(leaf),
                    PortRef(host, f"ens1f{nic}"),
                    shape.host_speed_bps,
                    shape.host_cable_m,
                )
            )
    if spines:
        down_bps = max(used[leaf] for leaf in leaves) * shape.host_speed_bps
        per_spine = max(1, -(-down_bps // (shape.uplink_speed_bps * len(spines))))
        for leaf in leaves:
            # Uplinks sit on the fixed 100G ports behind the 48 host ports.
            used[leaf] = max(used[leaf], 48)
            for spine in spines:
                for _ in range(per_spine):
                    links.append(
                        Link(
                            next_port(leaf),
                            next_port(spine),
                            shape.uplink_speed_bps,
                            shape.uplink_cable_m,
                        )
                    )
    return Topology(hosts, (*leaves, *spines), tuple(links))


@dataclass(frozen=True, slots=True)
class ThreeLevelShape:
    """A three-level Clos: pods of leaves and spines, and cores that join the pods.

    Every leaf has ``leaf_cables`` cables to each spine of its pod. Spine k of every
    pod belongs to plane k and has one cable to each of the ``cores_per_plane`` cores
    of that plane.
    """

    pods: int
    leaves_per_pod: int
    hosts_per_leaf: int
    spines_per_pod: int
    cores_per_plane: int
    leaf_cables: int = 1
    host_speed_bps: int = 25 * 10**9
    uplink_speed_bps: int = 100 * 10**9
    host_cable_m: float = 3
    uplink_cable_m: float = 30
    core_cable_m: float = 100


def build_three_level_clos(shape: ThreeLevelShape) -> Topology:
    """A three-level Clos with NX-OS port names; ValueError where a number is below 1.

    Non-blocking where a leaf's hosts need no more than its cables to the spines carry,
    and a spine has as many cables to cores as to leaves.
    """
    counts = (
        shape.pods,
        shape.leaves_per_pod,
        shape.hosts_per_leaf,
        shape.spines_per_pod,
        shape.cores_per_plane,
        shape.leaf_cables,
    )
    if min(counts) < 1:
        raise ValueError("a three-level Clos needs at least one of everything")
    hosts: list[str] = []
    leaves = [f"leaf{i + 1}" for i in range(shape.pods * shape.leaves_per_pod)]
    spines = [f"spine{i + 1}" for i in range(shape.pods * shape.spines_per_pod)]
    cores = [f"core{i + 1}" for i in range(shape.spines_per_pod * shape.cores_per_plane)]
    used: dict[str, int] = dict.fromkeys((*leaves, *spines, *cores), 0)
    links: list[Link] = []

    def next_port(switch: str) -> PortRef:
        used[switch] += 1
        return PortRef(switch, f"Ethernet1/{used[switch]}")

    def join(lower: str, upper: str, length_m: float) -> None:
        ends = next_port(lower), next_port(upper)
        links.append(Link(*ends, shape.uplink_speed_bps, length_m))

    for leaf in leaves:
        for _ in range(shape.hosts_per_leaf):
            hosts.append(f"host{len(hosts) + 1}")
            nic = PortRef(hosts[-1], "ens1f0")
            links.append(Link(next_port(leaf), nic, shape.host_speed_bps, shape.host_cable_m))
    for number, leaf in enumerate(leaves):
        # Uplinks sit on the fixed 100G ports behind the 48 host ports.
        used[leaf] = max(used[leaf], 48)
        pod = number // shape.leaves_per_pod
        for spine in spines[pod * shape.spines_per_pod : (pod + 1) * shape.spines_per_pod]:
            for _ in range(shape.leaf_cables):
                join(leaf, spine, shape.uplink_cable_m)
    for number, spine in enumerate(spines):
        plane = number % shape.spines_per_pod
        for core in cores[plane * shape.cores_per_plane : (plane + 1) * shape.cores_per_plane]:
            join(spine, core, shape.core_cable_m)
    return Topology(tuple(hosts), (*leaves, *spines, *cores), tuple(links))


def unreachable_pairs(topology: Topology, limit: int = 3) -> Iterable[tuple[PortRef, PortRef]]:
    """Up to ``limit`` pairs of endpoints of one rail with no path between them.

    All endpoints behind one leaf are reached alike: leaves are compared, not NICs.
    """
    found = 0
    for rail in topology.rails():
        behind: dict[str, list[PortRef]] = {}
        for end in rail:
            behind.setdefault(topology.peer(end).device, []).append(end)
        for targets in behind.values():
            reached = topology.distances(targets[0])
            for leaf, sources in behind.items():
                if leaf in reached:
                    continue
                for source, target in product(sources, targets):
                    if source.device != target.device:
                        yield source, target
                        found += 1
                        if found == limit:
                            return
