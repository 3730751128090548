"""Runs and suites of which nothing has been measured yet."""

from __future__ import annotations

import platform
import secrets
from datetime import UTC, datetime
from importlib.metadata import version

from fabric.site import Site
from validation.criteria import Check
from validation.judgement.judging import INTERRUPTED
from validation.results.result import SuiteResult, ValidationRun
from validation.results.store import run_dir
from validation.traffic import TrafficPlan

_VERSIONS_OF = ("paisoar", "numpy", "numba")


def new_run(site: Site, now: datetime) -> ValidationRun:
    """A run that begins now."""
    run_id = f"val-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
    versions = {name: version(name) for name in _VERSIONS_OF}
    return ValidationRun(
        id=run_id,
        site=site.name,
        site_sha256=site.sha256,
        environment=site.environment,
        evidence_class=site.evidence_class,
        probe="",
        criteria=site.document.certify.model_dump(mode="json"),
        versions={**versions, "python": platform.python_version()},
        status="running",
        started_at=now,
        finished_at=None,
        before=None,
        after=None,
        unread={},
        checks=(),
        suites=(),
        folder=run_dir(site, run_id),
    )


def not_run(plan: TrafficPlan, run: ValidationRun, now: datetime) -> SuiteResult:
    """A suite that the end of its run left out."""
    check = Check(
        id=f"{plan.suite}.suite",
        subject=run.site,
        verdict="NOT_RUN",
        value=None,
        limit=None,
        unit="",
        bound="",
        reason=f"{INTERRUPTED} before",
        device="",
        port="",
        evidence_sha256="",
        evidence_class=run.evidence_class,
    )
    return SuiteResult(
        name=plan.suite,
        status="not-run",
        checks=(check,),
        expected=plan.expected,
        seen={},
        files={},
        started_at=now,
        finished_at=now,
        traffic_us=0.0,
        wall_s=0.0,
    )
