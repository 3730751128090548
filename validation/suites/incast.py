"""Incast: many hosts to one, the pattern that a lossless fabric is built for.

First N to one receiver for N = 2, 4, 8, ...; then all to one, for every host as
the receiver (an even sample of them on big sites). All senders of a step begin
together, each on several queue pairs.
"""

from __future__ import annotations

import numpy as np

from fabric.site import Site
from fabric.topology import PortRef
from validation.criteria import Check, Judge, jain, payload_bps
from validation.judgement import causes
from validation.judgement.congestion import dcqcn_checks, pause_priority_checks, pfc_checks
from validation.judgement.losses import cable_checks, loss_checks, retransmission_checks
from validation.judgement.observation import Observation
from validation.schedule import growing_fan_in, spread
from validation.traffic import FlowMeasure, Pair, Step, Stream, TrafficPlan, host_rails

NAME = "incast"
MESSAGE_BYTES = 65536
QPS = 2
# All senders start at line rate, and rate control needs some milliseconds to find
# the fair share (goodput counts from then on). The step is long beside that, so
# that the share of paused time says something about the state that a job sees.
DURATION_US = 80_000.0
WARMUP_US = 10_000.0
SAMPLE_US = 1000.0
MAX_RECEIVERS = 32


def plan(site: Site) -> TrafficPlan:
    """Steps ``2-to-1``, ``4-to-1``, ... and then ``all-to-HOST`` for each receiver."""
    rails = [rail for rail in host_rails(site) if len(rail) > 2]
    steps = []
    receivers: set[PortRef] = set()
    for fan_in in growing_fan_in(max((len(rail) - 1 for rail in rails), default=0)):
        pairs: list[Pair] = []
        for rail in rails:
            others = rail[1:]
            pairs += [(others[index], rail[0]) for index in spread(len(others), fan_in)]
        steps.append(_step(f"{fan_in}-to-1", pairs))
    hosts = site.topology.hosts
    for index in spread(len(hosts), MAX_RECEIVERS):
        pairs = []
        for rail in rails:
            target = next((port for port in rail if port.device == hosts[index]), None)
            if target is not None:
                receivers.add(target)
                pairs += [(source, target) for source in rail if source != target]
        if pairs:
            steps.append(_step(f"all-to-{hosts[index]}", pairs))
    return TrafficPlan(
        suite=NAME,
        steps=tuple(steps),
        snapshot=tuple(site.devices),
        expected={"steps": len(steps), "receivers": len(receivers)},
        impossible="" if steps else "an incast needs three hosts or more",
    )


def judge(observation: Observation) -> tuple[Check, ...]:
    """``fraction`` and ``jain`` a receiver and step, then loss and congestion control."""
    checks: list[Check] = []
    for step in observation.plan.steps:
        checks += _step_checks(observation, step)
    checks += loss_checks(observation)
    if observation.lossless:
        checks += retransmission_checks(observation)
    checks += cable_checks(observation)
    checks += pause_priority_checks(observation)
    if observation.criteria.profile == "lossless-dcqcn":
        checks += dcqcn_checks(observation, _receivers(observation))
    elif observation.criteria.profile == "lossless-pfc-only":
        checks += pfc_checks(observation)
    return tuple(checks)


def _step(name: str, pairs: list[Pair]) -> Step:
    return Step(
        id=name,
        streams=(Stream(tuple(pairs), message_bytes=MESSAGE_BYTES, qps=QPS),),
        duration_us=DURATION_US,
        warmup_us=WARMUP_US,
        sample_us=SAMPLE_US,
    )


def _receivers(observation: Observation) -> tuple[PortRef, ...]:
    """Ports that at least two senders sent to in one step that ran."""
    found: dict[PortRef, None] = {}
    for step in observation.plan.steps:
        if step.id in observation.measured:
            targets = [target for _, target in step.pairs()]
            found.update(dict.fromkeys(t for t in targets if targets.count(t) > 1))
    return tuple(found)


def _step_checks(observation: Observation, step: Step) -> list[Check]:
    judging = Judge(observation, "flows")
    criteria = observation.criteria
    measure = observation.measured.get(step.id)
    checks: list[Check] = []
    for target in dict.fromkeys(target for _, target in step.pairs()):
        subject = f"{step.id} {target}"
        if measure is None:
            reason = observation.not_run[step.id]
            checks.append(judging.not_run("fraction", subject, reason))
            checks.append(judging.not_run("jain", subject, reason))
            continue
        pairs = [pair for pair in step.pairs() if pair[1] == target]
        flows = [measure.by_pair.get(pair) for pair in pairs]
        present = [flow for flow in flows if flow is not None]
        if len(present) < len(pairs):
            reason = f"{len(pairs) - len(present)} of {len(pairs)} senders brought no result"
            whys = [f"{pair[0]}: {measure.lost[pair]}" for pair in pairs if pair in measure.lost]
            reason = f"{reason}: {whys[0]}" if whys else reason
            checks.append(judging.failed("fraction", subject, reason, target))
            checks.append(judging.failed("jain", subject, reason, target))
            continue
        wire = payload_bps(
            observation.site.topology.link_of[target].speed_bps, observation.site.intent.mtu.roce
        )
        total = sum(flow.goodput_bps for flow in present)
        cut = next((why for pair in pairs if (why := causes.link_down(observation, *pair))), None)
        because = f": {cut[0]}" if cut else ""
        checks.append(
            judging.at_least(
                "fraction",
                subject,
                round(total / wire, 4),
                criteria.min_incast_fraction,
                "of the wire",
                reason=f"{len(present)} senders bring {total / 1e9:.2f} Gbit/s to {target}, "
                f"{total / wire:.1%} of what its wire carries{because}",
                at=cut[1] if cut else target,
            )
        )
        checks.append(_fairness(judging, subject, present, criteria.min_incast_jain, because))
    return checks


def _fairness(
    judging: Judge, subject: str, flows: list[FlowMeasure], limit: float, because: str
) -> Check:
    shares = np.array([flow.goodput_bps for flow in flows])
    worst = flows[int(shares.argmin())]
    fairness = jain(list(shares))
    return judging.at_least(
        "jain",
        subject,
        round(fairness, 4),
        limit,
        "Jain index",
        reason=f"{subject}: shares are unfair (Jain {fairness:.3f}): {worst.source} gets "
        f"{shares.min() / 1e9:.2f} Gbit/s, the luckiest {shares.max() / 1e9:.2f}{because}",
        at=worst.source,
    )
