"""Pairs of NIC ports and their rounds, shared by the suites that visit every pair.

On a site of more than ``FULL_MATRIX_HOSTS`` hosts the pairs are a sample that knows the
topology: every two leaves meet in one round, with all of their hosts, and hosts of one leaf
meet in some. Every host then talks in nearly every round, and every leaf to every other.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from fabric.site import Site
from fabric.topology import PortRef
from validation.schedule import IndexPair, chunks, circle_rounds, grouped_rounds
from validation.traffic import Pair, host_rails

FULL_MATRIX_HOSTS = 64
# Rounds among the hosts of one leaf, where pairs are a sample.
INSIDE_ROUNDS = 4
# A round of more is split, so that all of it can begin at one moment over SSH.
PAIRS_AT_ONCE = 64


def pair_rounds(site: Site) -> tuple[tuple[Pair, ...], ...]:
    """Rounds in which each host is in one pair at most; all rails run at once."""
    hosts = site.topology.hosts
    ports: list[dict[str, PortRef]] = [
        {port.device: port for port in rail} for rail in host_rails(site)
    ]
    rounds = []
    for whole in _index_rounds(site):
        for pairs in chunks(whole, PAIRS_AT_ONCE):
            visited = tuple(
                (rail[hosts[left]], rail[hosts[right]])
                for rail in ports
                for left, right in pairs
                if hosts[left] in rail and hosts[right] in rail
            )
            if visited:
                rounds.append(visited)
    return tuple(rounds)


def _index_rounds(site: Site) -> tuple[tuple[IndexPair, ...], ...]:
    topology = site.topology
    if len(topology.hosts) <= FULL_MATRIX_HOSTS:
        return circle_rounds(len(topology.hosts))
    leaves: dict[str, list[int]] = defaultdict(list)
    for index, host in enumerate(topology.hosts):
        for port in topology.ports_of[host][:1]:
            leaves[topology.peer(port).device].append(index)
    return grouped_rounds(list(leaves.values()), INSIDE_ROUNDS)


def rail_pairs(site: Site) -> tuple[Pair, ...]:
    """Every unordered pair that is visited, once."""
    return tuple(pair for pairs in pair_rounds(site) for pair in pairs)


def sample_note(site: Site) -> str:
    """What a big site's rounds leave out; empty where every pair is visited."""
    if len(site.topology.hosts) <= FULL_MATRIX_HOSTS:
        return ""
    every = sum(len(rail) * (len(rail) - 1) // 2 for rail in host_rails(site))
    return (
        f"a sample of {len(rail_pairs(site)):,} of {every:,} pairs: every two leaves with all "
        f"of their hosts, and {INSIDE_ROUNDS} rounds inside every leaf"
    )


def both_ways(pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
    """Each pair and its reverse."""
    return tuple(way for source, target in pairs for way in ((source, target), (target, source)))


def rail_crossings(site: Site) -> tuple[Pair, ...]:
    """One pair a host and rail: its port there to the next host's port of the next rail.

    Only where a path leads from one rail to the other; empty on sites of one rail.
    """
    rails = [{port.device: port for port in rail} for rail in host_rails(site)]
    hosts = site.topology.hosts
    found = []
    for here, there in pairwise([*rails, *rails[:1]] if len(rails) > 1 else []):
        for host, neighbor in pairwise([*hosts, *hosts[:1]]):
            source, target = here.get(host), there.get(neighbor)
            if source and target and site.topology.paths(source, target):
                found.append((source, target))
    return tuple(found)
