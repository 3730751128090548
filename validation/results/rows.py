"""The tables of the results database, and what is read back from them, field by field.

Anybody may have written to the database meanwhile, and SQLite takes any value in
any column. Nothing is believed that is not of the form in which it was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from sqlalchemy import JSON, ForeignKey, String
from sqlalchemy.engine import RowMapping
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from fabric.errors import InputError
from fabric.site import EvidenceClass
from validation.certificates.fingerprint import Fingerprint
from validation.criteria import Bound, Check, Verdict
from validation.results.result import SuiteResult, SuiteStatus, ValidationRun
from validation.times import from_text, to_text

ADVICE = "The database was altered or is damaged: run `paisoar validate` again."


class Base(DeclarativeBase):
    """Of the tables."""


class RunRow(Base):
    """A run as it is stored."""

    __tablename__ = "runs"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    site: Mapped[str] = mapped_column(String(63), index=True)
    started_at: Mapped[str] = mapped_column(String(32), index=True)
    finished_at: Mapped[str | None] = mapped_column(String(32))
    status: Mapped[str] = mapped_column(String(16))
    facts: Mapped[dict[str, Any]] = mapped_column(JSON)


class SuiteRow(Base):
    """A suite of a run as it is stored."""

    __tablename__ = "suites"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    place: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(32))
    status: Mapped[str] = mapped_column(String(16))
    facts: Mapped[dict[str, Any]] = mapped_column(JSON)


class CheckRow(Base):
    """A check as it is stored; of the run as a whole where ``suite`` is empty."""

    __tablename__ = "checks"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"), index=True)
    suite: Mapped[str] = mapped_column(String(32))
    check: Mapped[str] = mapped_column(String(64), index=True)
    subject: Mapped[str]
    verdict: Mapped[str] = mapped_column(String(8), index=True)
    value: Mapped[float | None]
    limit: Mapped[float | None]
    unit: Mapped[str] = mapped_column(String(32))
    bound: Mapped[str] = mapped_column(String(8))
    reason: Mapped[str]
    device: Mapped[str] = mapped_column(String(63))
    port: Mapped[str] = mapped_column(String(63))
    evidence_sha256: Mapped[str] = mapped_column(String(64))
    evidence_class: Mapped[str] = mapped_column(String(16))


def run_facts(run: ValidationRun) -> dict[str, Any]:
    """What of a run has no column of its own."""
    return {
        "site_sha256": run.site_sha256,
        "environment": run.environment,
        "evidence_class": run.evidence_class,
        "probe": run.probe,
        "criteria": dict(run.criteria),
        "versions": dict(run.versions),
        "before": run.before.to_json() if run.before else None,
        "after": run.after.to_json() if run.after else None,
        "unread": dict(run.unread),
    }


def suite_row(run_id: str, place: int, suite: SuiteResult) -> SuiteRow:
    """The row of a suite, the ``place``-th of its run."""
    return SuiteRow(
        run_id=run_id,
        place=place,
        name=suite.name,
        status=suite.status,
        facts={
            "expected": dict(suite.expected),
            "seen": dict(suite.seen),
            "files": dict(suite.files),
            "started_at": to_text(suite.started_at),
            "finished_at": to_text(suite.finished_at),
            "traffic_us": suite.traffic_us,
            "wall_s": suite.wall_s,
        },
    )


def check_row(run_id: str, suite: str, check: Check) -> dict[str, Any]:
    """The values of a check's row."""
    # Plain rows: a big site has many thousands, which the ORM would track one by one.
    values = asdict(check)
    return {"run_id": run_id, "suite": suite, "check": values.pop("id"), **values}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def _as_time(text: object) -> object:
    return from_text(text) if isinstance(text, str) else text


