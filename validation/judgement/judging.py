"""From an observation to a suite's verdicts: in a run, and again before it is certified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from validation.criteria import Check, Judge
from validation.judgement.blame import attribute
from validation.judgement.coverage import coverage_checks, seen
from validation.judgement.observation import Observation
from validation.judgement.reboots import reboot_checks
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
        counts = seen(observation, checks)
    else:
        found = (*suite.judge(observation), *reboot_checks(observation))
        checks = attribute(observation, found)
        counts = seen(observation, checks)
        checks = (*checks, *coverage_checks(observation, counts, checks))
    if not done:
        checks = tuple(map(_without_counters, checks))
    return Judged(
        checks,
        counts,
        "complete" if done and not observation.not_run else "partial",
    )


def _without_counters(check: Check) -> Check:
    """A check that had no counters to look at because the run was interrupted."""
    if check.evidence_sha256 or check.verdict == "NOT_RUN":
        return check
    return replace(check, verdict="NOT_RUN", reason=f"{INTERRUPTED} before counters were read")
