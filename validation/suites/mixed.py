"""Mixed: plain TCP and RDMA towards one port, each pressing on the other.

The article's two levels of flow control: RDMA is kept lossless by PFC and DCQCN, TCP is
lossy and has its own control, and ETS keeps them apart. For each receiver both classes send
alone, then many TCP senders press on one of RDMA, then many of RDMA on one of TCP. Each
class must get what ETS guarantees it, or what it can send alone where that is less (a
host's TCP may be slower than its wire).
"""

from __future__ import annotations

from dataclasses import dataclass

from fabric.intent import TrafficClass
from fabric.site import Site
from fabric.topology import PortRef
from validation.criteria import Check, Judge, payload_bps, tcp_payload_bps
from validation.judgement.congestion import pause_priority_checks
from validation.judgement.coverage import counted, counters
from validation.judgement.losses import cable_checks, loss_checks, retransmission_checks
from validation.judgement.observation import Observation
from validation.schedule import spread
from validation.traffic import Pair, Role, Step, StepMeasure, Stream, TrafficPlan, host_rails

NAME = "mixed"
MESSAGE_BYTES = 65536
QPS = 2
CONNECTIONS = 4
# Connections that begin together overshoot and lose whole windows; Linux waits 200 ms for
# those (TCP_RTO_MIN), and shares are steady from then on.
DURATION_US = 260_000.0
WARMUP_US = 200_000.0
SAMPLE_US = 10_000.0
MAX_RECEIVERS = 4
MAX_SENDERS = 16
_ALONE: dict[Role, str] = {"roce": "rdma-alone", "default": "tcp-alone"}
_PRESSED: dict[Role, str] = {"roce": "tcp-presses", "default": "rdma-presses"}
_ROLES: tuple[Role, Role] = ("roce", "default")
# Packets of TCP that are smaller than the MTU only add to their number.
_IN_CLASS = 0.9


@dataclass(frozen=True, slots=True)
class _Contest:
    """One receiver and its senders; the first of them is alone in its class."""

    target: PortRef
    senders: tuple[PortRef, ...]


def plan(site: Site) -> TrafficPlan:
    """Steps ``rdma-alone-HOST``, ``tcp-alone-HOST``, ``tcp-presses-HOST``, ``rdma-presses-HOST``.

    A sample of the receivers of every rail, with as many senders as are sampled.
    """
    steps = []
    contests = _contests(site)
    for contest in contests:
        first, rest = contest.senders[:1], contest.senders[1:]
        name = str(contest.target)
        for role in _ROLES:
            steps.append(_step(f"{_ALONE[role]}-{name}", _stream(first, contest, role)))
        for pressed, pressing in (_ROLES, _ROLES[::-1]):
            both = _stream(first, contest, pressed), _stream(rest, contest, pressing)
            steps.append(_step(f"{_PRESSED[pressed]}-{name}", *both))
    families = counted(site)
    return TrafficPlan(
        suite=NAME,
        steps=tuple(steps),
        snapshot=tuple(site.devices),
        expected={"steps": len(steps), "receivers": len(contests), **counters(site, *families)},
        counted=families,
        impossible="" if steps else "two classes compete for a receiver of three hosts or more",
    )


def judge(observation: Observation) -> tuple[Check, ...]:
    """``share``, ``class``, ``lossy``; RDMA loses nothing, and only it is paused."""
    checks: list[Check] = []
    for contest in _contests(observation.site):
        checks += [_share(observation, contest, pressed, role) for pressed, role in _four()]
        checks.append(_in_class(observation, contest))
        checks.append(_lossy(observation, contest))
    checks += loss_checks(observation, lossy_too=True)
    if observation.lossless:
        checks += retransmission_checks(observation)
    checks += cable_checks(observation)
    checks += pause_priority_checks(observation)
    return tuple(checks)


def _four() -> list[tuple[Role, Role]]:
    """Which class is pressed, and whose share is judged."""
    return [(pressed, role) for pressed in _ROLES for role in _ROLES]


def _contests(site: Site) -> list[_Contest]:
    contests = []
    for rail in host_rails(site):
        if len(rail) < 3:
            continue
        for index in spread(len(rail), MAX_RECEIVERS):
            others = (*rail[index + 1 :], *rail[:index])
            chosen = tuple(others[place] for place in spread(len(others), MAX_SENDERS))
            contests.append(_Contest(rail[index], chosen))
    return contests


def _stream(senders: tuple[PortRef, ...], contest: _Contest, role: Role) -> Stream:
    pairs: tuple[Pair, ...] = tuple((sender, contest.target) for sender in senders)
    qps = QPS if role == "roce" else CONNECTIONS
    return Stream(pairs, message_bytes=MESSAGE_BYTES, qps=qps, role=role)


def _step(name: str, *streams: Stream) -> Step:
    return Step(name, streams, DURATION_US, WARMUP_US, SAMPLE_US)


def _total(measure: StepMeasure, role: Role, step: Step) -> float | None:
    """Goodput of a class in bit/s; None where a sender brought no result."""
    total = 0.0
    for stream in step.streams:
        for pair in stream.pairs if stream.role == role else ():
            flow = measure.flow(pair, role)
            if flow is None:
                return None
            total += flow.goodput_bps
    return total


def _class(site: Site, role: Role) -> TrafficClass:
    return site.intent.roce if role == "roce" else site.intent.default


def _wire(site: Site, port: PortRef, role: Role) -> float:
    speed = site.topology.link_of[port].speed_bps
    if role == "roce":
        return payload_bps(speed, site.intent.mtu.roce)
    return tcp_payload_bps(speed, site.intent.mtu.host)


