"""Verdicts: a value against its limit, and why; what a profile cannot do without.

PASS   the value is known and within its limit
FAIL   it is not, or what would prove it is missing without a good reason
SKIP   it cannot be judged here, for a stated reason; never counted as a pass
NOT_RUN  the traffic that it needs did not flow
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from fabric.intent import Certify, ExtraSuite
from fabric.site import EvidenceClass
from fabric.topology import PortRef

if TYPE_CHECKING:
    # Verdicts are read by the gate, whose answer is waited for: without numpy.
    from validation.judgement.observation import Observation

Verdict = Literal["PASS", "FAIL", "SKIP", "NOT_RUN"]
Bound = Literal["at most", "at least", ""]

# Ethernet header, FCS, preamble and gap, then IPv4, UDP, BTH and ICRC around
# each RoCE payload (InfiniBand Architecture Specification, annex A17).
ROCE_WIRE_OVERHEAD_BYTES = 38 + 20 + 8 + 12 + 4

# Checks of each profile that a certificate cannot do without: every one of them
# must have been judged on every subject, so that a skip withholds it as well.
_REQUIRED_ALWAYS = (
    "preflight.readable",
    "preflight.reach",
    "preflight.mtu",
    "preflight.priority",
    "latency.p99",
    "bandwidth.fraction",
    "incast.fraction",
    "incast.jain",
)
_REQUIRED_LOSSLESS = (
    "bandwidth.loss",
    "bandwidth.retransmission",
    "incast.loss",
    "incast.retransmission",
)
REQUIRED: dict[str, tuple[str, ...]] = {
    "lossless-dcqcn": (*_REQUIRED_ALWAYS, *_REQUIRED_LOSSLESS, "incast.ecn", "incast.cnp"),
    "lossless-pfc-only": (*_REQUIRED_ALWAYS, *_REQUIRED_LOSSLESS, "incast.pfc"),
    "lossy-tolerant": _REQUIRED_ALWAYS,
}
# The same of suites that a site asks for beside the usual ones.
_REQUIRED_OF: dict[ExtraSuite, tuple[str, ...]] = {
    "mixed": ("share",),
    "burst": ("fraction",),
    "collective": ("busbw",),
    "soak": ("cov", "ratio"),
}


@dataclass(frozen=True, slots=True)
class Check:
    """One judged statement.

    ``id`` is ``SUITE.WHAT``, ``subject`` the device, port or pair that it is
    about; ``device`` and ``port`` name where the cause lies, as far as it is
    known. ``value``, ``limit`` and ``unit`` belong together; ``reason`` is for
    people and never empty unless PASS, where it says what makes that unsure.
    ``evidence_sha256`` is the hash of the stored evidence that the value was taken from.
    """

    id: str
    subject: str
    verdict: Verdict
    value: float | None
    limit: float | None
    unit: str
    bound: Bound
    reason: str
    device: str
    port: str
    evidence_sha256: str
    evidence_class: EvidenceClass

    @property
    def suite(self) -> str:
        """The suite that this belongs to."""
        return self.id.partition(".")[0]

    @property
    def simulated(self) -> bool:
        """Whether the traffic behind it was simulated."""
        return self.evidence_class == "simulated"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, ``simulated`` included."""
        return {**asdict(self), "suite": self.suite, "simulated": self.simulated}


