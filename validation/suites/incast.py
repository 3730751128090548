"""Incast: many hosts to one, the pattern that a lossless fabric is built for.

First N to one receiver for N = 2, 4, 8, ...; then all to one, for every host as
the receiver (an even sample of them on big sites); then all others to a few receivers at
once, each sender to all of them (`many-to-K`), as in parameter servers and exchanges of
experts. All senders of a step begin together, each on several queue pairs. Of repetitions
the median is judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fabric.site import Site
from fabric.topology import PortRef
from validation.criteria import Check, Judge, jain
from validation.judgement import causes
from validation.judgement.capacity import fair_shares_bps
from validation.judgement.congestion import dcqcn_checks, pause_priority_checks, pfc_checks
from validation.judgement.coverage import counted, counters
from validation.judgement.losses import cable_checks, loss_checks, retransmission_checks
from validation.judgement.observation import Observation
from validation.judgement.statistics import repeated
from validation.schedule import growing_fan_in, spread
from validation.traffic import Pair, Step, Stream, TrafficPlan, host_rails

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
# Receivers of many-to-few; senders are more than they.
FEW = (2, 4)


def plan(site: Site) -> TrafficPlan:
    """Steps ``2-to-1``, ``4-to-1``, ...; ``all-to-HOST`` for each receiver; ``many-to-K``."""
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
    for step in _many_to_few(rails):
        receivers |= {target for _, target in step.pairs()}
        steps.append(step)
    families = counted(site)
    return TrafficPlan(
        suite=NAME,
        steps=tuple(steps),
        snapshot=tuple(site.devices),
        expected={
            "steps": len(steps),
            "receivers": len(receivers),
            "pairs": sum(1 for step in steps for _ in step.pairs()),
            **counters(site, *families),
        },
        impossible="" if steps else "an incast needs three hosts or more",
        counted=families,
    )


def _many_to_few(rails: Sequence[tuple[PortRef, ...]]) -> Iterator[Step]:
    """All others to 2, then 4 receivers of each rail at once, spread over its leaves."""
    for few in FEW:
        pairs: list[Pair] = []
        for rail in rails:
            if len(rail) <= 2 * few:
                continue
            targets = [rail[index] for index in spread(len(rail), few)]
            senders = [port for port in rail if port not in targets]
            pairs += [(sender, target) for target in targets for sender in senders]
        if pairs:
            yield _step(f"many-to-{few}", pairs)


def judge(observation: Observation) -> tuple[Check, ...]:
    """``fraction`` and ``jain`` a receiver and step, then loss and congestion control."""
    checks: list[Check] = []
    for step, again in observation.plan.repeated_steps():
        checks += _step_checks(observation, step, again)
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
            senders = Counter(target for _, target in step.pairs())
            found.update(dict.fromkeys(target for target, n in senders.items() if n > 1))
    return tuple(found)


def _step_checks(observation: Observation, step: Step, again: tuple[Step, ...]) -> Iterator[Check]:
    """``fraction`` and ``jain`` of each receiver, over all repetitions of a step."""
    pairs = list(step.pairs())
    by_target: dict[PortRef, list[int]] = {}
    for place, (_, target) in enumerate(pairs):
        by_target.setdefault(target, []).append(place)
    ideal = fair_shares_bps(observation.site, pairs)
    for target, places in by_target.items():
        own = [pairs[place] for place in places]
        yield from _receiver(observation, again, target, own, ideal[places])


def _receiver(
    observation: Observation,
    steps: tuple[Step, ...],
    target: PortRef,
    pairs: list[Pair],
    ideal: NDArray[np.float64],
) -> Iterator[Check]:
    judging = Judge(observation, "flows")
    subject = f"{steps[0].id} {target}"
    shares: list[NDArray[np.float64]] = []
    for step in steps:
        measure = observation.measured.get(step.id)
        if measure is None:
            for check in ("fraction", "jain"):
                yield judging.not_run(check, subject, observation.not_run[step.id])
            return
        flows = [measure.by_pair.get(pair) for pair in pairs]
        present = [flow for flow in flows if flow is not None]
        if len(present) < len(pairs):
            reason = f"{len(pairs) - len(present)} of {len(pairs)} senders brought no result"
            whys = [f"{pair[0]}: {measure.lost[pair]}" for pair in pairs if pair in measure.lost]
            reason = f"{reason}: {whys[0]}" if whys else reason
            for check in ("fraction", "jain"):
                yield judging.failed(check, subject, reason, target)
            return
        shares.append(np.array([flow.goodput_bps for flow in present]))
    cut = next((why for pair in pairs if (why := causes.link_down(observation, *pair))), None)
    because = f": {cut[0]}" if cut else ""
    due = float(ideal.sum())
    limit = observation.criteria.min_incast_fraction
    found = repeated([float(share.sum()) / due for share in shares], limit)
    yield judging.at_least(
        "fraction",
        subject,
        round(found.median, 4),
        limit,
        "of the wire",
        reason=f"{len(pairs)} senders bring {found.median * due / 1e9:.2f} Gbit/s to {target}, "
        f"{found.median:.1%} of what its wire carries ({found.said}){because}",
        at=cut[1] if cut else target,
        caveat=f"{subject}: {found.caveat}" if found.caveat else "",
    )
    yield _fairness(judging, subject, pairs, shares, ideal, because)


def _fairness(
    judging: Judge,
    subject: str,
    pairs: list[Pair],
    shares: list[NDArray[np.float64]],
    ideal: NDArray[np.float64],
    because: str,
) -> Check:
    """Each sender's share of what is its due."""
    limit = judging.observation.criteria.min_incast_jain
    found = repeated([jain(list(share / ideal)) for share in shares], limit)
    middle = np.median(np.array(shares), axis=0)
    worst = pairs[int((middle / ideal).argmin())][0]
    return judging.at_least(
        "jain",
        subject,
        round(found.median, 4),
        limit,
        "Jain index",
        reason=f"{subject}: shares are unfair (Jain {found.median:.3f}; {found.said}): {worst} "
        f"gets {middle.min() / 1e9:.2f} Gbit/s, the luckiest {middle.max() / 1e9:.2f}{because}",
        at=worst,
        caveat=f"{subject}: {found.caveat}" if found.caveat else "",
    )
