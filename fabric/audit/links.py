"""Rules about links: that they exist, how long a packet they take, and their FEC."""

from __future__ import annotations

from collections.abc import Iterator

from fabric.audit import ends
from fabric.audit.findings import Skip
from fabric.audit.rule import Fault, Subject, rule
from fabric.qos import PortFacts
from fabric.topology import PortRef
from fabric.units import format_speed
from fabric.unread import Fact

# Below this a cable of a few metres carries 25G without FEC (25GBASE-CR-S, up to
# 3 m); 100GBASE-LR4 over single-mode fibre never has it.
_FEC_FREE_BPS = 25 * 10**9
_FEC_FREE_M = 3.0
_LONG_REACH_M = 100.0


@rule(
    "port-missing",
    "error",
    "What is not there cannot carry traffic.",
    see="the device's list of interfaces against the cables of fabric.yaml",
    mend="break the port out, or correct the cable in fabric.yaml",
)
def port_missing(subject: Subject) -> Iterator[Fault | Skip]:
    """Every cabled port exists on the device."""
    if len(subject.pairs) == len(subject.intended.ports):
        return
    there = {live.name for live, _ in subject.pairs}
    for port in subject.intended.ports:
        if port.name not in there:
            if unseen := subject.unseen(port.name, "everything"):
                # Not a skip: of a port that shows nothing, no rule at all can speak.
                yield Fault("the device shows nothing of this port", port.name, (unseen,))
            else:
                yield Fault("the device shows no such port", port.name)


def _rdma_mtu_short(subject: Subject, port: str) -> int | None:
    """The active RDMA MTU where it is below the intent's; None where it is not, or unknown."""
    got = subject.facts(port).rdma_mtu_bytes
    return got if got is not None and got < subject.site.intent.mtu.roce else None


@rule(
    "rdma-mtu",
    "error",
    "RDMA falls back to small packets: more headers, more interrupts, less bandwidth.",
    checks=(21,),
    fields=("mtu_bytes", "class_mtu_bytes", "ingress_buffers"),
    see="host: ibv_devinfo (active_mtu), ip link show dev IF; 1500 gives 1024",
    mend="ip link set dev IF mtu 9000, and the same in the host's network configuration",
    source="Linux include/rdma/ib_addr.h, iboe_get_mtu",
    shows=ends.mtu,
)
def rdma_mtu(subject: Subject) -> Iterator[Fault | Skip]:
    """RDMA devices use packets of the intent's size."""
    if subject.live.kind != "host":
        return
    for live, intended in subject.pairs:
        got = _rdma_mtu_short(subject, live.name)
        if got is not None:
            yield Fault(
                f"the active RDMA MTU is {got}, should be {subject.site.intent.mtu.roce}",
                live.name,
                (f"the interface's MTU should be {intended.mtu_bytes}",),
            )
        elif subject.facts(live.name).rdma_mtu_bytes is None:
            yield Skip("rdma-mtu", subject.live.device, f"{live.name}: active RDMA MTU not shown")


@rule(
    "mtu",
    "error",
    "Packets that are too long for one hop are dropped there, every one.",
    checks=(20,),
    facts=(Fact.MTU,),
    fields=("mtu_bytes", "class_mtu_bytes", "ingress_buffers"),
    see="show interface, NX-OS network-qos mtu, ip link; then ping -M do -s SIZE end to end",
    mend="one MTU on every switch port and class, the hosts' no larger",
    source="Cisco Nexus 9000 NX-OS QoS guide (network-qos MTU)",
    shows=ends.mtu,
)
def mtu(subject: Subject) -> Iterator[Fault | Skip]:
    """Port and class MTU are what the intent says."""
    for live, intended in subject.ports():
        if skip := subject.skip("mtu", live.name, Fact.MTU):
            yield skip
            continue
        if _rdma_mtu_short(subject, live.name) is not None:
            continue
        if live.mtu_bytes != intended.mtu_bytes:
            yield Fault(f"MTU is {live.mtu_bytes}, should be {intended.mtu_bytes}", live.name)
        if skip := subject.skip("mtu", live.name, Fact.CLASS_MTU):
            yield skip
            continue
        for cls in subject.site.intent.classes.values():
            got = live.class_mtu_bytes[cls.priority]
            wanted = intended.class_mtu_bytes[cls.priority]
            if got not in (wanted, live.mtu_bytes):
                yield Fault(
                    f"MTU of priority {cls.priority} is {got}, should be {wanted}", live.name
                )


