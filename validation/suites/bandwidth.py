"""Bandwidth: every pair of a rail at full speed in both directions at once.

Then, where there is more than one rail, from rail to rail; and across the middle of the
fabric, which uplinks bound where they are few.

Goodput is compared with what the slower of the two wires can carry as RoCE
payload, headers, preamble and gap taken off.
"""

from __future__ import annotations

from fabric.site import Site
from fabric.topology import PortRef
from validation.criteria import Check, Judge, payload_bps
from validation.judgement import causes
from validation.judgement.capacity import fair_shares_bps
from validation.judgement.losses import cable_checks, loss_checks, retransmission_checks
from validation.judgement.observation import Observation
from validation.judgement.paths import ecmp_checks, uplinks
from validation.suites.pairs import both_ways, pair_rounds, rail_crossings, sample_note
from validation.traffic import Pair, Step, Stream, TrafficPlan, host_rails, pair_name

NAME = "bandwidth"
BISECTION = "bisection"
MESSAGE_BYTES = 65536
QPS = 4
DURATION_US = 400.0
WARMUP_US = 100.0


def plan(site: Site) -> TrafficPlan:
    """A step a round, pairs in both directions; ``cross-rail``; all hosts' ``bisection``."""
    steps = [_step(f"round{n}", pairs) for n, pairs in enumerate(pair_rounds(site), start=1)]
    if crossings := rail_crossings(site):
        steps.append(_step("cross-rail", crossings))
    if halves := bisection(site):
        steps.append(_step(BISECTION, halves))
    return TrafficPlan(
        suite=NAME,
        steps=tuple(steps),
        snapshot=tuple(site.devices),
        expected={
            "steps": len(steps),
            "directions": len({pair for step in steps for pair in step.pairs()}),
            "uplinks": len(uplinks(site)),
        },
        impossible="" if steps else "a site with a single host has nobody to talk to",
        note=sample_note(site),
    )


def _step(name: str, pairs: tuple[Pair, ...]) -> Step:
    return Step(
        id=name,
        streams=(Stream(both_ways(pairs), message_bytes=MESSAGE_BYTES, qps=QPS),),
        duration_us=DURATION_US,
        warmup_us=WARMUP_US,
    )


def judge(observation: Observation) -> tuple[Check, ...]:
    """One ``fraction`` a direction of a pair, one ``bisection``; loss, cables, uplinks used."""
    judging = Judge(observation, "flows")
    limit = observation.criteria.min_bandwidth_fraction
    checks = []
    for step in observation.plan.steps:
        measure = observation.measured.get(step.id)
        if step.id == BISECTION:
            checks.append(_bisection(observation, step))
            continue
        for pair in step.pairs():
            subject = pair_name(*pair)
            if measure is None:
                checks.append(judging.not_run("fraction", subject, observation.not_run[step.id]))
                continue
            flow = measure.by_pair.get(pair)
            if flow is None:
                reason = measure.lost.get(pair, "no result came back")
                checks.append(judging.failed("fraction", subject, reason, pair[0]))
                continue
            wire = wire_payload_bps(observation.site, pair)
            fraction = flow.goodput_bps / wire
            cause: str = ""
            at: PortRef | str = ""
            if not flow.goodput_bps:
                cause, at = causes.on_path(observation, *pair)
            checks.append(
                judging.at_least(
                    "fraction",
                    subject,
                    round(fraction, 4),
                    limit,
                    "of the wire",
                    reason=f"{subject}: {flow.goodput_bps / 1e9:.2f} Gbit/s of payload, "
                    f"{fraction:.1%} of the {wire / 1e9:.2f} that the wire carries "
                    f"(limit {limit:.0%})" + (f": {cause}" if cause else ""),
                    at=at,
                )
            )
    return (
        *checks,
        *loss_checks(observation),
        *retransmission_checks(observation),
        *cable_checks(observation),
        *ecmp_checks(observation),
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


def _bisection(observation: Observation, step: Step) -> Check:
    """All pairs across the middle together, against what NICs and uplinks carry."""
    judging = Judge(observation, "flows")
    measure = observation.measured.get(step.id)
    if measure is None:
        return judging.not_run(BISECTION, "fabric", observation.not_run[step.id])
    pairs = list(step.pairs())
    absent = [pair for pair in pairs if pair not in measure.by_pair]
    if absent:
        why = measure.lost.get(absent[0], "no result came back")
        reason = f"{len(absent)} of {len(pairs)} pairs brought no result: {absent[0][0]}: {why}"
        return judging.failed(BISECTION, "fabric", reason)
    total = sum(measure.by_pair[pair].goodput_bps for pair in pairs)
    ideal = float(fair_shares_bps(observation.site, pairs).sum())
    slowest = min(pairs, key=lambda pair: measure.by_pair[pair].goodput_bps)
    return judging.at_least(
        BISECTION,
        "fabric",
        round(total / ideal, 4),
        observation.criteria.min_bandwidth_fraction,
        "of the bisection",
        reason=f"{len(pairs)} directions across the middle of the fabric bring "
        f"{total / 1e9:.2f} of {ideal / 1e9:.2f} Gbit/s; slowest is {pair_name(*slowest)}",
    )


def wire_payload_bps(site: Site, pair: Pair) -> float:
    """RoCE payload that the slower end of a pair can carry."""
    speed = min(site.topology.link_of[end].speed_bps for end in pair)
    return payload_bps(speed, site.intent.mtu.roce)
