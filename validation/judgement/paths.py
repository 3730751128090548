"""RDMA packets in their own priority at every hop; every cable alive.

What neighbours send into a switch in the RDMA class must leave it in the RDMA
class. That holds whatever path ECMP chose, and whatever else is on the wire.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from fabric.qos import Neighbor
from fabric.reach.linkstate import down_ports
from fabric.site import Site
from fabric.topology import Link, PortRef
from validation.counters import Delta
from validation.criteria import Check, Judge
from validation.judgement import causes
from validation.judgement.observation import Observation
from validation.traffic import application_tos

# Share of the packets that must be seen in the priority (ngc_multinode_perf and
# the RoCE field's usual 99.9 %: retransmissions and CNPs are few).
PRIORITY_SHARE = 0.999
# What a link carries that no test uses: LLDP, ARP, a routing protocol's hellos.
IDLE_PACKETS = 100


def priority_checks(observation: Observation) -> list[Check]:
    """``priority``: each NIC port both ways, and each switch as a whole.

    Where a NIC does not count packets by priority, that is said (``uncounted``), and its
    switch is judged instead: by what it was sent, and what leaves it for the NIC.
    """
    sent, received = _planned_packets(observation)
    # Of a pair that broke off nobody knows how much it sent; `reach` names it.
    came, _ = _planned_packets(observation, broken=False)
    checks: list[Check | None] = []
    for port in observation.site.topology.endpoints:
        if port.device in observation.unread:
            continue
        checks.append(_unmarked(observation, port))
        checks.append(_nic(observation, port, "tx_prio_packets", "sent", sent[port]))
        checks.append(_nic(observation, port, "rx_prio_packets", "received", received[port]))
        if _uncounted(observation, port, "tx_prio_packets"):
            checks.append(_first_hop(observation, port, came[port]))
        if _uncounted(observation, port, "rx_prio_packets"):
            checks.append(_last_hop(observation, port, received[port]))
    for switch in observation.site.topology.switches:
        if switch not in observation.unread:
            checks.append(_through(observation, switch, sent))
    return [check for check in checks if check is not None]


def _unmarked(observation: Observation, port: PortRef) -> Check | None:
    """Says where the tests had to mark their RDMA themselves, and jobs have to."""
    tos = application_tos(observation.site, port)
    if tos is None:
        return None
    return Judge(observation, "counters").skipped(
        "marking",
        port,
        f"{port}: its driver has no setting for the traffic class of verbs; the tests ask for "
        f"{tos} themselves, and every job has to (NCCL_IB_TC={tos}, UCX_IB_TRAFFIC_CLASS={tos})",
    )


def _uncounted(observation: Observation, port: PortRef, name: str) -> str:
    """Why a NIC does not count packets by priority; empty where it does, or does not say."""
    if observation.deltas.get(*port, name, observation.priority) is not None:
        return ""
    return observation.deltas.why_missing(port.device, name, port.port, observation.priority)


def _first_hop(observation: Observation, port: PortRef, planned: int) -> Check | None:
    """RDMA packets that the switch took from this NIC, by the priority that it gave them.

    None where the switch does not count that: what leaves it is judged all the same.
    """
    ingress = observation.site.topology.peer(port)
    delta = observation.deltas.get(*ingress, "rx_prio_packets", observation.priority)
    if not planned or delta is None or not delta.known:
        return None
    own, site = causes.mismarked(observation, port), observation.site
    there = causes.wrong_priority(observation, ingress)
    return Judge(observation, "counters").at_least(
        "priority",
        f"{port} -> {ingress}",
        min(1.0, delta.value / planned),
        PRIORITY_SHARE,
        "of packets",
        reason=f"{delta.value:,} of {planned:,} RDMA packets from {port} came to {ingress} as "
        f"DSCP {site.intent.roce.dscp[0]}, priority {observation.priority}: "
        f"{own or there or causes.UNKNOWN}",
        at=ingress if there and not own else port,
    )


def _last_hop(observation: Observation, port: PortRef, planned: int) -> Check | None:
    """RDMA packets that the switch sends to this NIC, by the queue in which they leave.

    Of what leaves in other queues there must be less than the smallest pair sends: one
    that is marked wrongly would show.
    """
    judge = Judge(observation, "counters")
    if not planned:
        return None
    egress = observation.site.topology.peer(port)
    subject = f"{egress} -> {port}"
    delta = observation.deltas.get(*egress, "tx_queue_packets", observation.priority)
    if delta is None or not delta.known:
        said = observation.deltas.why_missing(
            egress.device, "tx_queue_packets", egress.port, observation.priority
        )
        if delta is None and said:
            return judge.skipped("priority", subject, f"{egress}: {said}")
        return judge.failed("priority", subject, f"{egress} shows no tx_queue_packets", egress)
    ours = {observation.priority, observation.site.intent.cnp.priority}
    elsewhere = sum(
        other.value
        for other in observation.deltas.named(*egress, "tx_queue_packets")
        if other.priority not in ours and other.known
    )
    share = min(1.0, delta.value / planned)
    if elsewhere >= _smallest(observation, port):
        share = min(share, delta.value / (delta.value + elsewhere))
    cause = causes.wrong_priority(observation, egress) or causes.stray(observation)
    return judge.at_least(
        "priority",
        subject,
        share,
        PRIORITY_SHARE,
        "of packets",
        reason=f"{delta.value:,} of {planned:,} RDMA packets to {port} left {egress} in queue "
        f"{observation.priority}, {elsewhere:,} packets in others: {cause or causes.UNKNOWN}",
        at=egress,
    )


def _smallest(observation: Observation, target: PortRef) -> int:
    """Packets of the pair that sends fewest to this port."""
    payload = observation.site.intent.mtu.roce
    counts = [
        packets
        for step in observation.plan.steps
        for stream in step.streams
        if stream.role == "roce"
        and any(pair[1] == target for pair in stream.pairs)
        and (packets := stream.packets(payload)) is not None
    ]
    return min(counts, default=1)


def link_checks(observation: Observation) -> list[Check]:
    """``link``: each cable is up, and carried traffic or its ends see each other by LLDP."""
    judge = Judge(observation, "counters")
    down = down_ports(observation.site.topology, observation.states)
    checks = []
    for link in observation.site.topology.links:
        if link.a in down:
            reason = f"{link.a} - {link.b}: {down[link.a]}"
            checks.append(judge.failed("link", f"{link.a} - {link.b}", reason, link.a))
        elif not {link.a.device, link.b.device} & set(observation.unread):
            checks.append(_link(observation, judge, link))
    return checks


def _planned_packets(
    observation: Observation, *, broken: bool = True
) -> tuple[dict[PortRef, int], dict[PortRef, int]]:
    sent: dict[PortRef, int] = defaultdict(int)
    received: dict[PortRef, int] = defaultdict(int)
    payload = observation.site.intent.mtu.roce
    for step in observation.plan.steps:
        if step.id not in observation.measured:
            continue
        for stream in step.streams:
            packets = stream.packets(payload)
            if packets is None or stream.role != "roce":
                continue
            lost = () if broken else observation.measured[step.id].lost
            for source, target in stream.pairs:
                if (source, target) in lost:
                    continue
                sent[source] += packets
                received[target] += packets
    return sent, received


def _nic(
    observation: Observation, port: PortRef, name: str, verb: str, planned: int
) -> Check | None:
    judge = Judge(observation, "counters")
    if not planned:
        return None
    subject = f"{port} {verb}"
    delta = observation.deltas.get(*port, name, observation.priority)
    if delta is None or not delta.known:
        if said := _uncounted(observation, port, name):
            return judge.skipped("uncounted", subject, f"{port}: {said}; its switch is judged")
        return judge.failed("priority", subject, f"{port} does not show {name}", port)
    # What was lost before it came here is no matter of this port's maps.
    passing = observation.site.topology.peer(port) if name == "rx_prio_packets" else port
    sent = observation.deltas.get(*passing, "tx_packets")
    expected = min(planned, sent.value) if sent is not None and sent.known else planned
    if not expected:
        return judge.skipped("priority", subject, f"no packet came from {passing}")
    share = delta.value / expected
    elsewhere = _most(observation, port, name)
    seen = f", most were in priority {elsewhere.priority}" if elsewhere is not None else ""
    cause = causes.wrong_priority(observation, port) or causes.stray(observation) or causes.UNKNOWN
    return judge.at_least(
        "priority",
        subject,
        min(1.0, share),
        PRIORITY_SHARE,
        "of packets",
        reason=f"{port} {verb} {delta.value:,} of {expected:,} RDMA packets in priority "
        f"{observation.priority}{seen}: {cause}",
        at=port,
    )


def _most(observation: Observation, port: PortRef, name: str) -> Delta | None:
    others = [
        delta
        for delta in observation.deltas.named(*port, name)
        if delta.priority != observation.priority and delta.value
    ]
    return max(others, key=lambda delta: delta.value, default=None)


def _through(observation: Observation, switch: str, planned: Mapping[PortRef, int]) -> Check | None:
    """Packets of the class that came in from neighbours against those that left.

    Of a NIC that does not count them by priority, those that it was to send and sent.
    """
    judge = Judge(observation, "counters")
    hosts = set(observation.site.topology.hosts)
    came = left = 0
    dropped = 0
    for port in observation.cabled(switch):
        peer = observation.site.topology.peer(port)
        if peer.device in observation.unread:
            return None
        theirs = "tx_prio_packets" if peer.device in hosts else "tx_queue_packets"
        for end, name in ((peer, theirs), (port, "tx_queue_packets")):
            delta = observation.deltas.get(*end, name, observation.priority)
            if end is peer and peer.device in hosts and _uncounted(observation, peer, theirs):
                sent = observation.deltas.get(*peer, "tx_packets")
                came += min(planned.get(peer, 0), sent.value if sent and sent.known else 0)
                continue
            if delta is None or not delta.known:
                said = observation.deltas.why_missing(
                    end.device, name, end.port, observation.priority
                )
                if delta is None and said:
                    return judge.skipped("priority", switch, f"{end}: {said}")
                return judge.failed("priority", switch, f"{end} does not show {name}", end)
            if end is port:
                left += delta.value
            else:
                came += delta.value
        # Dropped packets are the loss check's, not a matter of maps.
        dropped += sum(
            delta.value
            for name in ("rx_discards", "rx_mtu_drops", "tx_discards")
            if (delta := observation.deltas.get(*port, name)) is not None
        )
    if not came:
        return judge.skipped("priority", switch, "no RDMA packet came this way")
    cause, at = _misplacing_port(observation, switch)
    return judge.at_least(
        "priority",
        switch,
        min(1.0, (left + dropped) / came),
        PRIORITY_SHARE,
        "of packets",
        reason=f"{switch}: {came:,} packets came in as priority {observation.priority}, "
        f"{left:,} left in that queue: {cause}",
        at=at,
    )


def _misplacing_port(observation: Observation, switch: str) -> tuple[str, PortRef | str]:
    for port in observation.cabled(switch):
        cause = causes.wrong_priority(observation, port)
        if cause:
            return f"{port.port}: {cause}", port
    return causes.stray(observation) or causes.UNKNOWN, switch


def _link(observation: Observation, judge: Judge, link: Link) -> Check:
    subject = f"{link.a} - {link.b}"
    hosts = set(observation.site.topology.hosts)
    for end in (link.a, link.b):
        stranger = _stranger(observation, end)
        if stranger:
            return judge.failed("link", subject, stranger, end)
    moved = []
    for sender, receiver in ((link.a, link.b), (link.b, link.a)):
        for end, name in ((sender, "tx_packets"), (receiver, "rx_packets")):
            delta = observation.deltas.get(*end, name)
            if delta is not None and delta.known:
                moved.append(delta.value)
    if moved and min(moved) > 0:
        return judge.at_least("link", subject, min(moved), 1, "packets")
    idle = "no packet crossed it" if moved else "neither end shows packets"
    if {link.a.device, link.b.device} & hosts:
        end = link.a if link.a.device in hosts else link.b
        return judge.failed("link", subject, f"{subject}: {idle}: the link is down", end)
    if _sees_peer(observation, link.a) or _sees_peer(observation, link.b):
        return judge.skipped(
            "link", subject, f"{idle}: no path that ECMP chose uses it (LLDP sees both ends)"
        )
    return judge.failed(
        "link", subject, f"{subject}: {idle} and LLDP shows no neighbour: it is down", link.a
    )


def _stranger(observation: Observation, end: PortRef) -> str:
    """A neighbour that LLDP shows where the site's cable says somebody else."""
    seen = _neighbors(observation, end)
    peer = observation.site.topology.peer(end)
    if not seen or any(_same(observation, neighbor, peer) for neighbor in seen):
        return ""
    return f"{end} is cabled to {seen[0].peer}:{seen[0].peer_port}, the site says {peer}"


