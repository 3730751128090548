"""Bandwidth: every pair of a rail at full speed in both directions at once.

Goodput is compared with what the slower of the two wires can carry as RoCE
payload, headers, preamble and gap taken off.
"""

from __future__ import annotations

from fabric.site import Site
from validation import causes
from validation.criteria import Check, Judge, payload_bps
from validation.losses import cable_checks, loss_checks, retransmission_checks
from validation.observation import Observation
from validation.suites.pairs import both_ways, pair_rounds, rail_pairs
from validation.traffic import Pair, Step, Stream, TrafficPlan, pair_name

NAME = "bandwidth"
MESSAGE_BYTES = 65536
QPS = 4
DURATION_US = 400.0
WARMUP_US = 100.0


def plan(site: Site) -> TrafficPlan:
    """One step a round; each pair streams in both directions on ``QPS`` queue pairs."""
    steps = tuple(
        Step(
            id=f"round{number}",
            streams=(Stream(both_ways(pairs), message_bytes=MESSAGE_BYTES, qps=QPS),),
            duration_us=DURATION_US,
            warmup_us=WARMUP_US,
        )
        for number, pairs in enumerate(pair_rounds(site), start=1)
    )
    return TrafficPlan(
        suite=NAME,
        steps=steps,
        snapshot=tuple(site.devices),
        expected={"directions": 2 * len(rail_pairs(site))},
        impossible="" if steps else "a site with a single host has nobody to talk to",
    )


def judge(observation: Observation) -> tuple[Check, ...]:
    """One ``fraction`` a direction of a pair; nothing lost or sent twice; cables agree."""
    judging = Judge(observation, "flows")
    limit = observation.criteria.min_bandwidth_fraction
    checks = []
    for step in observation.plan.steps:
        measure = observation.measured.get(step.id)
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
            cause, at = "", pair[0]
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
    )


def wire_payload_bps(site: Site, pair: Pair) -> float:
    """RoCE payload that the slower end of a pair can carry."""
    speed = min(site.topology.link_of[end].speed_bps for end in pair)
    return payload_bps(speed, site.intent.mtu.roce)
