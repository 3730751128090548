"""A small site that stands for a large one: fewer hosts, leaves and spines of the same kinds.

Kept: devices' systems and models, speeds, cable lengths, and how oversubscribed a leaf is.
Scaled: switch buffers, with the number of a switch's ports, so that each port has as
much of a shared buffer as before. Left out: second NICs of a host, and every level
above the spines.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from fabric.errors import InputError
from fabric.site import DeviceSpec, HostSpec, Site
from fabric.topology import Link, PortRef, Topology

MAX_HOSTS = 16
MAX_LEAVES = 4
MAX_SPINES = 2


@dataclass(frozen=True)
class Representative:
    """The small site, and in words how it stands for the large one."""

    site: Site
    words: str


def represent(site: Site) -> Representative:
    """At most 16 hosts on 4 leaves and 2 spines of this site. InputError without two hosts."""
    topology = site.topology
    nics = topology.rails()[0] if topology.endpoints else ()
    if len(nics) < 2:
        raise InputError("tuning needs traffic between two hosts", file=site.path)
    hosts_of: dict[str, list[PortRef]] = {}
    for nic in nics:
        hosts_of.setdefault(topology.peer(nic).device, []).append(nic)
    leaves, spines = _switches(topology, list(hosts_of))
    each = -(-MAX_HOSTS // len(leaves))
    chosen = [nic for leaf in leaves for nic in hosts_of[leaf][:each]][:MAX_HOSTS]
    links = [topology.link_of[nic] for nic in chosen]
    for leaf in leaves:
        links += _uplinks(topology, leaf, spines, chosen)
    small = _site(site, chosen, (*leaves, *spines), links)
    return Representative(small, _words(site, small))


def _switches(topology: Topology, leaves: list[str]) -> tuple[list[str], list[str]]:
    """The first leaf and others that share its spines, and the first of those spines."""
    above = {leaf: _neighbours(topology, leaf) for leaf in leaves}
    first = leaves[0]
    spines = above[first][:MAX_SPINES]
    if not spines:
        return [first], []
    same = [leaf for leaf in leaves if set(spines) <= set(above[leaf])]
    return same[:MAX_LEAVES], spines if len(same) > 1 else []


def _neighbours(topology: Topology, leaf: str) -> list[str]:
    switches = frozenset(topology.switches)
    found = (topology.peer(port).device for port in topology.ports_of[leaf])
    return list(dict.fromkeys(device for device in found if device in switches))


def _uplinks(topology: Topology, leaf: str, spines: list[str], chosen: list[PortRef]) -> list[Link]:
    """Of this leaf's cables to the spines, as many as keep its oversubscription, or fewer."""
    if not spines:
        return []
    by_spine = [
        [topology.link_of[p] for p in topology.ports_of[leaf] if topology.peer(p).device == spine]
        for spine in spines
    ]
    hosts = [nic for nic in chosen if topology.peer(nic).device == leaf]
    down_bps = sum(topology.link_of[nic].speed_bps for nic in hosts)
    ratio = topology.oversubscription(leaf)
    wanted_bps = down_bps / ratio if ratio else 0.0
    speed_bps = by_spine[0][0].speed_bps
    count = max(len(spines), round(wanted_bps / speed_bps))
    in_turn = [
        links[k] for k in range(max(map(len, by_spine))) for links in by_spine if k < len(links)
    ]
    return in_turn[:count]


def _site(site: Site, nics: list[PortRef], switches: tuple[str, ...], links: list[Link]) -> Site:
    used = {end for link in links for end in (link.a, link.b)}
    devices: dict[str, DeviceSpec] = {}
    for name, spec in site.devices.items():
        if isinstance(spec, HostSpec):
            kept = {nic: spec.nics[nic] for host, nic in nics if host == name}
            if kept:
                devices[name] = spec.model_copy(update={"nics": kept})
        elif name in switches:
            ports = site.topology.ports_of[name]
            part = sum(port in used for port in ports) / len(ports)
            devices[name] = spec.model_copy(update={"buffer": max(1, round(spec.buffer * part))})
    cables = [cable for cable in site.document.cables if PortRef.parse(cable.a) in used]
    document = site.document.model_copy(update={"devices": devices, "cables": cables})
    topology = Topology(tuple(host for host, _ in nics), switches, tuple(links))
    return dataclasses.replace(site, document=document, topology=topology)


def _words(site: Site, small: Site) -> str:
    whole, part = site.topology, small.topology
    if len(part.links) == len(whole.links):
        return f"the whole site: {len(whole.hosts)} hosts, {len(whole.switches)} switches"
    return (
        f"{len(part.hosts)} of {len(whole.hosts)} hosts on {len(part.switches)} of "
        f"{len(whole.switches)} switches; speeds, cables and oversubscription kept, "
        "switch buffers scaled with their ports"
    )
