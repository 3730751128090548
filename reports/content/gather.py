"""Collecting what a report says from what runs left under ``.paisoar/``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from fabric.audit.record import AuditRecord, load_audit
from fabric.errors import GateRefusedError
from fabric.site import Site
from reports.content import suites
from reports.content.compare import compare
from reports.content.forecast import Forecast, forecast
from reports.content.measures import tiles, why
from reports.content.model import CertificateFacts, GateRefusal, ReportContent, TrainingFacts
from reports.content.trace import read_trace
from trainer.record import load_latest_training, load_refusal
from validation.certificates import certificate
from validation.certificates.certify import lacking
from validation.files import read_file
from validation.results import frames
from validation.results.result import ValidationRun
from validation.results.states import STATES_FILE, states_from_bytes
from validation.times import utc_now

FINDING_COLUMNS = ["rule", "severity", "device", "port", "message"]


def gather(
    site: Site,
    run: ValidationRun,
    against: ValidationRun | None = None,
    timeline: Path | None = None,
) -> ReportContent:
    """The content of a report on this validation run; reads no device.

    ``against`` is an earlier run to compare with, ``timeline`` a trace of the training.
    InputError where either is not what it should be.
    """
    training_dir = site.state_dir / "training"
    certified = _certificate(site)
    holds = certified is not None and certified.valid
    counters = _shown(frames.counters_frame(run), [])
    audit = load_audit(site)
    return ReportContent(
        site=site.name,
        environment=run.environment,
        evidence_class=run.evidence_class,
        run_id=run.id,
        created_at=f"{run.started_at:%Y-%m-%d %H:%M} UTC",
        verdict="PASSED" if run.verdict == "PASS" else "FAILED",
        why=why(run),
        tiles=tiles(run),
        hosts=len(site.topology.hosts),
        switches=len(site.topology.switches),
        cables=len(site.topology.links),
        checks=_shown(frames.checks_frame(run), ["device", "port", "evidence_sha256"]),
        suites=suites.suites_frame(run),
        coverage=_shown(frames.coverage_frame(run), []),
        bandwidth=suites.with_verdicts(frames.bandwidth_frame(run), run),
        latency=frames.latency_frame(run),
        tcp_latency=frames.tcp_latency_frame(run),
        latency_limit_us=site.document.certify.max_latency_p99_us,
        incast=frames.incast_frame(site, run),
        incast_limit_fraction=site.document.certify.min_incast_fraction,
        senders=frames.senders_frame(run),
        queues=frames.queues_frame(run),
        pauses=suites.pause_frame(counters),
        ecn=suites.ecn_frame(counters),
        cnps=suites.cnp_frame(counters),
        mixed=suites.mixed_frame(run),
        burst=suites.burst_frame(run),
        collective=suites.collective_frame(run),
        soak=frames.soak_frame(run),
        counters=counters,
        findings=_findings(audit),
        audited_at=_moment(datetime.fromisoformat(audit.made_at)) if audit else "",
        certificate=certified,
        training=_training(training_dir),
        lacking=() if holds else tuple(lacking(site, run, utc_now())),
        refusal=_refusal(site, training_dir),
        versions=dict(run.versions),
        fingerprint=run.before.sha256 if run.before else "",
        trace=read_trace(timeline) if timeline is not None else None,
        forecast=_forecast(site, run),
        comparison=compare(against, run) if against is not None else None,
    )


def _forecast(site: Site, run: ValidationRun) -> Forecast:
    """For the fabric as it was read at the run; without that, for nothing."""
    try:
        states = states_from_bytes(read_file(run.folder / STATES_FILE))
    except (OSError, ValueError):
        return Forecast(pd.DataFrame(), "", "what the devices held was not kept with this run")
    gone = sorted({*site.devices} - states.keys())
    if gone:
        said = f"these devices were not read in this run: {', '.join(gone)}"
        return Forecast(pd.DataFrame(), "", said)
    return forecast(site, states)


def _shown(frame: pd.DataFrame, hidden: list[str]) -> pd.DataFrame:
    """Columns for people; the page says the evidence class once for all rows."""
    return frame.drop(columns=["evidence_class", *hidden])


def _findings(audit: AuditRecord | None) -> pd.DataFrame:
    rows = [
        (f.rule, f.severity, f.device, f.port, f.message)
        for f in (audit.report.findings if audit else ())
    ]
    return pd.DataFrame(rows, columns=FINDING_COLUMNS)


def _certificate(site: Site) -> CertificateFacts | None:
    try:
        shown = certificate.show(site)
    except GateRefusedError:
        return None
    found = shown.certificate
    if found is None:
        return CertificateFacts(shown.path.name, False, shown.message, "", "", "", "", "", "")
    predicate = found.predicate
    return CertificateFacts(
        id=found.id,
        valid=shown.valid,
        reason="" if shown.valid else shown.message,
        evidence_class=found.evidence_class,
        profile=predicate.profile.name,
        not_before=_moment(found.not_before),
        not_after=_moment(found.not_after),
        key_id=predicate.issuer_key_id,
        fingerprint=found.fingerprint.sha256,
    )


def _refusal(site: Site, training_dir: Path) -> GateRefusal | None:
    """What the gate said last, or, where no job was refused, what the files say without it."""
    said = load_refusal(training_dir)
    if said is not None:
        return GateRefusal(_moment(said.at), said.reason, said.message, said.advice)
    try:
        certificate.verify(site)
    except GateRefusedError as error:
        return GateRefusal("", error.reason, error.message, error.advice)
    return None


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _training(folder: Path) -> TrainingFacts | None:
    record = load_latest_training(folder)
    if record is None:
        return None
    epochs = pd.DataFrame(
        [(e.epoch, e.loss, e.test_accuracy, e.seconds, e.images_per_s) for e in record.history],
        columns=["epoch", "loss", "accuracy", "seconds", "images_per_s"],
    )
    return TrainingFacts(
        model=record.plan.model,
        data=record.plan.data,
        ranks=record.plan.ranks,
        transport=record.transport,
        accuracy=record.accuracy,
        images_per_s=record.images_per_s,
        weights_identical=record.weights_identical,
        tested=all(e.tested for e in record.history),
        certificate_id=record.certificate_id,
        gate_class=record.evidence_class,
        epochs=epochs,
    )
