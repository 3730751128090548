"""Latency: the full pair matrix of RDMA ping-pong on an otherwise idle fabric.

Half of each round trip, as ib_send_lat reports it. Limits are on the 99th
percentile of every pair; the median and the maximum are kept beside it.
"""

from __future__ import annotations

import numpy as np

from fabric.site import Site
from validation.criteria import Check, Judge
from validation.judgement import causes
from validation.judgement.coverage import counters
from validation.judgement.losses import loss_checks, retransmission_checks
from validation.judgement.observation import Observation
from validation.judgement.statistics import quantile_interval
from validation.suites.pairs import pair_rounds, rail_pairs, sample_note
from validation.traffic import Counted, Step, Stream, TrafficPlan, pair_name

NAME = "latency"
_COUNTED: tuple[Counted, ...] = ("losses", "retransmissions")
MESSAGE_BYTES = 64
MESSAGES = 200
DURATION_US = 4000.0


def plan(site: Site) -> TrafficPlan:
    """One step a round; each pair plays ``MESSAGES`` rounds of ping-pong."""
    steps = tuple(
        Step(
            id=f"round{number}",
            streams=(Stream(pairs, message_bytes=MESSAGE_BYTES, messages=MESSAGES, kind="ping"),),
            duration_us=DURATION_US,
            sample_us=100.0,
        )
        for number, pairs in enumerate(pair_rounds(site), start=1)
    )
    return TrafficPlan(
        suite=NAME,
        steps=steps,
        snapshot=tuple(site.devices),
        expected={"pairs": len(rail_pairs(site)), **counters(site, *_COUNTED)},
        impossible="" if steps else "a site with a single host has nobody to talk to",
        note=sample_note(site),
        counted=_COUNTED,
    )


def judge(observation: Observation) -> tuple[Check, ...]:
    """One ``p99`` a pair; nothing lost or sent twice meanwhile."""
    judging = Judge(observation, "latency")
    limit = observation.criteria.max_latency_p99_us
    checks = []
    for step in observation.plan.steps:
        measure = observation.measured.get(step.id)
        for pair in step.pairs():
            subject = pair_name(*pair)
            if measure is None:
                checks.append(judging.not_run("p99", subject, observation.not_run[step.id]))
                continue
            flow = measure.by_pair.get(pair)
            # Fewer answers than asked for means that the slowest are missing.
            if flow is None or len(flow.latency_us) < MESSAGES:
                came = 0 if flow is None else len(flow.latency_us)
                reason = f"{subject}: {came} of {MESSAGES} answers came"
                if pair in measure.lost:
                    reason = f"{subject}: {measure.lost[pair]}"
                why, at = causes.link_down(observation, *pair) or ("", "")
                checks.append(
                    judging.failed("p99", subject, f"{reason}: {why}" if why else reason, at)
                )
                continue
            p50, p99 = np.percentile(flow.latency_us, [50, 99])
            low, high = quantile_interval(flow.latency_us, 0.99)
            sure = f"; 95 % sure that it is {low:.2f} to {high:.2f}: "
            sure += "borderline" if low <= limit <= high else "sure"
            checks.append(
                judging.at_most(
                    "p99",
                    subject,
                    round(float(p99), 3),
                    limit,
                    "us",
                    reason=f"{subject}: 99 % of the answers take up to {p99:.2f} us "
                    f"(median {p50:.2f}), limit {limit:g}{sure}",
                    caveat=f"{subject}: {sure}" if sure.endswith("borderline") else "",
                )
            )
    return (*checks, *loss_checks(observation), *retransmission_checks(observation))
