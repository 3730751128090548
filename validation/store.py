"""Where runs are kept: a database for what is asked about, files for the evidence.

SQLite under ``.paisoar/validation/results.sqlite``; ``PAISOAR_DATABASE_URL``
names another database that SQLAlchemy knows. Evidence (Parquet, JSON) lies
under ``.paisoar/validation/runs/RUN/``, each file written whole or not at all.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import JSON, ForeignKey, String, create_engine, delete, event, insert, select
from sqlalchemy.engine import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

from fabric.errors import InputError, ToolError
from fabric.site import Site
from validation.criteria import Check
from validation.fingerprint import Fingerprint
from validation.result import SuiteResult, ValidationRun
from validation.states import STATES_FILE, sha256
from validation.times import from_text, to_text

DATABASE_VARIABLE = "PAISOAR_DATABASE_URL"


class _Base(DeclarativeBase):
    pass


class _Run(_Base):
    __tablename__ = "runs"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    site: Mapped[str] = mapped_column(String(63), index=True)
    started_at: Mapped[str] = mapped_column(String(32), index=True)
    finished_at: Mapped[str | None] = mapped_column(String(32))
    status: Mapped[str] = mapped_column(String(16))
    facts: Mapped[dict[str, Any]] = mapped_column(JSON)
    suites: Mapped[list[_Suite]] = relationship(
        order_by="_Suite.place", cascade="all, delete-orphan"
    )
    checks: Mapped[list[_Check]] = relationship(order_by="_Check.id", cascade="all, delete-orphan")


class _Suite(_Base):
    __tablename__ = "suites"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    place: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(32))
    status: Mapped[str] = mapped_column(String(16))
    facts: Mapped[dict[str, Any]] = mapped_column(JSON)


class _Check(_Base):
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


def validation_dir(site: Site) -> Path:
    """Where the site's results lie."""
    return site.state_dir / "validation"


def run_dir(site: Site, run_id: str) -> Path:
    """Where one run's evidence lies."""
    return validation_dir(site) / "runs" / run_id


