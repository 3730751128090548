"""What a report says, gathered before anything is drawn.

Frames have the columns that ``reports.figures`` names; an empty frame means
that nothing of the kind was measured, and the page then says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """The certificate as the page shows it; ``valid`` with its reason where it is not."""

    id: str
    valid: bool
    reason: str
    evidence_class: str
    profile: str
    not_before: str
    not_after: str
    key_id: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class TrainingFacts:
    """The last training run; ``epochs`` has the columns epoch, loss, accuracy.

    The training itself is always real; ``gate_class`` is the evidence class of
    the certificate that admitted it. ``tested`` is False where the data has no
    test images, and accuracy is that on the training images.
    """

    model: str
    data: str
    ranks: int
    transport: str
    accuracy: float
    images_per_s: float
    weights_identical: bool
    tested: bool
    certificate_id: str
    gate_class: str
    epochs: pd.DataFrame


@dataclass(frozen=True, slots=True)
class GateRefusal:
    """Why no job is let in. ``at`` is empty where no job has asked and the files tell it."""

    at: str
    reason: str
    message: str
    advice: str


@dataclass(frozen=True)
class ReportContent:
    """Everything that one page shows.

    ``checks``: suite, check, subject, value, limit, unit, verdict, reason.
    ``coverage``: suite, expected, run. ``counters``: device, port, priority,
    counter, delta (moved counters only). ``lacking``: what keeps this run from
    a certificate, where none is valid. ``refusal``: the gate's last word, or what
    it would say, where that is a refusal.
    """

    site: str
    environment: str
    evidence_class: str
    run_id: str
    created_at: str
    verdict: str
    hosts: int
    switches: int
    cables: int
    checks: pd.DataFrame
    coverage: pd.DataFrame
    bandwidth: pd.DataFrame
    latency: pd.DataFrame
    latency_limit_us: float | None
    incast: pd.DataFrame
    incast_limit_fraction: float
    senders: pd.DataFrame
    queues: pd.DataFrame
    pauses: pd.DataFrame
    counters: pd.DataFrame
    findings: pd.DataFrame
    certificate: CertificateFacts | None
    training: TrainingFacts | None
    lacking: tuple[str, ...] = ()
    refusal: GateRefusal | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
