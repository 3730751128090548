"""Rules about who is wired to whom, as LLDP sees it from both ends."""

from __future__ import annotations

from collections.abc import Iterator

from fabric.audit.findings import Skip
from fabric.audit.links import link_fault, same_peer, sees
from fabric.audit.rule import Fault, Subject, rule
from fabric.qos import Neighbor
from fabric.topology import PortRef


def _fix(subject: Subject) -> tuple[str, ...]:
    # Of saved outputs the cables are those of a cables.csv.
    return (f"move the cable, or correct cables in {subject.site.path.name}",)


def _by_port(subject: Subject) -> dict[str, list[Neighbor]]:
    seen: dict[str, list[Neighbor]] = {}
    for neighbor in subject.live.neighbors or ():
        seen.setdefault(neighbor.port, []).append(neighbor)
    return seen


@rule(
    "lldp-peers",
    "warning",
    "Two speakers answer DCBX for one port: the switch takes neither, or the wrong one.",
    checks=(27,),
    see="show lldp neighbors: one port, two chassis; host: firmware LLDP (mlxconfig LLDP_NB_*) "
    "beside lldpad or lldpd",
    mend="switch off the NIC firmware's LLDP, or the host's daemon",
    source="IEEE 802.1AB, multiple peers; NVIDIA, LLDP_NB_DCBX_P1",
)
def lldp_peers(subject: Subject) -> Iterator[Fault | Skip]:
    """One neighbour speaks LLDP on a port."""
    for port, neighbors in _by_port(subject).items():
        peers = sorted({f"{neighbor.peer}:{neighbor.peer_port}" for neighbor in neighbors})
        if len(peers) > 1:
            yield Fault(f"LLDP sees {len(peers)} neighbours: {', '.join(peers)}", port)


@rule(
    "cabling",
    "error",
    "Every limit and path here is computed from the cables that are told.",
    checks=(23,),
    see="show lldp neighbors at both ends; show interface (speed, link)",
    mend="move the cable, or correct cables in fabric.yaml",
    source="IEEE 802.1AB",
)
def cabling(subject: Subject) -> Iterator[Fault | Skip]:
    """LLDP sees the neighbours that fabric.yaml names, and links run at their speed."""
    for live, _ in subject.pairs:
        if fault := link_fault(subject, live.name):
            yield Fault(fault.message, fault.port, fault.evidence, fault.fix or _fix(subject))
    if subject.live.kind != "switch":
        return
    if subject.live.neighbors is None:
        yield Skip("cabling", subject.live.device, "no LLDP table was shown")
        return
    seen = _by_port(subject)
    told: set[str] = set()
    for port in subject.intended.ports:
        if port.name in told or subject.link(port.name) is None:
            continue
        peer = subject.peer(port.name)
        found = seen.get(port.name, [])
        if not found:
            facts = subject.facts(port.name)
            if facts.up is not False and facts.admin_up is not False:
                yield Skip("cabling", subject.live.device, f"LLDP sees nobody on {port.name}")
        elif not any(sees(subject, peer, one.peer, one.peer_port) for one in found):
            fault = _wrong(subject, seen, port.name, peer)
            told |= set(fault.port.split(", "))
            yield fault
    yield from _unknown(subject, seen)


def _wrong(subject: Subject, seen: dict[str, list[Neighbor]], port: str, peer: PortRef) -> Fault:
    """Another neighbour than the cable's: swapped with another port, or simply another."""
    one = seen[port][0]
    here = f"{subject.live.device}:{port}"
    evidence = (
        f"{here}: LLDP sees {one.peer}:{one.peer_port}",
        f"{subject.site.path.name}: {here} - {peer}",
        f"{peer}: LLDP sees {_seen_from(subject, peer)}",
    )
    for other, neighbors in seen.items():
        theirs = PortRef(subject.live.device, other)
        if other == port or theirs not in subject.site.topology.link_of:
            continue
        expected = subject.site.topology.peer(theirs)
        mine_there = any(sees(subject, peer, n.peer, n.peer_port) for n in neighbors)
        if mine_there and sees(subject, expected, one.peer, one.peer_port):
            message = f"the cables of {port} and {other} are swapped"
            return Fault(message, f"{port}, {other}", evidence, _fix(subject))
    told = subject.site.path.name
    message = f"LLDP sees {one.peer}:{one.peer_port}, {told} says {peer}"
    return Fault(message, port, evidence, _fix(subject))


def _seen_from(subject: Subject, peer: PortRef) -> str:
    state = subject.states.get(peer.device)
    if state is None or state.neighbors is None:
        return "not read"
    found = [n for n in state.neighbors if n.port == peer.port]
    return ", ".join(f"{n.peer}:{n.peer_port}" for n in found) or "nobody"


def _unknown(subject: Subject, seen: dict[str, list[Neighbor]]) -> Iterator[Fault]:
    """Cables between two devices of the site that fabric.yaml does not have."""
    for port, neighbors in seen.items():
        here = PortRef(subject.live.device, port)
        if here in subject.site.topology.link_of:
            continue
        for one in neighbors:
            peer = next((n for n in subject.site.devices if same_peer(one.peer, n)), None)
            # A port that has a cable in fabric.yaml is reported from its own end.
            if peer is None or PortRef(peer, one.peer_port) in subject.site.topology.link_of:
                continue
            if peer in subject.site.topology.switches and peer < subject.live.device:
                continue
            yield Fault(
                f"LLDP sees {peer}:{one.peer_port}, {subject.site.path.name} has no such cable",
                port,
                (f"{here}: LLDP sees {one.peer}:{one.peer_port}",),
                _fix(subject),
            )
