"""Pairs of NIC ports and their rounds, shared by the suites that visit every pair."""

from __future__ import annotations

from fabric.site import Site
from fabric.topology import PortRef
from validation.schedule import circle_rounds
from validation.traffic import Pair, host_rails


def pair_rounds(site: Site) -> tuple[tuple[Pair, ...], ...]:
    """Rounds in which each host is in one pair at most; all rails run at once."""
    hosts = site.topology.hosts
    ports: list[dict[str, PortRef]] = [
        {port.device: port for port in rail} for rail in host_rails(site)
    ]
    rounds = []
    for pairs in circle_rounds(len(hosts)):
        visited = tuple(
            (rail[hosts[left]], rail[hosts[right]])
            for rail in ports
            for left, right in pairs
            if hosts[left] in rail and hosts[right] in rail
        )
        if visited:
            rounds.append(visited)
    return tuple(rounds)


def rail_pairs(site: Site) -> tuple[Pair, ...]:
    """Every unordered pair of every rail, once."""
    return tuple(pair for pairs in pair_rounds(site) for pair in pairs)


def both_ways(pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
    """Each pair and its reverse."""
    return tuple(way for source, target in pairs for way in ((source, target), (target, source)))
