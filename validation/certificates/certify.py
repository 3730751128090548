"""From a validation run to a certificate, or to the list of what is missing for one.

Nothing is signed that was not measured: a failure, a test that did not run, a
required check that was skipped, a missing suite, thin coverage, an altered file
of evidence, a fabric that is not the measured one any more: each withholds it.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.metadata import version

from fabric.audit import audit
from fabric.devices.registry import expected_qos
from fabric.errors import DevicesError, InputError, JudgedBadError, PaisoarError, ToolError
from fabric.qos import DeviceQos
from fabric.site import Site
from validation.certificates import certificate as certificates
from validation.certificates import revocation
from validation.certificates.certificate import Certificate
from validation.certificates.envelope import seal
from validation.certificates.fingerprint import explain, fingerprint
from validation.certificates.keys import KEY_VARIABLE, is_trusted, signer, trusted_dir, trusted_keys
from validation.certificates.predicate import (
    PAYLOAD_TYPE,
    CertifiedFingerprint,
    CertifiedNic,
    CertifiedSwitch,
    CheckSummary,
    Coverage,
    Predicate,
    Profile,
    Run,
    Scope,
    Tool,
    statement_bytes,
)
from validation.certificates.revocation import RevocationError
from validation.certificates.sealed import broken_seal
from validation.criteria import Check, overall, required_checks
from validation.files import read_file, write_whole
from validation.judgement.coverage import MAY_BE_FEWER
from validation.judgement.rejudge import disagreements
from validation.readers import StateReader, read_states
from validation.results.result import SuiteResult, ValidationRun
from validation.results.states import STATES_FILE, states_bytes, states_from_bytes
from validation.results.store import altered_evidence
from validation.suites import certified_suites, select
from validation.times import Clock, to_text, utc_now

MAX_RUN_AGE = timedelta(hours=24)
_MAX_LISTED = 12


def lacking(site: Site, run: ValidationRun, now: datetime) -> list[str]:
    """What keeps this run from being certified, one line each; empty where nothing does."""
    lines = _wrong_run(site, run, now)
    for suite in select(certified_suites(site)):
        result = run.suite(suite.name)
        if result is None:
            lines.append(f"suite {suite.name} was not run")
        else:
            lines += _thin(result, suite.again(site, result.repetitions).expected)
    bad = [
        f"{c.verdict} {c.id}: {c.reason if c.subject in c.reason else f'{c.subject}: {c.reason}'}"
        for c in run.failures
    ]
    lines += _listed(bad, "checks that failed or did not run")
    lines += _unproven(site, run.all_checks)
    lines += [f"{name} did not answer: {answer}" for name, answer in run.unread.items()]
    if run.before is None or run.after is None:
        lines.append("the fabric's fingerprint was not taken on both sides of the run")
    elif run.before.sha256 != run.after.sha256:
        lines.append("the fabric changed during the run")
    elif set(run.before.per_device) != set(site.devices):
        lines.append("the fingerprint does not cover every device of the site")
    lines += [f"evidence was altered or is gone: {name}" for name in altered_evidence(run)]
    if run.site == site.name and run.site_sha256 == site.sha256:
        lines += _listed(disagreements(site, run), "disagreements with the evidence")
    if run.status == "complete":
        lines += _listed(broken_seal(run, trusted_keys(site)), "differences from the seal")
    return lines


def _listed(lines: list[str], of_what: str) -> list[str]:
    more = len(lines) - _MAX_LISTED
    return lines[:_MAX_LISTED] + ([f"... and {more} more {of_what}"] if more > 0 else [])


def certify(
    site: Site,
    run: ValidationRun | None,
    *,
    reader: StateReader = read_states,
    clock: Clock = utc_now,
    on_warning: Callable[[str], None] = lambda _line: None,
) -> Certificate:
    """Sign what this run has shown. The devices are read once more before.

    ``on_warning`` is told what does no harm now and may later, as settings that a
    reboot takes away: such a fabric is certified, and the gate reads it again.
    Raises JudgedBadError that lists what is missing, DevicesError where a device
    does not answer, InputError where the signing key is not usable.
    """
    now = clock()
    if run is None:
        raise JudgedBadError(
            f"site {site.name} has not been validated.", advice="Run `paisoar validate`."
        )
    lines = lacking(site, run, now)
    if lines:
        raise _withheld(site, run, lines)
    states = _states_of(run)
    wrong, warnings = _audited(site, states)
    if wrong:
        raise _withheld(site, run, wrong)
    _unchanged(site, run, states, reader)
    signing = signer(site)
    if not is_trusted(site, signing):
        raise InputError(
            f"the gate does not trust the signing key {signing.public_key.keyid[:12]}",
            key=KEY_VARIABLE,
            advice="Put its public half into the folder of trusted keys: openssl pkey -in KEY "
            f"-pubout -out {trusted_dir(site) / 'NAME.pub.pem'}",
        )
    trusted = trusted_keys(site)
    try:
        listed = revocation.publish(site, signing, trusted, now)
    except RevocationError as error:
        raise _withheld(site, run, [str(error)]) from error
    predicate = _predicate(site, run, states, now, signing.public_key.keyid, listed.sequence)
    data = seal(statement_bytes(predicate), PAYLOAD_TYPE, signing)
    # States first: a certificate that is seen has them beside it.
    beside = certificates.states_path(site, predicate.id)
    write_whole(beside, states_bytes(states))
    try:
        write_whole(certificates.certificate_path(site, predicate.id), data)
    except InputError:
        beside.unlink()
        raise
    for line in warnings:
        on_warning(line)
    return certificates.verify(site, predicate.id, clock=lambda: now)


def _audited(site: Site, states: Mapping[str, DeviceQos]) -> tuple[list[str], list[str]]:
    """Errors and warnings of an audit of what was measured: traffic does not show them all."""
    intended = {name: expected_qos(site, name) for name in states}
    errors: list[str] = []
    warnings: list[str] = []
    for finding in audit(site, states, intended).findings:
        where = f"{finding.device} {finding.port}".strip()
        lines = errors if finding.severity == "error" else warnings
        lines.append(f"audit, {finding.rule}: {where}: {finding.message}")
    return _listed(errors, "findings"), _listed(warnings, "warnings")


def _wrong_run(site: Site, run: ValidationRun, now: datetime) -> list[str]:
    lines = []
    if run.site != site.name:
        lines.append(f"the run {run.id} is of site {run.site!r}, this is {site.name!r}")
    if run.environment != site.environment or run.evidence_class != site.evidence_class:
        lines.append(
            f"the run is {run.evidence_class} evidence of the environment {run.environment}, "
            f"the site says {site.environment}"
        )
    if run.site_sha256 != site.sha256:
        lines.append("fabric.yaml has been changed since the run")
    if run.status != "complete" or run.finished_at is None:
        lines.append(f"the run is not complete ({run.status})")
    elif run.finished_at < run.started_at:
        lines.append(
            f"the run ended at {to_text(run.finished_at)}, before it began "
            f"({to_text(run.started_at)}): the clock was set back meanwhile"
        )
    elif run.finished_at > now:
        lines.append(f"the run ended at {to_text(run.finished_at)}, which is in the future")
    elif now - run.finished_at > MAX_RUN_AGE:
        hours = (now - run.finished_at).total_seconds() / 3600
        lines.append(f"the run is {hours:.0f} hours old, at most 24 are accepted")
    profile = site.document.certify.profile
    if run.evidence_class == "soft-roce" and profile != "lossy-tolerant":
        lines.append(f"Soft-RoCE has no PFC: its evidence never proves the profile {profile}")
    return lines


def _thin(result: SuiteResult, planned: Mapping[str, int]) -> list[str]:
    lines = []
    if result.status != "complete":
        lines.append(f"suite {result.name} is not complete ({result.status})")
    if dict(result.expected) != dict(planned):
        lines.append(f"suite {result.name} was planned for another site or by another version")
    for what, count in planned.items():
        seen = result.seen.get(what, 0)
        if seen < count and what not in MAY_BE_FEWER:
            lines.append(f"suite {result.name} covered {seen} of {count} {what}")
    return lines


def _unproven(site: Site, checks: Sequence[Check]) -> list[str]:
    """Checks that the profile cannot do without, and that nobody could judge."""
    lines = []
    for wanted in required_checks(site.document.certify):
        judged = [check for check in checks if check.id == wanted]
        if not any(check.verdict in ("PASS", "FAIL", "NOT_RUN") for check in judged):
            lines.append(f"{wanted} was never judged")
        lines += [
            f"{wanted} was skipped for {check.subject}: {check.reason}"
            for check in judged
            if check.verdict == "SKIP"
        ]
    return lines


def _states_of(run: ValidationRun) -> dict[str, DeviceQos]:
    path = run.folder / STATES_FILE
    try:
        return states_from_bytes(read_file(path))
    except (OSError, ValueError) as error:
        raise ToolError(f"the states of run {run.id} cannot be read: {error}") from error


def _unchanged(
    site: Site, run: ValidationRun, states: dict[str, DeviceQos], reader: StateReader
) -> None:
    read = reader(site)
    if read.failed:
        failed = {
            name: error if isinstance(error, PaisoarError) else ToolError(f"{name}: {error}")
            for name, error in read.failed.items()
        }
        raise DevicesError("read the fabric before signing", failed)
    assert run.after is not None
    changed = run.after.changed(fingerprint(site, read.states))
    if changed:
        lines = explain(
            {n: s for n, s in states.items() if n in changed},
            {n: s for n, s in read.states.items() if n in changed},
        )
        raise _withheld(
            site, run, [f"{', '.join(changed)} changed since the run", *lines[:_MAX_LISTED]]
        )


def _withheld(site: Site, run: ValidationRun, lines: Sequence[str]) -> JudgedBadError:
    text = "\n".join(f"  {line}" for line in lines)
    return JudgedBadError(
        f"no certificate for site {site.name} from run {run.id}:\n{text}",
        advice="Mend what is listed, then run `paisoar validate` and `paisoar certify` again.",
    )


def _predicate(
    site: Site,
    run: ValidationRun,
    states: Mapping[str, DeviceQos],
    now: datetime,
    key_id: str,
    sequence: int,
) -> Predicate:
    assert run.finished_at is not None
    criteria = site.document.certify.model_dump(mode="json")
    mark = fingerprint(site, states)
    # What was measured ages from the measurement on, not from the signature on.
    not_after = run.finished_at + timedelta(hours=site.document.certify.valid_hours)
    return Predicate(
        id=f"cert-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}",
        issued_at=to_text(now),
        not_before=to_text(now),
        not_after=to_text(not_after),
        issuer_key_id=key_id,
        tool=Tool(name="paisoar", version=version("paisoar")),
        evidence_class=run.evidence_class,
        simulated=run.simulated,
        scope=_scope(site, states),
        profile=Profile(
            name=criteria["profile"],
            thresholds={name: v for name, v in criteria.items() if isinstance(v, int | float)},
        ),
        run=Run(
            id=run.id,
            started_at=to_text(run.started_at),
            finished_at=to_text(run.finished_at),
            site_sha256=run.site_sha256,
            probe=run.probe,
            versions=dict(run.versions),
        ),
        coverage=tuple(
            Coverage(suite=s.name, what=what, expected=count, seen=s.seen.get(what, 0))
            for s in run.suites
            for what, count in s.expected.items()
        ),
        checks=summaries(run.all_checks),
        fingerprint=CertifiedFingerprint(**mark.to_json()),
        revocation_sequence=sequence,
    )


def _scope(site: Site, states: Mapping[str, DeviceQos]) -> Scope:
    topology = site.topology
    return Scope(
        site=site.name,
        environment=site.environment,
        hosts=topology.hosts,
        nics=tuple(
            CertifiedNic(
                host=end.device,
                port=end.port,
                rdma=site.host(end.device).nics[end.port].rdma,
                address=site.host(end.device).nics[end.port].address,
                speed_bps=topology.link_of[end].speed_bps,
            )
            for end in topology.endpoints
        ),
        switches=tuple(
            CertifiedSwitch(
                name=name,
                os=states[name].os,
                model=states[name].model,
                serial=states[name].serial,
                firmware=states[name].firmware,
            )
            for name in topology.switches
        ),
        links=tuple(f"{link.a} - {link.b}" for link in topology.links),
    )


def summaries(checks: Sequence[Check]) -> tuple[CheckSummary, ...]:
    """One line a check id: the value nearest to its limit (or furthest beyond) and the counts."""
    groups: dict[str, list[Check]] = defaultdict(list)
    for check in checks:
        groups[check.id].append(check)
    return tuple(_summary(name, group) for name, group in groups.items())


def _summary(name: str, group: Sequence[Check]) -> CheckSummary:
    judged = [check for check in group if check.value is not None]
    worst = max(judged, key=_badness, default=None)
    skipped = [check for check in group if check.verdict == "SKIP"]
    return CheckSummary(
        id=name,
        verdict=overall(group),
        passed=sum(check.verdict == "PASS" for check in group),
        skipped=len(skipped),
        worst=worst.value if worst else None,
        worst_subject=worst.subject if worst else "",
        limit=worst.limit if worst else None,
        unit=worst.unit if worst else "",
        bound=worst.bound if worst else "",
        skip_reasons=tuple(dict.fromkeys(check.reason for check in skipped))[:3],
        evidence_sha256=tuple(
            dict.fromkeys(check.evidence_sha256 for check in group if check.evidence_sha256)
        ),
    )


def _badness(check: Check) -> float:
    assert check.value is not None
    assert check.limit is not None
    distance = check.value - check.limit
    return distance if check.bound == "at most" else -distance
