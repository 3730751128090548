"""Rules about ECN: which queue is marked, from where, and before PFC or after.

Kmin and Kmax count an egress queue, XOFF an ingress buffer: how they relate
depends on how many ports feed the queue. A plain comparison is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabric.audit import ends
from fabric.audit.findings import Skip
from fabric.audit.rule import Fault, Subject, numbers, rule
from fabric.qos import Ecn, PortQos
from fabric.units import format_speed, parse_speed_bps
from fabric.unread import Fact

_SEE = (
    "the WRED/ECN profile of the RoCE queue (NX-OS: random-detect ... ecn; SONiC: "
    "WRED_PROFILE and QUEUE; EOS: show qos interfaces ecn)"
)


def _roce(subject: Subject, port: PortQos) -> Ecn | None:
    queue = port.queue(subject.wanted.roce)
    return queue.ecn if queue else None


def _elsewhere(subject: Subject, live: PortQos, intended: PortQos) -> list[int]:
    """Queues that are marked and should not be."""
    return [
        queue.traffic_class
        for queue in live.queues
        if queue.ecn is not None
        and queue.traffic_class != subject.wanted.roce
        and ((want := intended.queue(queue.traffic_class)) is None or want.ecn is None)
    ]


def _senseless(ecn: Ecn) -> bool:
    return ecn.kmin_bytes >= ecn.kmax_bytes or ecn.pmax_percent == 0


def _late(subject: Subject, live: PortQos, ecn: Ecn) -> int | None:
    """XOFF of the RoCE buffer where marking begins only there, or above."""
    buffer = live.ingress_buffer(subject.wanted.roce)
    if buffer is None or buffer.alpha is not None or ecn.kmin_bytes < buffer.xoff_bytes:
        return None
    return buffer.xoff_bytes


def _other_speed(subject: Subject, live: PortQos, ecn: Ecn) -> str:
    """The other port speed whose thresholds these are; empty for none."""
    link = subject.link(live.name)
    if link is None:
        return ""
    for text, profile in subject.site.intent.profiles.items():
        theirs = (profile.kmin, profile.kmax, profile.pmax_percent)
        same = theirs == (ecn.kmin_bytes, ecn.kmax_bytes, ecn.pmax_percent)
        if same and parse_speed_bps(text) != link.speed_bps:
            return f"{text} (this port: {format_speed(link.speed_bps)})"
    return ""


@rule(
    "ecn-lossy-queue",
    "error",
    "Marks then slow the wrong traffic down, and RDMA not at all.",
    checks=(9,),
    facts=(Fact.ECN,),
    fields=("queues",),
    see=_SEE,
    mend="bind the ECN profile to the RoCE queue, and to no other",
    source="RFC 3168; Zhu et al., SIGCOMM 2015",
    shows=ends.ecn,
)
def ecn_lossy_queue(subject: Subject) -> Iterator[Fault | Skip]:
    """No queue but RoCE's is marked."""
    for live, intended in subject.ports():
        if queues := _elsewhere(subject, live, intended):
            instead = _roce(subject, live) is None and _roce(subject, intended) is not None
            yield Fault(
                f"ECN is on in traffic class {numbers(queues)}"
                + (f" instead of {subject.wanted.roce}" if instead else ", which is not for RoCE"),
                live.name,
            )


@rule(
    "ecn-range",
    "error",
    "Marking that goes from nothing to everything at once, or never begins, controls nothing.",
    checks=(8,),
    facts=(Fact.ECN,),
    fields=("queues",),
    see=_SEE,
    mend="Kmin below Kmax, and a marking probability above 0",
    source="Floyd & Jacobson 1993 (RED); Zhu et al., SIGCOMM 2015",
    shows=ends.ecn,
)
def ecn_range(subject: Subject) -> Iterator[Fault | Skip]:
    """Kmin is below Kmax, and packets between them can be marked."""
    for live, intended in subject.ports():
        ecn = _roce(subject, live)
        if ecn is not None and ecn != _roce(subject, intended) and _senseless(ecn):
            yield Fault(f"ECN marks {ends.marking(ecn)}", live.name)


@rule(
    "ecn-before-pfc",
    "warning",
    "PFC stops whole links before a single sender is told to slow down.",
    checks=(7,),
    facts=(Fact.ECN,),
    fields=("queues", "ingress_buffers"),
    see=_SEE + "; and XOFF of the ingress buffer. Under load: pause frames rise, ECN marks do not",
    mend="lower Kmin and Kmax, or raise XOFF, so that t_ECN stays below t_PFC for the fan-in",
    source="Zhu et al., SIGCOMM 2015, section 4; doi 10.1109/LNET.2024.3382955",
    shows=ends.xoff,
)
def ecn_before_pfc(subject: Subject) -> Iterator[Fault | Skip]:
    """Marking begins at a depth below the one at which PFC begins."""
    for live, intended in subject.ports():
        ecn = _roce(subject, live)
        if ecn is None or ecn == _roce(subject, intended) or _senseless(ecn):
            continue
        if (xoff := _late(subject, live, ecn)) is not None:
            yield Fault(
                f"Kmin ({ecn.kmin_bytes} B, egress) is not below XOFF ({xoff} B, ingress)",
                live.name,
            )


@rule(
    "speed-profile",
    "warning",
    "Thresholds of a slow port leave a fast one idle; those of a fast one overfill a slow one.",
    checks=(10,),
    facts=(Fact.ECN,),
    fields=("queues",),
    see=_SEE + ", port speed by port speed",
    mend="one profile a speed: intent.profiles",
    source="sonic-net/sonic-buildimage pg_profile_lookup.ini (keyed by speed)",
    shows=ends.ecn,
)
def speed_profile(subject: Subject) -> Iterator[Fault | Skip]:
    """Every port has the thresholds of its own speed."""
    for live, intended in subject.ports():
        ecn = _roce(subject, live)
        if ecn is None or ecn == _roce(subject, intended) or _senseless(ecn):
            continue
        if _late(subject, live, ecn) is None and (other := _other_speed(subject, live, ecn)):
            yield Fault(f"ECN has the thresholds of {other}", live.name)


@rule(
    "ecn",
    "error",
    "Without marks senders never slow down: PFC has to stop whole links instead.",
    checks=(6,),
    facts=(Fact.ECN,),
    fields=("queues",),
    see=_SEE,
    mend="mark the RoCE queue between the Kmin and Kmax of its port speed",
    source="RFC 3168; Zhu et al., SIGCOMM 2015",
    shows=ends.ecn,
)
def ecn(subject: Subject) -> Iterator[Fault | Skip]:
    """The RoCE queue is marked between Kmin and Kmax of the intent."""
    for live, intended in subject.ports():
        if skip := subject.skip("ecn", live.name, Fact.ECN):
            yield skip
            continue
        found, wanted = _roce(subject, live), _roce(subject, intended)
        if found == wanted:
            continue
        where = f"traffic class {subject.wanted.roce}"
        if found is None:
            if not _elsewhere(subject, live, intended):
                yield Fault(f"ECN is off in {where}", live.name)
        elif wanted is None:
            yield Fault(f"ECN is on in {where}, which is not wanted here", live.name)
        elif not (
            _senseless(found)
            or _late(subject, live, found) is not None
            or _other_speed(subject, live, found)
        ):
            yield Fault(
                f"ECN in {where} marks {ends.marking(found)}, should be {wanted.kmin_bytes} to "
                f"{wanted.kmax_bytes} B, {wanted.pmax_percent} %",
                live.name,
            )
