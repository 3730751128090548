"""What an audit says: findings, and what it could not judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: which rule, where, what was seen, what it costs, how to mend it.

    ``port`` is empty for a whole device and lists several ports where one cause
    shows on all of them. ``evidence`` quotes both ends of the cable where the
    rule concerns one.
    """

    rule: str
    severity: Severity
    device: str
    port: str
    message: str
    evidence: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skip:
    """A rule that could not judge a device, and why. ``device`` empty means all of them."""

    rule: str
    device: str
    reason: str


@dataclass(frozen=True, slots=True)
class PathReport:
    """Pairs of NICs of one rail, in both directions, over all their shortest paths.

    ``lossless_pairs`` are those with PFC for RoCE on every hop of every path that is
    up; ``same_treatment`` those on which every hop treats a class as intended, by
    class; ``unread_pairs`` those with a hop that was not read. ``cut_pairs`` have no
    path left, because of links that are down; they are in none of the others.
    ``thinned_pairs`` have fewer. ``down`` says which links and why.
    """

    pairs: int
    lossless_pairs: int
    unread_pairs: int
    same_treatment: Mapping[str, int]
    cut_pairs: int = 0
    thinned_pairs: int = 0
    down: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The counts in a sentence or two."""
        if not self.pairs and not self.cut_pairs:
            return "No pair of hosts is known: no path was judged."
        of = f"{self.lossless_pairs} of {self.pairs} host pairs are lossless on every path"
        if not self.down:
            return f"{of}{self._unknown}."
        more = f" and {len(self.down) - 1} more" if len(self.down) > 1 else ""
        return (
            f"{of} that is up. {self.cut_pairs} have no path, {self.thinned_pairs} fewer than "
            f"they should: {self.down[0]}{more}."
        )

    @property
    def _unknown(self) -> str:
        if not self.unread_pairs:
            return ""
        return (
            f"; of {self.unread_pairs} it cannot be said: a port was not read, or is software "
            "RDMA, which pauses nothing"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "pairs": self.pairs,
            "lossless_pairs": self.lossless_pairs,
            "unread_pairs": self.unread_pairs,
            "same_treatment": dict(self.same_treatment),
            "cut_pairs": self.cut_pairs,
            "thinned_pairs": self.thinned_pairs,
            "down": list(self.down),
        }


@dataclass(frozen=True, slots=True)
class AuditReport:
    """All findings of one audit, the worst first."""

    findings: tuple[Finding, ...]
    skipped: tuple[Skip, ...]
    devices: tuple[str, ...]
    paths: PathReport | None = None

    @property
    def clean(self) -> bool:
        """No finding at all; skips do not count as findings, nor as passes."""
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, as ``paisoar audit --json`` prints them."""
        return {
            "devices": list(self.devices),
            "findings": [
                {
                    "rule": finding.rule,
                    "severity": finding.severity,
                    "device": finding.device,
                    "port": finding.port,
                    "message": finding.message,
                    "evidence": list(finding.evidence),
                    "fix": list(finding.fix),
                }
                for finding in self.findings
            ],
            "skipped": [
                {"rule": skip.rule, "device": skip.device, "reason": skip.reason}
                for skip in self.skipped
            ],
            "paths": self.paths.to_json() if self.paths else None,
        }