class Store:
    """The results of one site. Use as a context manager; closing frees the database."""

    def __init__(self, site: Site, url: str | None = None) -> None:
        self.site = site
        url = url or os.environ.get(DATABASE_VARIABLE)
        if url is None:
            validation_dir(site).mkdir(parents=True, exist_ok=True)
            url = f"sqlite:///{validation_dir(site) / 'results.sqlite'}"
        try:
            self._engine = create_engine(url)
            if self._engine.dialect.name == "sqlite":
                event.listen(self._engine, "connect", _prepare_sqlite)
            _Base.metadata.create_all(self._engine)
        except (SQLAlchemyError, ImportError) as error:
            raise ToolError(
                f"the results database cannot be opened: {_first_line(error)}",
                advice=f"{DATABASE_VARIABLE} names it as a SQLAlchemy URL; unset it for SQLite.",
            ) from error

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the database back."""
        self._engine.dispose()

    @property
    def engine(self) -> Engine:
        """For reports that want to query on their own."""
        return self._engine

    def write_file(self, run_id: str, name: str, data: bytes) -> str:
        """Keep one file of evidence; returns its SHA-256. Never leaves half a file."""
        folder = run_dir(self.site, run_id)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        partial.write_bytes(data)
        partial.replace(path)
        return sha256(data)

    def save(self, run: ValidationRun) -> None:
        """Write what is known of a run as a whole, in one transaction; its suites stay."""
        with self._session() as session:
            row = session.get(_Run, run.id)
            if row is None:
                row = _Run(id=run.id, site=run.site, started_at=to_text(run.started_at))
                session.add(row)
            row.status = run.status
            row.finished_at = to_text(run.finished_at) if run.finished_at else None
            row.facts = _run_facts(run)
            session.flush()
            session.execute(delete(_Check).where(_Check.run_id == run.id, _Check.suite == ""))
            self._add_checks(session, run.id, "", run.checks)

    def add_suite(self, run_id: str, place: int, suite: SuiteResult) -> None:
        """Write the result of a suite, the ``place``-th of its run, in one transaction."""
        with self._session() as session:
            session.add(_suite_row(run_id, place, suite))
            self._add_checks(session, run_id, suite.name, suite.checks)

    @staticmethod
    def _add_checks(session: Session, run_id: str, suite: str, checks: Sequence[Check]) -> None:
        if checks:
            session.execute(insert(_Check), [_check_row(run_id, suite, c) for c in checks])

    def ids(self) -> tuple[str, ...]:
        """Runs of this site, the oldest first."""
        with self._session() as session:
            query = select(_Run.id).where(_Run.site == self.site.name).order_by(_Run.started_at)
            return tuple(session.scalars(query))

    def load(self, run_id: str) -> ValidationRun:
        """One run; InputError where this site has none of that name."""
        with self._session() as session:
            row = session.get(_Run, run_id)
            if row is None or row.site != self.site.name:
                raise InputError(
                    f"site {self.site.name} has no validation run {run_id!r}",
                    advice="`paisoar validate` makes one.",
                )
            return _run_from(row, run_dir(self.site, run_id))

    @contextmanager
    def _session(self) -> Iterator[Session]:
        try:
            with Session(self._engine) as session, session.begin():
                yield session
        except SQLAlchemyError as error:
            raise ToolError(f"the results database failed: {_first_line(error)}") from error


def latest_run(site: Site) -> ValidationRun | None:
    """The newest run of a site, whatever its status; None where there is none."""
    with Store(site) as store:
        ids = store.ids()
        return store.load(ids[-1]) if ids else None


def load_run(site: Site, run_id: str) -> ValidationRun:
    """One run of a site. Raises InputError where there is none of that name."""
    with Store(site) as store:
        return store.load(run_id)


def list_runs(site: Site) -> tuple[ValidationRun, ...]:
    """All runs of a site, the oldest first."""
    with Store(site) as store:
        return tuple(store.load(run_id) for run_id in store.ids())


def altered_evidence(run: ValidationRun) -> tuple[str, ...]:
    """Evidence files that are gone or are not what was hashed when the run was judged."""
    bad = []
    for suite in run.suites:
        for kind, digest in suite.files.items():
            path = run.folder / file_name(suite.name, kind)
            try:
                good = sha256(path.read_bytes()) == digest
            except OSError:
                good = False
            if not good:
                bad.append(str(path.relative_to(run.folder)))
    return tuple(dict.fromkeys(bad))


def file_name(suite: str, kind: str) -> str:
    """Where a kind of evidence lies within the run's folder; states are the whole run's."""
    return STATES_FILE if kind == "states" else f"{suite}.{kind}.parquet"


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # WAL survives a crash at any moment and lets a report read while a run writes;
    # with it, NORMAL may lose the last commit on a power cut, but never consistency.
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0]


def _run_facts(run: ValidationRun) -> dict[str, Any]:
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


def _suite_row(run_id: str, place: int, suite: SuiteResult) -> _Suite:
    return _Suite(
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


def _check_row(run_id: str, suite: str, check: Check) -> dict[str, Any]:
    # Plain rows: a big site has many thousands, which the ORM would track one by one.
    values = asdict(check)
    return {"run_id": run_id, "suite": suite, "check": values.pop("id"), **values}


def _run_from(row: _Run, folder: Path) -> ValidationRun:
    facts: Mapping[str, Any] = row.facts
    checks: dict[str, list[Check]] = {}
    for item in row.checks:
        checks.setdefault(item.suite, []).append(_check_from(item))
    return ValidationRun(
        id=row.id,
        site=row.site,
        site_sha256=facts["site_sha256"],
        environment=facts["environment"],
        evidence_class=facts["evidence_class"],
        probe=facts["probe"],
        criteria=facts["criteria"],
        versions=facts["versions"],
        status=row.status,  # type: ignore[arg-type]
        started_at=from_text(row.started_at),
        finished_at=_moment(row.finished_at),
        before=Fingerprint.from_json(facts["before"]) if facts["before"] else None,
        after=Fingerprint.from_json(facts["after"]) if facts["after"] else None,
        unread=facts["unread"],
        checks=tuple(checks.get("", ())),
        suites=tuple(_suite_from(suite, checks.get(suite.name, [])) for suite in row.suites),
        folder=folder,
    )


def _moment(text: str | None) -> datetime | None:
    return from_text(text) if text else None


def _suite_from(row: _Suite, checks: list[Check]) -> SuiteResult:
    facts: Mapping[str, Any] = row.facts
    return SuiteResult(
        name=row.name,
        status=row.status,  # type: ignore[arg-type]
        checks=tuple(checks),
        expected=facts["expected"],
        seen=facts["seen"],
        files=facts["files"],
        started_at=from_text(facts["started_at"]),
        finished_at=from_text(facts["finished_at"]),
        traffic_us=facts["traffic_us"],
        wall_s=facts["wall_s"],
    )


def _check_from(row: _Check) -> Check:
    return Check(
        id=row.check,
        subject=row.subject,
        verdict=row.verdict,  # type: ignore[arg-type]
        value=row.value,
        limit=row.limit,
        unit=row.unit,
        bound=row.bound,  # type: ignore[arg-type]
        reason=row.reason,
        device=row.device,
        port=row.port,
        evidence_sha256=row.evidence_sha256,
        evidence_class=row.evidence_class,  # type: ignore[arg-type]
    )