def _sees_peer(observation: Observation, end: PortRef) -> bool:
    peer = observation.site.topology.peer(end)
    return any(_same(observation, neighbor, peer) for neighbor in _neighbors(observation, end))


def _neighbors(observation: Observation, end: PortRef) -> list[Neighbor]:
    state = observation.states.get(end.device)
    if state is None or state.neighbors is None:
        return []
    return [neighbor for neighbor in state.neighbors if neighbor.port == end.port]


def _same(observation: Observation, neighbor: Neighbor, peer: PortRef) -> bool:
    """Systems name themselves with or without domain; hosts may send a MAC as their port."""
    name = (
        neighbor.peer if neighbor.peer in observation.site.devices else neighbor.peer.split(".")[0]
    )
    if name != peer.device:
        return False
    known = {port.port for port in observation.cabled(peer.device)}
    return neighbor.peer_port == peer.port or neighbor.peer_port not in known


def uplinks(site: Site) -> tuple[PortRef, ...]:
    """Every port of a switch whose cable leads to another switch: one way of a fabric link."""
    switches = frozenset(site.topology.switches)
    return tuple(
        port
        for switch in site.topology.switches
        for port in site.topology.ports_of[switch]
        if site.topology.peer(port).device in switches
    )


def used_uplinks(observation: Observation) -> tuple[PortRef, ...]:
    """Ways of fabric links that carried traffic, by the sender's counter: ECMP's coverage."""
    return tuple(
        port
        for port in uplinks(observation.site)
        if (delta := observation.deltas.get(*port, "tx_packets")) is not None
        and delta.known
        and delta.value > IDLE_PACKETS
    )


def ecmp_checks(observation: Observation) -> list[Check]:
    """``ecmp``: a leaf's uplinks all carried traffic. Shown, not demanded: a SKIP where not.

    Which link a queue pair takes is its hash's choice; few of them leave links idle.
    """
    judge = Judge(observation, "counters")
    used = set(used_uplinks(observation))
    ways: dict[str, list[PortRef]] = defaultdict(list)
    for port in uplinks(observation.site):
        ways[port.device].append(port)
    checks = []
    for switch, ports in ways.items():
        if len(ports) < 2 or switch in observation.unread:
            continue
        idle = [port for port in ports if port not in used]
        if not idle:
            checks.append(judge.at_least("ecmp", switch, len(ports), len(ports), "links"))
            continue
        named = ", ".join(port.port for port in idle[:3])
        reason = (
            f"{len(ports) - len(idle)} of {len(ports)} links of {switch} to other switches "
            f"carried traffic; idle: {named}{' ...' if len(idle) > 3 else ''}: too few queue "
            "pairs, or hashes that choose alike (polarisation)"
        )
        checks.append(judge.skipped("ecmp", switch, reason))
    return checks
