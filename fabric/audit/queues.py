"""Rules about egress queues: strict or shared, and how the shares add up."""

from __future__ import annotations

from collections.abc import Iterator

from fabric.audit import ends
from fabric.audit.findings import Skip
from fabric.audit.maps import starving
from fabric.audit.rule import Fault, Subject, first, numbers, rule
from fabric.qos import PortQos, Scheduler
from fabric.units import format_speed
from fabric.unread import Fact

_SEE = (
    "NX-OS: show policy-map interface ... type queuing; SONiC: SCHEDULER and QUEUE; host: "
    "mlnx_qos -i IF (tsa, bw), or dcb ets show dev IF"
)


def _cnp_waits(subject: Subject, live: PortQos, intended: PortQos) -> bool:
    got, wanted = live.queue(subject.wanted.cnp), intended.queue(subject.wanted.cnp)
    return (
        got is not None
        and wanted is not None
        and wanted.scheduler.mode == "strict"
        and got.scheduler.mode != "strict"
    )


def _other_strict(subject: Subject, live: PortQos, intended: PortQos) -> list[int]:
    """Queues of a switch that are strict, and are not to be."""
    if subject.live.kind != "switch":
        return []
    return [
        queue.traffic_class
        for queue in live.queues
        if queue.scheduler.mode == "strict"
        and (want := intended.queue(queue.traffic_class)) is not None
        and want.scheduler.mode != "strict"
    ]


def _bad_weights(subject: Subject, live: PortQos, intended: PortQos) -> str:
    """What is wrong about the shares in themselves; empty for nothing."""
    shared = [queue for queue in live.queues if queue.scheduler.mode == "ets"]
    if [q.scheduler for q in live.queues] == [q.scheduler for q in intended.queues]:
        return ""
    for queue in live.queues:
        if queue.scheduler.mode == "strict" and queue.scheduler.percent:
            return f"strict traffic class {queue.traffic_class} also has a share"
    roce = live.queue(subject.wanted.roce)
    if roce is not None and roce.scheduler == Scheduler("ets", 0):
        return f"RoCE's traffic class {subject.wanted.roce} has a share of 0 %"
    total = sum(queue.scheduler.percent for queue in shared)
    if shared and total != 100 and not _cnp_waits(subject, live, intended):
        return f"the ETS shares add up to {total} %, not to 100 %"
    return ""


@rule(
    "cnp-scheduler",
    "error",
    "CNPs wait behind the data that they are to slow down: queues grow until PFC acts.",
    checks=(13,),
    facts=(Fact.SCHEDULING,),
    fields=("queues",),
    see=_SEE,
    mend="a strict queue for CNPs",
    source="Zhu et al., SIGCOMM 2015; NVIDIA RoCE configuration guides",
    shows=ends.shares,
)
def cnp_scheduler(subject: Subject) -> Iterator[Fault | Skip]:
    """CNPs are served first."""
    for live, intended in subject.ports():
        if _cnp_waits(subject, live, intended):
            queue = live.queue(subject.wanted.cnp)
            yield Fault(
                f"CNPs' traffic class {subject.wanted.cnp} is {ends.served(queue)}, not strict",
                live.name,
            )


@rule(
    "strict-starves",
    "warning",
    "Nothing caps a strict queue: whatever is in it beside CNPs takes bandwidth from RDMA.",
    checks=(14,),
    facts=(Fact.SCHEDULING,),
    fields=("queues", "dscp_to_priority"),
    see=_SEE + "; and which DSCPs are mapped to the strict queue",
    mend="only CNPs in the strict queue, or a shaper on it (SONiC: pir, EOS: shape rate)",
    source="IEEE 802.1Q, strict priority; Arista EOS and SONiC scheduler references",
    shows=ends.strict,
)
def strict_starves(subject: Subject) -> Iterator[Fault | Skip]:
    """A strict queue of a switch holds CNPs only."""
    for live, intended in subject.ports():
        if dscps := starving(subject, live, intended):
            yield Fault(
                f"the strict queue {subject.wanted.cnp} also takes DSCP {numbers(dscps[:8])}",
                live.name,
            )
        elif classes := _other_strict(subject, live, intended):
            yield Fault(f"traffic class {numbers(classes)} is strict", live.name)


