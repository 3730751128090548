"""Bandwidth: every pair of a rail at full speed in both directions at once.

Then every port alone in one direction and in the other (`one-way`), where there is more than
one rail from rail to rail, and across the middle of the fabric, which uplinks bound where
they are few.

Goodput is compared with what the slower of the two wires can carry as RoCE
payload, headers, preamble and gap taken off. Of repetitions the median is judged.
"""

from __future__ import annotations

from fabric.site import Site
from fabric.topology import PortRef
from validation.criteria import Check, Judge, payload_bps
from validation.judgement import causes
from validation.judgement.capacity import fair_shares_bps
from validation.judgement.coverage import counted, counters
from validation.judgement.losses import cable_checks, loss_checks, retransmission_checks
from validation.judgement.observation import Observation
from validation.judgement.paths import ecmp_checks, uplinks
from validation.judgement.statistics import repeated
from validation.suites.pairs import both_ways, pair_rounds, rail_crossings, sample_note
from validation.traffic import Pair, Step, Stream, TrafficPlan, host_rails, pair_name

NAME = "bandwidth"
BISECTION = "bisection"
ONE_WAY = "one-way"
MESSAGE_BYTES = 65536
QPS = 4
DURATION_US = 400.0
WARMUP_US = 100.0


def plan(site: Site) -> TrafficPlan:
    """A step a round, both ways; ``one-way``, ``one-way-back``; ``cross-rail``; ``bisection``."""
    steps = [
        _step(f"round{n}", both_ways(pairs)) for n, pairs in enumerate(pair_rounds(site), start=1)
    ]
    if alone := neighbors(site):
        steps.append(_step(ONE_WAY, alone))
        steps.append(_step(f"{ONE_WAY}-back", tuple((b, a) for a, b in alone)))
    if crossings := rail_crossings(site):
        steps.append(_step("cross-rail", both_ways(crossings)))
    if halves := bisection(site):
        steps.append(_step(BISECTION, both_ways(halves)))
    families = counted(site)
    return TrafficPlan(
        suite=NAME,
        steps=tuple(steps),
        snapshot=tuple(site.devices),
        expected={
            "steps": len(steps),
            "directions": len({pair for step in steps for pair in step.pairs()}),
            "uplinks": len(uplinks(site)),
            **counters(site, *families),
        },
        impossible="" if steps else "a site with a single host has nobody to talk to",
        note=sample_note(site),
        counted=families,
    )


def _step(name: str, pairs: tuple[Pair, ...]) -> Step:
    return Step(
        id=name,
        streams=(Stream(pairs, message_bytes=MESSAGE_BYTES, qps=QPS),),
        duration_us=DURATION_US,
        warmup_us=WARMUP_US,
    )


def neighbors(site: Site) -> tuple[Pair, ...]:
    """Each port with the next of its rail, so that nearly every one only sends or receives."""
    found: list[Pair] = []
    for rail in host_rails(site):
        found += zip(rail[::2], rail[1::2], strict=False)
        if len(rail) % 2:
            found.append((rail[-1], rail[0]))
    return tuple(found)


def judge(observation: Observation) -> tuple[Check, ...]:
    """``fraction`` and ``one-way`` of each pair, one ``bisection``; loss, cables, uplinks used."""
    checks = []
    for step, again in observation.plan.repeated_steps():
        if step.id == BISECTION:
            checks.append(_bisection(observation, again))
            continue
        check = ONE_WAY if step.id.startswith(ONE_WAY) else "fraction"
        checks += [_direction(observation, check, again, pair) for pair in step.pairs()]
    return (
        *checks,
        *loss_checks(observation),
        *(retransmission_checks(observation) if observation.lossless else ()),
        *cable_checks(observation),
        *ecmp_checks(observation),
    )


def _direction(observation: Observation, check: str, steps: tuple[Step, ...], pair: Pair) -> Check:
    """What one pair brought in all repetitions of a step."""
    judging = Judge(observation, "flows")
    limit = observation.criteria.min_bandwidth_fraction
    subject = pair_name(*pair)
    rates: list[float] = []
    for step in steps:
        measure = observation.measured.get(step.id)
        if measure is None:
            return judging.not_run(check, subject, observation.not_run[step.id])
        flow = measure.by_pair.get(pair)
        if flow is None:
            reason = measure.lost.get(pair, "no result came back")
            return judging.failed(check, subject, reason, pair[0])
        rates.append(flow.goodput_bps)
    wire = wire_payload_bps(observation.site, pair)
    found = repeated([rate / wire for rate in rates], limit)
    cause: str = ""
    at: PortRef | str = ""
    if not found.median:
        cause, at = causes.on_path(observation, *pair)
    return judging.at_least(
        check,
        subject,
        round(found.median, 4),
        limit,
        "of the wire",
        reason=f"{subject}: {found.median * wire / 1e9:.2f} Gbit/s of payload, "
        f"{found.median:.1%} of the {wire / 1e9:.2f} that the wire carries "
        f"(limit {limit:.0%}; {found.said})" + (f": {cause}" if cause else ""),
        at=at,
        caveat=f"{subject}: {found.caveat}" if found.caveat else "",
    )


def bisection(site: Site) -> tuple[Pair, ...]:
    """Hosts of the first half of the leaves, each with one of the second half."""
    found: list[Pair] = []
    for rail in host_rails(site):
        leaves = dict.fromkeys(site.topology.peer(port).device for port in rail)
        half = set(list(leaves)[: len(leaves) // 2])
        near = [port for port in rail if site.topology.peer(port).device in half]
        far = [port for port in rail if site.topology.peer(port).device not in half]
        found += zip(near, far, strict=False)
    return tuple(found)


def _bisection(observation: Observation, steps: tuple[Step, ...]) -> Check:
    """All pairs across the middle together, against what NICs and uplinks carry."""
    judging = Judge(observation, "flows")
    limit = observation.criteria.min_bandwidth_fraction
    pairs = list(steps[0].pairs())
    ideal = float(fair_shares_bps(observation.site, pairs).sum())
    totals: list[float] = []
    slowest = ""
    for step in steps:
        measure = observation.measured.get(step.id)
        if measure is None:
            return judging.not_run(BISECTION, "fabric", observation.not_run[step.id])
        absent = [pair for pair in pairs if pair not in measure.by_pair]
        if absent:
            why = measure.lost.get(absent[0], "no result came back")
            reason = f"{len(absent)} of {len(pairs)} pairs brought no result: {absent[0][0]}: {why}"
            return judging.failed(BISECTION, "fabric", reason)
        rates = {pair: measure.by_pair[pair].goodput_bps for pair in pairs}
        totals.append(sum(rates.values()))
        slowest = pair_name(*min(pairs, key=lambda pair: rates[pair]))
    found = repeated([total / ideal for total in totals], limit)
    return judging.at_least(
        BISECTION,
        "fabric",
        round(found.median, 4),
        limit,
        "of the bisection",
        reason=f"{len(pairs)} directions across the middle of the fabric bring "
        f"{found.median * ideal / 1e9:.2f} of {ideal / 1e9:.2f} Gbit/s ({found.said}); "
        f"slowest is {slowest}",
        caveat=found.caveat,
    )


def wire_payload_bps(site: Site, pair: Pair) -> float:
    """RoCE payload that the slower end of a pair can carry."""
    speed = min(site.topology.link_of[end].speed_bps for end in pair)
    return payload_bps(speed, site.intent.mtu.roce)
