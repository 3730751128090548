"""From an observation to a suite's verdicts: in a run, and again before it is certified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from validation.criteria import Check, Judge
from validation.judgement.blame import attribute
from validation.judgement.observation import Observation
from validation.judgement.paths import used_uplinks
from validation.results.result import SuiteStatus
from validation.suites import Suite

INTERRUPTED = "the run was interrupted"


@dataclass(frozen=True, slots=True)
class Judged:
    """What a suite's observation amounts to."""

    checks: tuple[Check, ...]
    seen: Mapping[str, int]
    status: SuiteStatus


def judged(suite: Suite, observation: Observation, *, done: bool = True) -> Judged:
    """Judge one suite. ``done`` False: interrupted before its counters were read."""
    plan = observation.plan
    if plan.impossible:
        judge = Judge(observation, "states")
        checks: tuple[Check, ...] = (
            judge.not_run("suite", observation.site.name, plan.impossible),
        )
    else:
        checks = attribute(observation, suite.judge(observation))
    if not done:
        checks = tuple(map(_without_counters, checks))
    return Judged(
        checks,
        _seen(observation, checks),
        "complete" if done and not observation.not_run else "partial",
    )


def _seen(observation: Observation, checks: Sequence[Check]) -> dict[str, int]:
    """What the traffic covered, under the names of the plan's ``expected``."""
    steps = observation.measured.values()
    flows = [flow for step in steps for flow in step.flows]
    counts = {
        "devices": sum(
            name in observation.states and name not in observation.unread
            for name in observation.plan.snapshot
        ),
        "links": sum(c.verdict == "PASS" for c in checks if c.id.endswith(".link")),
        "directions": len({(flow.source, flow.target) for flow in flows if flow.role == "roce"}),
        "pairs": sum(flow.role == "roce" for flow in flows),
        "tcp pairs": sum(flow.role == "default" for flow in flows),
        "uplinks": len(used_uplinks(observation)),
        "steps": len(observation.measured),
        "receivers": len({flow.target for flow in flows}),
    }
    return {name: counts[name] for name in observation.plan.expected}


def _without_counters(check: Check) -> Check:
    """A check that had no counters to look at because the run was interrupted."""
    if check.evidence_sha256 or check.verdict == "NOT_RUN":
        return check
    return replace(check, verdict="NOT_RUN", reason=f"{INTERRUPTED} before counters were read")