@dataclass(frozen=True, slots=True)
class Judge:
    """Makes the checks of one kind of evidence of one observation."""

    observation: Observation
    evidence: str

    def at_most(
        self,
        check: str,
        subject: object,
        value: float,
        limit: float,
        unit: str,
        *,
        reason: str = "",
        at: PortRef | str = "",
        caveat: str = "",
    ) -> Check:
        """PASS where ``value`` <= ``limit``; ``reason`` goes with FAIL, ``caveat`` with PASS."""
        good = value <= limit
        return self._make(check, subject, good, value, limit, unit, "at most", reason, at, caveat)

    def at_least(
        self,
        check: str,
        subject: object,
        value: float,
        limit: float,
        unit: str,
        *,
        reason: str = "",
        at: PortRef | str = "",
        caveat: str = "",
    ) -> Check:
        """PASS where ``value`` >= ``limit``; ``reason`` goes with FAIL, ``caveat`` with PASS."""
        good = value >= limit
        return self._make(check, subject, good, value, limit, unit, "at least", reason, at, caveat)

    def failed(self, check: str, subject: object, reason: str, at: PortRef | str = "") -> Check:
        """FAIL without a value: what would prove it is not there."""
        return self._verdict(check, subject, "FAIL", reason, at)

    def skipped(self, check: str, subject: object, reason: str) -> Check:
        """SKIP: it cannot be judged here, for this reason."""
        return self._verdict(check, subject, "SKIP", reason, "")

    def not_run(self, check: str, subject: object, reason: str) -> Check:
        """NOT_RUN: the traffic did not flow, for this reason."""
        return self._verdict(check, subject, "NOT_RUN", reason, "")

    def _make(
        self,
        check: str,
        subject: object,
        good: bool,
        value: float,
        limit: float,
        unit: str,
        bound: Bound,
        reason: str,
        at: PortRef | str,
        caveat: str,
    ) -> Check:
        if not good and not reason:
            reason = f"{subject}: {value:,.6g} {unit}, must be {bound} {limit:,.6g}"
        return self._check(
            check,
            subject,
            "PASS" if good else "FAIL",
            caveat if good else reason,
            at,
            value=float(value),
            limit=float(limit),
            unit=unit,
            bound=bound,
        )

    def _verdict(
        self, check: str, subject: object, verdict: Verdict, reason: str, at: PortRef | str
    ) -> Check:
        return self._check(check, subject, verdict, reason, at)

    def _check(
        self,
        check: str,
        subject: object,
        verdict: Verdict,
        reason: str,
        at: PortRef | str,
        *,
        value: float | None = None,
        limit: float | None = None,
        unit: str = "",
        bound: Bound = "",
    ) -> Check:
        device, port = at if isinstance(at, PortRef) else (at, "")
        return Check(
            id=f"{self.observation.plan.suite}.{check}",
            subject=str(subject),
            verdict=verdict,
            value=value,
            limit=limit,
            unit=unit,
            bound=bound,
            reason=reason,
            device=device,
            port=port,
            evidence_sha256=self.observation.evidence.get(self.evidence, ""),
            evidence_class=self.observation.evidence_class,
        )


def overall(checks: Iterable[Check]) -> Verdict:
    """The worst of several: FAIL, then NOT_RUN, then PASS; SKIP where nothing else is there."""
    seen = {check.verdict for check in checks}
    order: tuple[Verdict, ...] = ("FAIL", "NOT_RUN", "PASS", "SKIP")
    for verdict in order:
        if verdict in seen:
            return verdict
    return "NOT_RUN"


def required_checks(criteria: Certify) -> tuple[str, ...]:
    """Checks that a certificate of this profile and these suites cannot do without."""
    lossless = () if criteria.profile == "lossy-tolerant" else ("loss", "retransmission")
    extra = (
        f"{suite}.{check}"
        for suite in criteria.extra_suites
        for check in (*_REQUIRED_OF[suite], *lossless)
    )
    return (*REQUIRED[criteria.profile], *extra)


def tcp_payload_bps(speed_bps: float, mtu_bytes: int) -> float:
    """TCP payload that a wire of this speed can carry at most.

    Ethernet header, FCS, preamble and gap around each packet of ``mtu_bytes``, in it IPv4
    and TCP with timestamps (RFC 7323): 20 + 20 + 12 bytes.
    """
    return speed_bps * (mtu_bytes - 52) / (mtu_bytes + 38)


def jain(shares: Sequence[float]) -> float:
    """Jain's fairness index: 1 for equal shares, 1/n where one takes all.

    (sum x)^2 / (n sum x^2), Jain, Chiu & Hawe, DEC-TR-301, 1984. 0 where nothing moved.
    """
    squares = math.fsum(share * share for share in shares) * len(shares)
    return math.fsum(shares) ** 2 / squares if squares else 0.0


def payload_bps(speed_bps: float, payload_bytes: int) -> float:
    """RoCE payload that a wire of this speed can carry at most."""
    return speed_bps * payload_bytes / (payload_bytes + ROCE_WIRE_OVERHEAD_BYTES)
