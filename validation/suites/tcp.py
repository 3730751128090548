"""TCP: ping-pong of plain TCP beside RDMA's, the same pairs one after the other.

Measured and shown, never asserted: what TCP takes is a host's stack, not the fabric. A twin
simulates no host stack, so that its TCP would look as quick as RDMA; there it is a SKIP.
"""

from __future__ import annotations

import numpy as np

from fabric.site import Site
from validation.criteria import Check, Judge
from validation.judgement.observation import Observation
from validation.schedule import spread
from validation.suites.latency import DURATION_US, MESSAGE_BYTES, MESSAGES
from validation.suites.pairs import pair_rounds
from validation.traffic import Pair, Role, Step, Stream, TrafficPlan, pair_name

NAME = "tcp"
MAX_ROUNDS = 8
NO_STACK = "the simulator has no host's TCP stack: only real hosts tell what TCP takes"


def plan(site: Site) -> TrafficPlan:
    """``rdma-roundN`` and ``tcp-roundN`` for up to eight rounds; on a twin the first only."""
    rounds = pair_rounds(site)
    roles: tuple[Role, ...] = ("roce",) if site.environment == "twin" else ("roce", "default")
    steps = [
        _step(role, place + 1, rounds[place])
        for place in spread(len(rounds), MAX_ROUNDS)
        for role in roles
    ]
    pairs = sum(len(rounds[place]) for place in spread(len(rounds), MAX_ROUNDS))
    tcp = {"tcp pairs": pairs} if "default" in roles else {}
    return TrafficPlan(
        suite=NAME,
        steps=tuple(steps),
        snapshot=tuple(site.devices),
        expected={"pairs": pairs, **tcp},
        impossible="" if steps else "a site with a single host has nobody to talk to",
        note=NO_STACK if site.environment == "twin" else "",
    )


def _step(role: Role, number: int, pairs: tuple[Pair, ...]) -> Step:
    stream = Stream(pairs, message_bytes=MESSAGE_BYTES, messages=MESSAGES, role=role, kind="ping")
    name = "rdma" if role == "roce" else "tcp"
    return Step(f"{name}-round{number}", (stream,), duration_us=DURATION_US, sample_us=100.0)


def judge(observation: Observation) -> tuple[Check, ...]:
    """``answers`` a pair and class; ``latency``, a SKIP that says what both took."""
    judging = Judge(observation, "latency")
    took: dict[Role, list[float]] = {"roce": [], "default": []}
    checks = []
    for step in observation.plan.steps:
        measure = observation.measured.get(step.id)
        (stream,) = step.streams
        for pair in stream.pairs:
            subject = f"{'RDMA' if stream.role == 'roce' else 'TCP'} {pair_name(*pair)}"
            if measure is None:
                checks.append(judging.not_run("answers", subject, observation.not_run[step.id]))
                continue
            flow = measure.flow(pair, stream.role)
            count = len(flow.latency_us) if flow is not None else 0
            if flow is not None and count:
                took[stream.role].append(float(np.median(flow.latency_us)))
            why = measure.lost.get(pair, "")
            reason = f"{subject}: {why}" if why else ""
            checks.append(
                judging.at_least("answers", subject, count, MESSAGES, "answers", reason=reason)
            )
    return (*checks, judging.skipped("latency", "fabric", _said(took)))


def _said(took: dict[Role, list[float]]) -> str:
    if not took["roce"] or not took["default"]:
        return NO_STACK if not took["default"] else "no RDMA answered"
    rdma, tcp = (float(np.median(took[role])) for role in ("roce", "default"))
    return (
        f"measured, not judged: TCP takes {tcp:.1f} us, RDMA {rdma:.1f} (medians of "
        f"{len(took['default'])} pairs, half round trips of {MESSAGE_BYTES} bytes; TCP by Python's "
        "sockets, which add some microseconds)"
    )
