"""What the page of a run says, as plain values.

Frames have the columns that ``reports.figures`` names; an empty frame means
that nothing of the kind was measured, and the page then says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from reports.content.compare import Comparison
from reports.content.forecast import Forecast
from reports.content.measures import Tile
from reports.content.trace import Trace


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
    """The last training run.

    ``epochs`` has the columns epoch, loss, accuracy, seconds, images_per_s.
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

    ``why`` is the verdict in sentences, ``tiles`` the numbers that carry it.
    ``checks``: suite, check, subject, value, limit, unit, verdict, reason.
    ``suites``: one row a suite, as ``reports.content.suites`` makes it.
    ``coverage``: suite, expected, run. ``counters``: device, port, priority,
    counter, delta (moved counters only). ``lacking``: what keeps this run from
    a certificate, where none is valid. ``refusal``: the gate's last word, or what
    it would say, where that is a refusal. ``mixed``, ``burst``, ``collective``, ``soak``,
    ``tcp_latency``, ``ecn``, ``cnps``: as the functions of ``validation.results.frames``
    and ``reports.content.suites`` make them.
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
    why: tuple[str, ...] = ()
    tiles: tuple[Tile, ...] = ()
    suites: pd.DataFrame = field(default_factory=pd.DataFrame)
    tcp_latency: pd.DataFrame = field(default_factory=pd.DataFrame)
    mixed: pd.DataFrame = field(default_factory=pd.DataFrame)
    burst: pd.DataFrame = field(default_factory=pd.DataFrame)
    collective: pd.DataFrame = field(default_factory=pd.DataFrame)
    soak: pd.DataFrame = field(default_factory=pd.DataFrame)
    ecn: pd.DataFrame = field(default_factory=pd.DataFrame)
    cnps: pd.DataFrame = field(default_factory=pd.DataFrame)
    audited_at: str = ""
    fingerprint: str = ""
    trace: Trace | None = None
    forecast: Forecast | None = None
    comparison: Comparison | None = None
