"""Where runs are kept: a database for what is asked about, files for the evidence.

SQLite under ``.paisoar/validation/results.sqlite``; ``PAISOAR_DATABASE_URL``
names another database that SQLAlchemy knows. Evidence (Parquet, JSON) lies
under ``.paisoar/validation/runs/RUN/``, each file written whole or not at all.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Select, create_engine, delete, insert, select
from sqlalchemy.engine import Engine, RowMapping
from sqlalchemy.exc import (
    DBAPIError,
    IntegrityError,
    OperationalError,
    ProgrammingError,
    SQLAlchemyError,
)
from sqlalchemy.orm import Session

from fabric.errors import InputError, ToolError
from fabric.site import Site
from validation.criteria import Check
from validation.files import not_written, read_file, write_whole
from validation.results.atwork import is_gone
from validation.results.database import DATABASE_VARIABLE, first_line, open_database
from validation.results.journal import read_running
from validation.results.result import SuiteResult, ValidationRun
from validation.results.rows import (
    Base,
    CheckRow,
    RunRow,
    SuiteRow,
    check_row,
    damaged,
    run_facts,
    run_from,
    suite_row,
)
from validation.results.states import STATES_FILE, sha256
from validation.times import to_text

_MAX_LISTED = 5
_SUFFIXES = {"outline": "json", "transcripts": "json.gz"}
_READ_ONLY = "paisoar_read_only"

_RUN_COLUMNS = tuple(RunRow.__table__.columns)
_SUITE_COLUMNS = (SuiteRow.name, SuiteRow.status, SuiteRow.facts)
_CHECK_COLUMNS = tuple(c for c in CheckRow.__table__.columns if c.name not in ("id", "run_id"))


def validation_dir(site: Site) -> Path:
    """Where the site's results lie."""
    return site.state_dir / "validation"


def database_path(site: Site) -> Path:
    """Where the database lies, unless PAISOAR_DATABASE_URL names another."""
    return validation_dir(site) / "results.sqlite"


def run_dir(site: Site, run_id: str) -> Path:
    """Where one run's evidence lies."""
    return validation_dir(site) / "runs" / run_id