def _needs_fec(subject: Subject, port: str) -> bool:
    link = subject.link(port)
    if link is None or link.speed_bps < _FEC_FREE_BPS:
        return False
    if link.speed_bps == _FEC_FREE_BPS:
        return link.length_m > _FEC_FREE_M
    return link.speed_bps >= 200 * 10**9 or link.length_m <= _LONG_REACH_M


def _fec_fault(subject: Subject, port: str, mine: PortFacts) -> Fault | None:
    peer, far = subject.far_facts(port)
    evidence = (
        f"{subject.live.device}:{port}: FEC {mine.fec}",
        f"{peer}: FEC {far.fec or 'not shown'}",
    )
    if far.fec not in (None, "auto", mine.fec) and mine.fec != "auto":
        if not subject.is_first(port):
            return None
        return Fault("the two ends use different FEC", port, evidence)
    if mine.fec == "none" and _needs_fec(subject, port):
        if far.fec == "none" and not subject.is_first(port):
            return None
        return Fault("the link runs without FEC", port, evidence)
    return None


@rule(
    "fec",
    "error",
    "Bit errors corrupt frames; RDMA retransmits from the lost one on, and PFC saves nothing.",
    checks=(38,),
    see="host: ethtool --show-fec IF; NX-OS: show interface (oper fec state); SONiC: show "
    "interfaces fec status",
    mend="the same FEC at both ends: RS from 100G on",
    source="IEEE 802.3 clauses 74, 91, 108, 119; sonic-net/sonic-buildimage issue 24180",
)
def fec(subject: Subject) -> Iterator[Fault | Skip]:
    """Both ends of a cable use the same FEC, and fast links use one."""
    shown = False
    for live, _ in subject.pairs:
        mine = subject.facts(live.name)
        shown = shown or mine.fec is not None
        if mine.fec is not None and (fault := _fec_fault(subject, live.name, mine)):
            yield fault
    if subject.pairs and not shown:
        yield Skip("fec", subject.live.device, "no port's FEC was shown")


def same_peer(seen: str, peer: str) -> bool:
    """Whether a neighbour calls itself this device: by its name, or name and domain."""
    seen, peer = seen.lower(), peer.lower()
    return seen == peer or seen.startswith((f"{peer}.", f"{peer}("))


def sees(subject: Subject, peer: PortRef, name: str, port: str) -> bool:
    """Whether an LLDP neighbour is this port, named by its name or its address."""
    if not same_peer(name, peer.device):
        return False
    if port == peer.port:
        return True
    state = subject.states.get(peer.device)
    mac = state.facts_of(peer.port).mac if state else None
    return mac is not None and mac == "".join(c for c in port.lower() if c not in ".:-")


def link_fault(subject: Subject, port: str) -> Fault | None:
    """A link that is down, or of another speed than the cable; reported at one end.

    A port that is shut is reported where it is shut.
    """
    here = PortRef(subject.live.device, port)
    link = subject.link(port)
    if link is None:
        return None
    mine = subject.facts(port)
    peer, far = subject.far_facts(port)
    evidence = tuple(f"{end}: {_state(facts)}" for end, facts in ((here, mine), (peer, far)))
    if mine.admin_up is False:
        return Fault("the port is shut", port, evidence, (_open(subject, port),))
    if mine.up is False:
        first = far.up is not False or subject.is_first(port)
        told = first and far.admin_up is not False
        return Fault("the link is down", port, evidence) if told else None
    if mine.speed_bps not in (None, link.speed_bps):
        if far.speed_bps == mine.speed_bps and not subject.is_first(port):
            return None
        return Fault(
            f"the link runs at {format_speed(mine.speed_bps or 0)}, "
            f"fabric.yaml says {format_speed(link.speed_bps)}",
            port,
            evidence,
        )
    return None


def _open(subject: Subject, port: str) -> str:
    if subject.live.kind == "host":
        return f"ip link set dev {port} up"
    return f"put {port} back into service (no shutdown), or take its cable out of fabric.yaml"


def _state(facts: PortFacts) -> str:
    if facts.admin_up is False:
        return "shut"
    if facts.up is None:
        return "not shown"
    speed = f", {format_speed(facts.speed_bps)}" if facts.speed_bps else ""
    return ("up" if facts.up else "down") + speed
