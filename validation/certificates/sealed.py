"""The seal of a run: its results and the hashes of its evidence, signed when it ended.

``runs/RUN/seal.dsse.json`` is a DSSE envelope around JSON ``{schema, run, checks,
suites}``: what the database says of the run, with the SHA-256 of every suite's
checks and of every file of evidence. Whoever edits results and evidence
consistently, without the signing key, cannot make it fit again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from securesystemslib.signer import Signer, SSlibKey

from validation.certificates.envelope import SealError, open_sealed, seal
from validation.criteria import Check
from validation.files import read_file, write_whole
from validation.results.result import SuiteResult, ValidationRun
from validation.times import to_text

PAYLOAD_TYPE = "application/vnd.paisoar.run+json"
SCHEMA = "paisoar/run/v1"
SEAL_FILE = "seal.dsse.json"


def seal_path(run: ValidationRun) -> Path:
    """Where the run's seal lies."""
    return run.folder / SEAL_FILE


def write_seal(run: ValidationRun, signer: Signer) -> None:
    """Seal a run that has ended. Raises ToolError where the file cannot be written."""
    write_whole(seal_path(run), seal(_payload(run), PAYLOAD_TYPE, signer))


def broken_seal(run: ValidationRun, trusted: Sequence[SSlibKey]) -> list[str]:
    """What of a run is not as a trusted key sealed it, one line each; empty where all is."""
    path = seal_path(run)
    try:
        data = read_file(path)
    except FileNotFoundError:
        return [f"run {run.id} has no seal ({path}): it did not end as it should, or it is gone"]
    except OSError as error:
        return [f"the seal of run {run.id} cannot be read: {path}: {error.strerror}"]
    try:
        payload = open_sealed(data, PAYLOAD_TYPE, trusted).payload
    except SealError as error:
        return [f"the seal of run {run.id} is not believed: {path}: {error}"]
    if payload == _payload(run):
        return []
    # Signed by a trusted key, hence JSON; a seal of an earlier form may lack keys.
    lines = list(_differences(json.loads(payload), json.loads(_payload(run))))
    return [f"run {run.id} is not what was sealed when it ended: {line}" for line in lines]


def _payload(run: ValidationRun) -> bytes:
    facts = {
        "schema": SCHEMA,
        "run": {
            "id": run.id,
            "site": run.site,
            "site_sha256": run.site_sha256,
            "environment": run.environment,
            "evidence_class": run.evidence_class,
            "probe": run.probe,
            "criteria": dict(run.criteria),
            "versions": dict(run.versions),
            "status": run.status,
            "started_at": to_text(run.started_at),
            "finished_at": to_text(run.finished_at) if run.finished_at else None,
            "before": run.before.to_json() if run.before else None,
            "after": run.after.to_json() if run.after else None,
            "unread": dict(run.unread),
        },
        "checks": _checks_sha256(run.checks),
        "suites": {suite.name: _suite(suite) for suite in run.suites},
    }
    return json.dumps(facts, sort_keys=True).encode()


def _suite(suite: SuiteResult) -> dict[str, Any]:
    return {
        "status": suite.status,
        "expected": dict(suite.expected),
        "seen": dict(suite.seen),
        "files": dict(suite.files),
        "started_at": to_text(suite.started_at),
        "finished_at": to_text(suite.finished_at),
        "traffic_us": suite.traffic_us,
        "wall_s": suite.wall_s,
        "checks": _checks_sha256(suite.checks),
    }


def _checks_sha256(checks: Sequence[Check]) -> str:
    digest = hashlib.sha256()
    for check in checks:
        digest.update(json.dumps(check.to_json(), sort_keys=True).encode() + b"\n")
    return digest.hexdigest()


def _differences(sealed: object, stored: object, at: str = "") -> Iterator[str]:
    if isinstance(sealed, Mapping) and isinstance(stored, Mapping):
        for key in sorted({*sealed, *stored}):
            where = f"{at}.{key}" if at else str(key)
            yield from _differences(sealed.get(key), stored.get(key), where)
    elif sealed != stored:
        yield f"{at}: sealed {_short(sealed)}, stored {_short(stored)}"


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