@rule(
    "ets-weights",
    "error",
    "Some class gets nothing under load, or a share that nobody has promised it.",
    checks=(31,),
    facts=(Fact.SCHEDULING,),
    fields=("queues",),
    see=_SEE,
    mend="shares of the ETS classes that add up to 100, none of them 0, none for strict ones",
    source="IEEE 802.1Qaz",
    shows=ends.shares,
)
def ets_weights(subject: Subject) -> Iterator[Fault | Skip]:
    """ETS shares add up to 100 %, and RoCE has one."""
    for live, intended in subject.ports():
        if wrong := _bad_weights(subject, live, intended):
            yield Fault(wrong, live.name)


@rule(
    "scheduler",
    "error",
    "Classes then do not get the shares that the intent promises them.",
    checks=(31,),
    facts=(Fact.SCHEDULING,),
    fields=("queues",),
    see=_SEE,
    mend="the scheduler of intent.classes on every port",
    source="IEEE 802.1Qaz",
    shows=ends.shares,
)
def scheduler(subject: Subject) -> Iterator[Fault | Skip]:
    """Classes share what CNPs leave as the intent says."""
    for live, intended in subject.ports():
        if _bad_weights(subject, live, intended):
            continue
        if _other_strict(subject, live, intended):
            continue
        wrong = [
            f"traffic class {wanted.traffic_class} is {ends.served(got)}, "
            f"should be {ends.served(wanted)}"
            for wanted in intended.queues
            if (got := live.queue(wanted.traffic_class)) is not None
            and got.scheduler != wanted.scheduler
            and (wanted.traffic_class != subject.wanted.cnp or wanted.scheduler.mode != "strict")
        ]
        if wrong:
            yield Fault(first(wrong, "traffic classes are served otherwise"), live.name, (*wrong,))


@rule(
    "rate-limit",
    "error",
    "A capped class sends no faster, however fast the link is and whatever waits for it.",
    facts=(Fact.RATE,),
    fields=("queues",),
    see="mlnx_qos -i IF (ratelimit of each tc), or dcb maxrate show dev IF; switch: shape in the "
    "queue's policy or profile (NX-OS: shape min ... max ..., EOS: shape rate)",
    mend="mlnx_qos -i IF -r 0,0,0,0,0,0,0,0, or dcb maxrate set dev IF tc-maxrate all:0; switch: "
    "no shape under the queue",
    source="Mellanox/mlnx-tools python/mlnx_qos; iproute2 man dcb-maxrate; Cisco Nexus 9000 NX-OS "
    "QoS guide, Configuring Queuing; Arista EOS User Manual, Quality of Service",
    shows=ends.limits,
)
def rate_limit(subject: Subject) -> Iterator[Fault | Skip]:
    """No traffic class may send less than its link takes.

    But CNPs' on a switch, where a cap is what keeps a strict queue from starving others.
    """
    capped = {subject.wanted.cnp} if subject.live.kind == "switch" else set()
    for live, intended in subject.ports():
        wanted = {queue.traffic_class: queue.max_rate_bps for queue in intended.queues}
        wrong = [
            f"traffic class {queue.traffic_class} {_limit(queue.max_rate_bps)}, "
            f"should {_limit(wanted.get(queue.traffic_class, 0)).removeprefix('may ')}"
            for queue in live.queues
            if queue.max_rate_bps != wanted.get(queue.traffic_class, 0)
            and not (queue.traffic_class in capped and queue.scheduler.mode == "strict")
        ]
        if wrong:
            yield Fault(first(wrong, "traffic classes have other limits"), live.name, (*wrong,))


def _limit(bps: int) -> str:
    return f"may send {format_speed(bps)} at most" if bps else "may send without a limit"
