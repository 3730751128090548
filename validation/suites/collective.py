"""Collective: the rings and exchanges that a trainer runs, against what the wires carry.

Hosts in the order of the site, which is the order of ranks. ``ring``: everyone to its
neighbour, as in ring allreduce; ``shift-K``: everyone to the K-th after it, one step of a
pairwise all-to-all; ``all-to-all``: everyone to everyone at once. A ring is as fast as its
slowest member, whose rate is the bus bandwidth (NVIDIA nccl-tests, doc/PERFORMANCE.md). An
exchange has many steps, in each of which ECMP slows other pairs: there all senders together
count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fabric.site import Site
from fabric.topology import PortRef
from validation.criteria import Check, Judge
from validation.judgement import causes
from validation.judgement.capacity import fair_shares_bps
from validation.judgement.coverage import counted, counters
from validation.judgement.losses import cable_checks, loss_checks, retransmission_checks
from validation.judgement.observation import Observation
from validation.schedule import ring_pairs, shift_pairs, spread
from validation.traffic import Pair, Step, StepMeasure, Stream, TrafficPlan, host_rails

NAME = "collective"
# The trainer's segment (trainer.collective.settings).
MESSAGE_BYTES = 1 << 20
QPS = 4
DURATION_US = 3000.0
WARMUP_US = 1000.0
SAMPLE_US = 50.0
MAX_SHIFTS = 6
# All at once is n (n - 1) pairs: what bigger sites do in shifts.
MAX_ALL_TO_ALL = 16


@dataclass(frozen=True, slots=True)
class BusBandwidth:
    """One step's bandwidth in bit/s beside what the wires carry, and who was slowest.

    Of the slowest member where the step is a ring, else of all together.
    """

    rate_bps: float
    ideal_bps: float
    slowest: Pair
    ring: bool

    @property
    def fraction(self) -> float:
        """Of what the wires carry."""
        return self.rate_bps / self.ideal_bps if self.ideal_bps else 0.0


def plan(site: Site) -> TrafficPlan:
    """Steps ``ring``, ``shift-K`` for some K, and ``all-to-all`` where hosts are few."""
    most = max((len(rail) for rail in host_rails(site)), default=0)
    steps = [collective_step("ring", ring_stream(site))] if most else []
    for place in spread(max(0, most - 2), MAX_SHIFTS):
        steps.append(collective_step(f"shift-{place + 2}", shift_stream(site, place + 2)))
    if 2 < most <= MAX_ALL_TO_ALL:
        pairs = tuple((a, b) for rail in host_rails(site) for a in rail for b in rail if a != b)
        steps.append(collective_step("all-to-all", Stream(pairs, MESSAGE_BYTES)))
    families = counted(site)
    return TrafficPlan(
        suite=NAME,
        steps=tuple(steps),
        snapshot=tuple(site.devices),
        expected={
            "steps": len(steps),
            "pairs": sum(1 for s in steps for _ in s.pairs()),
            **counters(site, *families),
        },
        counted=families,
        impossible="" if steps else "a site with a single host has nobody to talk to",
    )


def judge(observation: Observation) -> tuple[Check, ...]:
    """``busbw`` a step; nothing lost or sent twice."""
    checks = [_busbw(observation, step) for step in observation.plan.steps]
    checks += loss_checks(observation)
    if observation.lossless:
        checks += retransmission_checks(observation)
    checks += cable_checks(observation)
    return tuple(checks)


def collective_step(name: str, stream: Stream) -> Step:
    """One exchange of all hosts."""
    return Step(name, (stream,), DURATION_US, WARMUP_US, SAMPLE_US)


def ring_stream(site: Site) -> Stream:
    """Everyone to its neighbour, on every rail."""
    return _stream([pair for rail in host_rails(site) for pair in ring_pairs(rail)])


def shift_stream(site: Site, by: int) -> Stream:
    """Everyone to the ``by``-th after it, on every rail that is long enough."""
    return _stream(
        [pair for rail in host_rails(site) if len(rail) > by for pair in shift_pairs(rail, by)]
    )


def _stream(pairs: Sequence[Pair]) -> Stream:
    return Stream(tuple(pairs), message_bytes=MESSAGE_BYTES, qps=QPS)


def missing(measure: StepMeasure, step: Step) -> list[Pair]:
    """Pairs of a step that brought no result."""
    return [pair for pair in step.pairs() if pair not in measure.by_pair]


def bus_bandwidth(site: Site, step: Step, measure: StepMeasure) -> BusBandwidth:
    """The slowest member of a step in which every pair brought a result."""
    pairs = list(step.pairs())
    ideal: dict[PortRef, float] = defaultdict(float)
    got: dict[PortRef, float] = defaultdict(float)
    for pair, share in zip(pairs, fair_shares_bps(site, pairs), strict=True):
        ideal[pair[0]] += share
        got[pair[0]] += measure.by_pair[pair].goodput_bps
    worst = min(got, key=lambda source: got[source] / ideal[source])
    slowest = min(
        (pair for pair in pairs if pair[0] == worst),
        key=lambda pair: measure.by_pair[pair].goodput_bps,
    )
    if step.id.endswith("ring"):
        return BusBandwidth(got[worst], ideal[worst], slowest, ring=True)
    return BusBandwidth(sum(got.values()), sum(ideal.values()), slowest, ring=False)


def why_slow(observation: Observation, pair: Pair, step: Step) -> tuple[str, PortRef]:
    """What the configuration shows on the way of a slow pair, and at which port."""
    cause, at = causes.on_path(observation, *pair)
    if cause != causes.UNKNOWN:
        return cause, at
    shares = fair_shares_bps(observation.site, list(step.pairs()))
    wire = observation.site.topology.link_of[pair[0]].speed_bps
    crossing = len(observation.site.topology.paths(*pair)) > 1
    if crossing and float(np.min(shares)) > 0.5 * wire:
        return "its queue pairs may share an uplink with others (ECMP)", pair[0]
    return causes.much_pause(observation), pair[0]


def _busbw(observation: Observation, step: Step) -> Check:
    judging = Judge(observation, "flows")
    measure = observation.measured.get(step.id)
    if measure is None:
        return judging.not_run("busbw", step.id, observation.not_run[step.id])
    if lost := missing(measure, step):
        why = measure.lost.get(lost[0], "no result came back")
        reason = f"{step.id}: {len(lost)} pairs brought no result: {lost[0][0]}: {why}"
        return judging.failed("busbw", step.id, reason, lost[0][0])
    found = bus_bandwidth(observation.site, step, measure)
    source, target = found.slowest
    good = found.fraction >= observation.criteria.min_collective_fraction
    cause, at = ("", source) if good else why_slow(observation, found.slowest, step)
    return judging.at_least(
        "busbw",
        step.id,
        round(found.fraction, 4),
        observation.criteria.min_collective_fraction,
        "of the wire",
        reason=f"{step.id}: {source if found.ring else 'all together'} "
        f"{'sends' if found.ring else 'send'} {found.rate_bps / 1e9:.2f} Gbit/s, "
        f"{found.fraction:.1%} of the {found.ideal_bps / 1e9:.2f} that the wires carry"
        f"{', and all wait for it' if found.ring else ''}; slowest is {source} to {target}: "
        f"{cause}",
        at=at,
    )