class Store:
    """The results of one site. Use as a context manager; closing frees the database.

    ``name`` is the database's file, or its URL without a password.
    """

    def __init__(self, site: Site, url: str | None = None) -> None:
        self.site = site
        url = url or os.environ.get(DATABASE_VARIABLE)
        self.name, self._engine = open_database(url) if url else _own(site)
        with self._failures():
            if not _is_read_only(self._engine):
                self._create()

    def _create(self) -> None:
        try:
            Base.metadata.create_all(self._engine)
        except (ProgrammingError, IntegrityError, OperationalError):
            # Another process made the same tables at the same moment; now they are there.
            Base.metadata.create_all(self._engine)

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

    @property
    def shared(self) -> bool:
        """Whether the database may have runs whose evidence lies on another machine."""
        return self._engine.dialect.name != "sqlite"

    def write_file(self, run_id: str, name: str, data: bytes) -> str:
        """Keep one file of evidence; returns its SHA-256. InputError where that fails."""
        write_whole(run_dir(self.site, run_id) / name, data)
        return sha256(data)

    def save(self, run: ValidationRun) -> None:
        """Write what is known of a run as a whole, in one transaction; its suites stay."""
        with self._session() as session:
            row = session.get(RunRow, run.id)
            if row is None:
                row = RunRow(id=run.id, site=run.site, started_at=to_text(run.started_at))
                session.add(row)
            row.status = run.status
            row.finished_at = to_text(run.finished_at) if run.finished_at else None
            row.facts = run_facts(run)
            session.flush()
            session.execute(delete(CheckRow).where(CheckRow.run_id == run.id, CheckRow.suite == ""))
            self._add_checks(session, run.id, "", run.checks)

    def add_suite(self, run_id: str, place: int, suite: SuiteResult) -> None:
        """Write the result of a suite, the ``place``-th of its run, in one transaction."""
        with self._session() as session:
            session.add(suite_row(run_id, place, suite))
            self._add_checks(session, run_id, suite.name, suite.checks)

    @staticmethod
    def _add_checks(session: Session, run_id: str, suite: str, checks: Sequence[Check]) -> None:
        if checks:
            session.execute(insert(CheckRow), [check_row(run_id, suite, c) for c in checks])

    def ids(self) -> tuple[str, ...]:
        """Runs of this site, the oldest first."""
        with self._session() as session:
            query = select(RunRow.id).where(RunRow.site == self.site.name)
            return tuple(map(str, session.scalars(query.order_by(RunRow.started_at))))

    def begun(self) -> dict[str, tuple[str, str]]:
        """When each run of this site began, as stored, and its status; the oldest first."""
        with self._session() as session:
            query = select(RunRow.id, RunRow.started_at, RunRow.status)
            rows = session.execute(
                query.where(RunRow.site == self.site.name).order_by(RunRow.started_at)
            )
            found = {str(run_id): (str(at), str(status)) for run_id, at, status in rows}
        return {
            run_id: (at, "interrupted" if self._ended(run_id, status) else status)
            for run_id, (at, status) in found.items()
        }

    def _ended(self, run_id: str, status: str) -> bool:
        """Whether a run that is stored as running has lost its process."""
        if status != "running":
            return False
        running = read_running(run_dir(self.site, run_id))
        return running is not None and running.process is not None and is_gone(running.process)

    def remove(self, run_id: str) -> None:
        """Take a run out of the database, whole or not at all; its evidence stays on disk."""
        with self._session() as session:
            session.execute(delete(CheckRow).where(CheckRow.run_id == run_id))
            session.execute(delete(SuiteRow).where(SuiteRow.run_id == run_id))
            session.execute(
                delete(RunRow).where(RunRow.id == run_id, RunRow.site == self.site.name)
            )

    def load(self, run_id: str) -> ValidationRun:
        """One run, every field of it validated.

        Raises InputError where this site has none of that name, and where a field
        is not of the form in which it was written.
        """
        runs = self._rows(select(*_RUN_COLUMNS).where(RunRow.id == run_id), "runs", run_id)
        if not runs or runs[0]["site"] != self.site.name:
            ids = self.ids()
            raise InputError(
                f"site {self.site.name} has no validation run {run_id!r}",
                advice=f"There are: {', '.join(ids[-_MAX_LISTED:])}."
                if ids
                else "`paisoar validate` makes one.",
            )
        suites = select(*_SUITE_COLUMNS).where(SuiteRow.run_id == run_id).order_by(SuiteRow.place)
        checks = select(*_CHECK_COLUMNS).where(CheckRow.run_id == run_id).order_by(CheckRow.id)
        run = run_from(
            self.name,
            run_dir(self.site, run_id),
            runs[0],
            self._rows(suites, "suites", run_id),
            self._rows(checks, "checks", run_id),
        )
        return replace(run, status="interrupted") if self._ended(run.id, run.status) else run

    def _rows(self, query: Select[Any], table: str, run_id: str) -> Sequence[RowMapping]:
        with self._session() as session:
            try:
                return session.execute(query).mappings().all()
            except (ValueError, TypeError, RecursionError) as error:
                # The only column that is decoded while it is fetched.
                raise damaged(self.name, table, run_id, "facts", f"no JSON: {error}") from error

    @contextmanager
    def _session(self) -> Iterator[Session]:
        with self._failures(), Session(self._engine) as session, session.begin():
            yield session

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Say where the database is; a file that is wrong or full is no fault of a tool."""
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            cause = (isinstance(error, DBAPIError) and error.orig) or error
            if isinstance(cause, sqlite3.Error):
                raise InputError(
                    f"the results database cannot be used: {cause}",
                    file=self.name,
                    advice="Earlier results are kept as they are. Look at the permissions of the "
                    "file and its folder and at the room on the disk; a file that is no database "
                    "has to be moved away.",
                ) from error
            raise ToolError(
                f"the results database {self.name} cannot be used: {first_line(cause)}",
                advice=f"{DATABASE_VARIABLE} names it: look whether that server runs, can be "
                "reached from here and lets this user in; unset it for SQLite.",
            ) from error


def latest_run(site: Site) -> ValidationRun | None:
    """The newest run of a site, whatever its status; None where there is none."""
    with Store(site) as store:
        ids = store.ids()
        return store.load(ids[-1]) if ids else None


def run_before(site: Site, run: ValidationRun) -> ValidationRun:
    """The newest complete run that began before this one. InputError where there is none."""
    with Store(site) as store:
        begun = store.begun()
        began = to_text(run.started_at)
        ids = [name for name, (at, status) in begun.items() if at < began and status == "complete"]
        if not ids:
            raise InputError(
                f"site {site.name} has no complete run before {run.id}",
                key="--against",
                advice="`paisoar runs list` names the runs that there are.",
            )
        return store.load(ids[-1])


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
                good = sha256(read_file(path)) == digest
            except OSError:
                good = False
            if not good:
                bad.append(str(path.relative_to(run.folder)))
    return tuple(dict.fromkeys(bad))


def file_name(suite: str, kind: str) -> str:
    """Where a kind of evidence lies within the run's folder; states are the whole run's."""
    if kind == "states":
        return STATES_FILE
    return f"{suite}.{kind}.{_SUFFIXES.get(kind, 'parquet')}"


def _own(site: Site) -> tuple[str, Engine]:
    """The site's own database and its path; only to read where nothing can be written."""
    folder, path = validation_dir(site), database_path(site)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_written(folder, error) from error
    if os.access(folder, os.W_OK) or not path.exists() or _unfinished(path):
        return open_database(URL.create("sqlite", database=str(path)))
    # SQLite keeps files beside a database even to read it, unless nobody can write to it.
    uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(uri, uri=True))
    return str(path), engine.execution_options(**{_READ_ONLY: True})


def _unfinished(path: Path) -> bool:
    """Whether writes wait beside the database to be taken over into it."""
    wal = path.with_name(f"{path.name}-wal")
    return wal.exists() and wal.stat().st_size > 0


def _is_read_only(engine: Engine) -> bool:
    return bool(engine.get_execution_options().get(_READ_ONLY))
