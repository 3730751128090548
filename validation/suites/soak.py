"""Soak: short collectives chained for as long as is asked, each cycle one sample.

Rings and exchanges take turns (draft-calabria-bmwg-ai-fabric-training-bench). A cycle is a
run of its own, with queue pairs of its own, so that a soak of hours never depends on one
program, and can go on where it was interrupted. On a twin a cycle is some milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabric.site import Site
from fabric.topology import PortRef
from validation.criteria import Check, Judge
from validation.judgement.coverage import counted, counters
from validation.judgement.losses import (
    cable_checks,
    error_checks,
    loss_checks,
    retransmission_checks,
)
from validation.judgement.observation import Observation
from validation.judgement.statistics import FEW, Spread, drift_of, spread_of, sureness_of
from validation.suites.collective import (
    BusBandwidth,
    bus_bandwidth,
    collective_step,
    missing,
    ring_stream,
    shift_stream,
)
from validation.traffic import Step, TrafficPlan, host_rails

NAME = "soak"
# Exchanges that take turns with the ring, so that traffic crosses the fabric in many ways.
_SHIFTS = 8


def plan(site: Site) -> TrafficPlan:
    """``soak_cycles`` steps: ``cycle1-ring``, ``cycle2-shift-K``, ``cycle3-ring``, ..."""
    most = max((len(rail) for rail in host_rails(site)), default=0)
    cycles = site.document.certify.soak_cycles if most else 0
    steps = tuple(_step(site, number, most) for number in range(1, cycles + 1))
    families = counted(site, "errors")
    return TrafficPlan(
        suite=NAME,
        steps=steps,
        snapshot=tuple(site.devices),
        expected={
            "steps": len(steps),
            "pairs": sum(1 for s in steps for _ in s.pairs()),
            **counters(site, *families),
        },
        counted=families,
        impossible="" if steps else "a site with a single host has nobody to talk to",
    )


def _step(site: Site, number: int, most: int) -> Step:
    if number % 2 or most < 3:
        return collective_step(f"cycle{number}-ring", ring_stream(site))
    by = 2 + (number // 2 - 1) % min(_SHIFTS, most - 2)
    return collective_step(f"cycle{number}-shift-{by}", shift_stream(site, by))


def judge(observation: Observation) -> tuple[Check, ...]:
    """``cov``, ``ratio``, ``drift``, ``outliers`` and ``host``; errors, loss, cables.

    Judged on the bus bandwidth of all cycles over what the wires carry.
    """
    checks: list[Check] = []
    found: dict[str, BusBandwidth] = {}
    judging = Judge(observation, "flows")
    for step in observation.plan.steps:
        measure = observation.measured.get(step.id)
        if measure is None:
            checks.append(judging.not_run("cycle", step.id, observation.not_run[step.id]))
        elif lost := missing(measure, step):
            why = measure.lost.get(lost[0], "no result came back")
            reason = f"{len(lost)} pairs brought no result: {lost[0][0]}: {why}"
            checks.append(judging.failed("cycle", step.id, reason, lost[0][0]))
        else:
            found[step.id] = bus_bandwidth(observation.site, step, measure)
    checks += _stability(judging, found)
    checks += _hosts(observation)
    checks += error_checks(observation)
    checks += loss_checks(observation)
    if observation.lossless:
        checks += retransmission_checks(observation)
    return (*checks, *cable_checks(observation))


def _stability(judging: Judge, found: dict[str, BusBandwidth]) -> Iterator[Check]:
    values = [cycle.fraction for cycle in found.values()]
    criteria = judging.observation.criteria
    if len(values) < FEW:
        why = f"{len(values)} cycles brought a result: fewer than {FEW} show no spread"
        for check in ("cov", "ratio", "drift"):
            yield judging.not_run(check, "fabric", why)
        return
    spread = spread_of(values)
    if not spread.mean:
        slow = next(iter(found.values())).slowest[0]
        reason = f"{slow} sent nothing in any of {len(values)} cycles"
        for check in ("cov", "ratio", "drift"):
            yield judging.failed(check, "fabric", reason, slow)
        return
    worst = min(found, key=lambda name: found[name].fraction)
    slow, towards = found[worst].slowest
    sure = sureness_of([value / spread.mean for value in values], criteria.min_soak_ratio)
    said = (
        f"{_said(spread, sure)}; the least, {spread.least:.3f}, in {worst}, "
        f"where {slow} was slowest (to {towards})"
    )
    # Whether one host is to blame is said by ``host``; a minimum alone blames nobody.
    yield judging.at_most(
        "cov",
        "fabric",
        round(spread.cov, 4),
        criteria.max_soak_cov,
        "coefficient of variation",
        reason=f"bandwidth varies by {spread.cov:.1%} of its mean: {said}",
    )
    yield judging.at_least(
        "ratio",
        "fabric",
        round(spread.ratio, 4),
        criteria.min_soak_ratio,
        "least over mean",
        reason=f"the worst cycle brings {spread.ratio:.1%} of the mean: {said}",
    )
    drift = drift_of(values)
    yield judging.at_most(
        "drift",
        "fabric",
        round(abs(drift), 4),
        criteria.max_soak_cov,
        "of the median",
        reason=f"bandwidth drifts by {drift:+.1%} over {spread.count} cycles: {said}",
    )


def _said(spread: Spread, sure: str) -> str:
    return (
        f"median {spread.median:.3f} of the wire, {spread.least:.3f} to {spread.most:.3f} in "
        f"{spread.count} cycles, {len(spread.outliers)} outliers ({sure})"
    )


def _hosts(observation: Observation) -> Iterator[Check]:
    """``host``: each NIC port's own rate in rings, over all cycles; one that flaps stands out."""
    judging = Judge(observation, "flows")
    rates: dict[PortRef, list[float]] = {}
    for step in observation.plan.steps:
        measure = observation.measured.get(step.id)
        if measure is not None and step.id.endswith("-ring"):
            for flow in measure.flows:
                rates.setdefault(flow.source, []).append(flow.goodput_bps)
    limit = observation.criteria.min_soak_ratio
    for port, values in rates.items():
        if len(values) < FEW:
            continue
        spread = spread_of(values)
        if not spread.median:
            reason = f"{port} sent nothing in most of {spread.count} cycles"
            yield judging.failed("host", port, reason, port)
            continue
        ratio = spread.least / spread.median
        sure = sureness_of([value / spread.median for value in values], limit)
        yield judging.at_least(
            "host",
            port,
            round(ratio, 4),
            limit,
            "least over median",
            reason=f"{port} falls to {spread.least / 1e9:.2f} Gbit/s, its median is "
            f"{spread.median / 1e9:.2f}: {len(spread.outliers)} of {spread.count} cycles are "
            f"outliers ({sure})",
        )
