"""A validation run as it is kept: suites, checks, coverage, what it ran on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from fabric.site import EvidenceClass
from validation.certificates.fingerprint import Fingerprint
from validation.criteria import Check, Verdict, overall
from validation.times import to_text

# ``interrupted`` is what a run that is stored as ``running`` is read as where its process is
# gone; only ``complete`` can be certified.
RunStatus = Literal["running", "interrupted", "partial", "complete"]
SuiteStatus = Literal["partial", "complete", "not-run"]


@dataclass(frozen=True)
class SuiteResult:
    """One suite: what was expected, what was seen, how it was judged.

    ``files`` maps each kind of evidence to the SHA-256 of its stored bytes.
    ``traffic_us`` is time on the wire, ``wall_s`` time that the user waited.
    """

    name: str
    status: SuiteStatus
    checks: tuple[Check, ...]
    expected: Mapping[str, int]
    seen: Mapping[str, int]
    files: Mapping[str, str]
    started_at: datetime
    finished_at: datetime
    traffic_us: float
    wall_s: float

    @property
    def verdict(self) -> Verdict:
        """The worst of its checks."""
        return overall(self.checks)

    @property
    def repetitions(self) -> int:
        """How often each of its steps was to be sent."""
        return self.expected.get("repetitions", 1)


@dataclass(frozen=True)
class ValidationRun:
    """One run of one or more suites.

    ``checks`` are those of the run as a whole (the fabric did not change
    meanwhile); ``suites`` hold their own. ``unread`` maps a device or probe that at
    any time did not answer to what came back; such a run is ``partial``.
    ``folder`` holds the evidence files.
    """

    id: str
    site: str
    site_sha256: str
    environment: str
    evidence_class: EvidenceClass
    probe: str
    criteria: Mapping[str, Any]
    versions: Mapping[str, str]
    status: RunStatus
    started_at: datetime
    finished_at: datetime | None
    before: Fingerprint | None
    after: Fingerprint | None
    unread: Mapping[str, str]
    checks: tuple[Check, ...]
    suites: tuple[SuiteResult, ...]
    folder: Path

    @property
    def simulated(self) -> bool:
        """Whether its traffic was simulated."""
        return self.evidence_class == "simulated"

    @property
    def all_checks(self) -> tuple[Check, ...]:
        """Checks of the run and of every suite."""
        return (*self.checks, *(check for suite in self.suites for check in suite.checks))

    @property
    def verdict(self) -> Verdict:
        """PASS only where the run is complete and no check is FAIL or NOT_RUN."""
        worst = overall(self.all_checks)
        return "NOT_RUN" if worst == "PASS" and self.status != "complete" else worst

    def suite(self, name: str) -> SuiteResult | None:
        """The result of this suite; None where it was not part of the run."""
        return next((suite for suite in self.suites if suite.name == name), None)

    @property
    def failures(self) -> tuple[Check, ...]:
        """Checks that are FAIL or NOT_RUN."""
        return tuple(c for c in self.all_checks if c.verdict in ("FAIL", "NOT_RUN"))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, as ``paisoar validate --json`` prints them."""
        return {
            "id": self.id,
            "site": self.site,
            "environment": self.environment,
            "evidence_class": self.evidence_class,
            "simulated": self.simulated,
            "probe": self.probe,
            "status": self.status,
            "verdict": self.verdict,
            "started_at": to_text(self.started_at),
            "finished_at": to_text(self.finished_at) if self.finished_at else None,
            "site_sha256": self.site_sha256,
            "fingerprint_before": self.before.sha256 if self.before else None,
            "fingerprint_after": self.after.sha256 if self.after else None,
            "criteria": dict(self.criteria),
            "versions": dict(self.versions),
            "unread": dict(self.unread),
            "checks": [check.to_json() for check in self.checks],
            "suites": [
                {
                    "name": suite.name,
                    "status": suite.status,
                    "verdict": suite.verdict,
                    "evidence_class": self.evidence_class,
                    "simulated": self.simulated,
                    "expected": dict(suite.expected),
                    "seen": dict(suite.seen),
                    "traffic_us": suite.traffic_us,
                    "wall_s": round(suite.wall_s, 3),
                    "evidence": dict(suite.files),
                    "checks": [check.to_json() for check in suite.checks],
                }
                for suite in self.suites
            ],
        }