Moment = Annotated[datetime, BeforeValidator(_as_time)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Counts = dict[str, Annotated[int, Field(ge=0)]]
Kind = Literal[
    "outline",
    "flows",
    "latency",
    "series",
    "queues",
    "counters",
    "begin",
    "states",
    "transcripts",
]
# Names become parts of paths.
SuiteName = Annotated[str, Field(pattern="^[a-z][a-z0-9_-]*$")]
RunId = Annotated[str, Field(pattern="^val-[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}$")]


class _Fingerprint(_Strict):
    sha256: Sha256
    per_device: dict[str, Sha256]
    intent_sha256: Sha256
    cabling_sha256: Sha256

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        self.value()
        return self

    def value(self) -> Fingerprint:
        return Fingerprint.from_json(self.model_dump())


class _RunFacts(_Strict):
    site_sha256: Sha256
    environment: str
    evidence_class: EvidenceClass
    probe: str
    criteria: dict[str, str | int | float | list[str]]
    versions: dict[str, str]
    before: _Fingerprint | None
    after: _Fingerprint | None
    unread: dict[str, str]


class _Run(_Strict):
    id: RunId
    site: str
    started_at: Moment
    finished_at: Moment | None
    status: Literal["running", "partial", "complete"]
    facts: _RunFacts


class _SuiteFacts(_Strict):
    expected: Counts
    seen: Counts
    files: dict[Kind, Sha256]
    started_at: Moment
    finished_at: Moment
    traffic_us: Annotated[float, Field(ge=0)]
    wall_s: Annotated[float, Field(ge=0)]


class _Suite(_Strict):
    name: SuiteName
    status: SuiteStatus
    facts: _SuiteFacts


class _Check(_Strict):
    suite: Annotated[str, Field(pattern="^([a-z][a-z0-9_-]*)?$")]
    check: str
    subject: str
    verdict: Verdict
    value: float | None
    limit: float | None
    unit: str
    bound: Bound
    reason: str
    device: str
    port: str
    evidence_sha256: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")]
    evidence_class: EvidenceClass

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.value is None) != (self.limit is None):
            raise ValueError("value and limit belong together, one of them is missing")
        return self

    def result(self) -> Check:
        values = self.model_dump(exclude={"suite", "check"})
        return Check(id=self.check, **values)


_Model = TypeVar("_Model", bound=BaseModel)


def run_from(
    database: str,
    folder: Path,
    run: RowMapping,
    suites: Sequence[RowMapping],
    checks: Sequence[RowMapping],
) -> ValidationRun:
    """A run from its rows. Raises InputError naming ``database``, table, run and field."""
    found = _read(_Run, run, database, "runs", run["id"])
    by_suite: dict[str, list[Check]] = {"": []}
    results = [_read(_Suite, row, database, "suites", found.id) for row in suites]
    for result in results:
        if result.name in by_suite:
            raise damaged(database, "suites", found.id, "name", f"{result.name!r} is there twice")
        by_suite[result.name] = []
    for row in checks:
        check = _read(_Check, row, database, "checks", found.id)
        if check.suite not in by_suite:
            raise damaged(database, "checks", found.id, "suite", f"{check.suite!r} was not run")
        by_suite[check.suite].append(check.result())
    facts = found.facts
    return ValidationRun(
        id=found.id,
        site=found.site,
        site_sha256=facts.site_sha256,
        environment=facts.environment,
        evidence_class=facts.evidence_class,
        probe=facts.probe,
        criteria=facts.criteria,
        versions=facts.versions,
        status=found.status,
        started_at=found.started_at,
        finished_at=found.finished_at,
        before=facts.before.value() if facts.before else None,
        after=facts.after.value() if facts.after else None,
        unread=facts.unread,
        checks=tuple(by_suite[""]),
        suites=tuple(_result(suite, by_suite[suite.name]) for suite in results),
        folder=folder,
    )


def damaged(database: str, table: str, run_id: object, field: str, why: str) -> InputError:
    """What is said of a field that cannot have been written like that."""
    return InputError(
        f"table {table}, run {run_id}, field {field}: {why}", file=database, advice=ADVICE
    )


def _read(
    model: type[_Model], row: RowMapping, database: str, table: str, run_id: object
) -> _Model:
    try:
        return model.model_validate(dict(row))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "value"
        raise damaged(database, table, run_id, field, first["msg"]) from error


def _result(suite: _Suite, checks: Sequence[Check]) -> SuiteResult:
    facts = suite.facts
    return SuiteResult(
        name=suite.name,
        status=suite.status,
        checks=tuple(checks),
        expected=facts.expected,
        seen=facts.seen,
        files={str(kind): digest for kind, digest in facts.files.items()},
        started_at=facts.started_at,
        finished_at=facts.finished_at,
        traffic_us=facts.traffic_us,
        wall_s=facts.wall_s,
    )