def _share(observation: Observation, contest: _Contest, pressed: Role, role: Role) -> Check:
    judging = Judge(observation, "flows")
    site = observation.site
    names = {"roce": "RDMA", "default": "TCP"}
    subject = f"{_PRESSED[pressed]}-{contest.target} {names[role]}"
    found: list[float] = []
    for kind in (_ALONE[role], _PRESSED[pressed]):
        step_id = f"{kind}-{contest.target}"
        measure = observation.measured.get(step_id)
        if measure is None:
            return judging.not_run("share", subject, observation.not_run[step_id])
        step = next(step for step in observation.plan.steps if step.id == step_id)
        total = _total(measure, role, step)
        if total is None:
            why = next(iter(measure.lost.values()), "no result came back")
            return judging.failed("share", subject, f"{step_id}: {why}", contest.target)
        found.append(total)
    could, got = found
    if not could:
        reason = f"{subject}: alone, {contest.senders[0]} brings nothing to {contest.target}"
        return judging.failed("share", subject, reason, contest.senders[0])
    percent = _class(site, role).scheduler.percent
    due = _wire(site, contest.target, role) * percent / 100
    if pressed == role:
        # One sender: what it cannot send alone it does not ask for.
        due = min(due, could)
    return judging.at_least(
        "share",
        subject,
        round(got / due, 4),
        observation.criteria.min_class_share,
        "of what is guaranteed",
        reason=f"{subject}: {got / 1e9:.2f} Gbit/s where {due / 1e9:.2f} are guaranteed "
        f"(ETS {percent} %): {_starved(observation, contest.target, role)}",
        at=site.topology.peer(contest.target),
    )


def _starved(observation: Observation, target: PortRef, role: Role) -> str:
    """What the port in front of a receiver holds that takes a class its share."""
    site = observation.site
    last_hop = site.topology.peer(target)
    state = observation.states.get(last_hop.device)
    port = state.port(last_hop.port) if state is not None else None
    if port is None:
        return f"{last_hop} was not read"
    queues = {role: port.class_of_dscp(_dscp(site, role)) for role in _ROLES}
    if len(set(queues.values())) == 1:
        return f"both classes share queue {queues[role]} of {last_hop}"
    queue = port.queue(queues[role])
    if queue is None:
        return f"{last_hop} has no queue {queues[role]}"
    given: str = queue.scheduler.mode
    given += f" with {queue.scheduler.percent} %" if queue.scheduler.percent else ""
    return f"{last_hop} serves queue {queues[role]} by {given}"


def _dscp(site: Site, role: Role) -> int:
    """A DSCP of this class; the first that no class claims for the default one."""
    if role == "roce":
        return site.intent.roce.dscp[0]
    taken = {dscp for cls in site.intent.classes.values() for dscp in cls.dscp}
    return next(dscp for dscp in range(64) if dscp not in taken)


def _in_class(observation: Observation, contest: _Contest) -> Check:
    """TCP left the last switch in its own queue: packets there against bytes received."""
    judge = Judge(observation, "counters")
    site = observation.site
    last_hop = site.topology.peer(contest.target)
    queue = site.intent.default.priority
    if last_hop.device in observation.unread:
        return judge.failed("class", contest.target, observation.unread[last_hop.device], last_hop)
    delta = observation.deltas.get(*last_hop, "tx_queue_packets", queue)
    if delta is None or not delta.known:
        said = observation.deltas.why_missing(
            last_hop.device, "tx_queue_packets", last_hop.port, queue
        )
        if delta is None and said:
            return judge.skipped("class", contest.target, f"{last_hop}: {said}")
        reason = f"{last_hop} shows no tx_queue_packets of queue {queue}"
        return judge.failed("class", contest.target, reason, last_hop)
    bits = 0.0
    for step in observation.plan.steps:
        measure = observation.measured.get(step.id)
        if measure is not None:
            seconds = max(0.0, measure.traffic_us - step.warmup_us) / 1e6
            flows = measure.tcp_by_pair.items()
            bits += sum(f.goodput_bps for (_, to), f in flows if to == contest.target) * seconds
    wanted = bits / 8 / (site.intent.mtu.host - 52)
    if not wanted:
        return judge.not_run("class", contest.target, "no TCP reached it")
    return judge.at_least(
        "class",
        contest.target,
        min(1.0, delta.value / wanted),
        _IN_CLASS,
        "of TCP's packets",
        reason=f"{delta.value:,} packets left {last_hop} in queue {queue}, TCP brought "
        f"{wanted:,.0f} or more: it travels in another class",
        at=last_hop,
    )


def _lossy(observation: Observation, contest: _Contest) -> Check:
    """The lossy class drops where it is too much; a queue that never fills proves nothing."""
    judge = Judge(observation, "counters")
    last_hop = observation.site.topology.peer(contest.target)
    queue = observation.site.intent.default.priority
    delta = observation.deltas.get(*last_hop, "queue_drops", queue)
    if delta is None or not delta.known:
        said = observation.deltas.why_missing(last_hop.device, "queue_drops", last_hop.port, queue)
        reason = said or f"{last_hop} shows no drops of queue {queue}"
        return judge.skipped("lossy", contest.target, f"{last_hop}: {reason}")
    if not delta.value:
        reason = f"TCP never filled queue {queue} of {last_hop}: nothing shows that it drops"
        return judge.skipped("lossy", contest.target, reason)
    return judge.at_least("lossy", contest.target, delta.value, 1, "packets")
