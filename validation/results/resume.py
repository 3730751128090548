"""Going on with a run that was interrupted or killed: what it had finished, and begun.

Suites that were finished are part of the new run as they are, with their evidence, where
they ended within the last day; those that had begun go on after their last step. The deltas
of a suite that goes on reach from its first beginning to its end, and those of the next one
from the end of the one before, the pause included, so that nothing that moved meanwhile goes
unseen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fabric.counters import CounterSnapshot
from fabric.errors import InputError
from fabric.site import Site
from validation.certificates.fingerprint import Fingerprint
from validation.results.journal import Journal, read_running
from validation.results.kept import counters_of, interrupted, kept_files, snapshots_from
from validation.results.result import SuiteResult, ValidationRun
from validation.results.store import file_name, latest_run
from validation.times import Clock, utc_now
from validation.traffic import StepMeasure

# What is older is measured anew.
MAX_AGE = timedelta(hours=24)


@dataclass(frozen=True)
class Begun:
    """What an interrupted suite had: steps that ran, and every device's counters before."""

    steps: tuple[StepMeasure, ...]
    before: Mapping[str, CounterSnapshot]


@dataclass(frozen=True)
class Unfinished:
    """A run to go on with.

    ``suites`` are those that had begun, ``names`` all that are left, ``finished`` those that
    are taken over with their ``files`` and the run's ``states`` (empty where there are none).
    ``after`` holds the counters of the end of the last of these; ``repeat`` is how often
    bandwidth and incast are measured.
    """

    run_id: str
    fabric: Fingerprint
    suites: Mapping[str, Begun]
    names: tuple[str, ...]
    repeat: int
    finished: tuple[SuiteResult, ...]
    files: Mapping[str, bytes]
    states: bytes
    after: Mapping[str, CounterSnapshot]

    def check_fabric(self, now: Fingerprint) -> None:
        """InputError where the fabric is not the one that the run began on."""
        changed = self.fabric.changed(now)
        if changed:
            raise InputError(
                f"{', '.join(changed)} changed since run {self.run_id} was interrupted",
                key="--resume",
                advice="Start again without --resume: half a run says nothing of two fabrics.",
            )


def unfinished(
    site: Site, names: Sequence[str] | None = None, *, clock: Clock = utc_now
) -> Unfinished:
    """The site's last run, where it was interrupted in one of these suites (any where None).

    Nobody else may be at work on the site. Raises InputError where there is none, where the
    file or its criteria have changed since, and where its evidence is gone or altered.
    """
    run = latest_run(site)
    asked, repeat = _asked(run) if run is not None else ((), 1)
    fresh = _finished(run, clock()) if run is not None else ()
    done = {result.name for result in fresh}
    left = tuple(n for n in asked if n not in done and (names is None or n in names))
    if run is None or run.before is None or not left:
        wanted = f" of {', '.join(names)}" if names else ""
        raise InputError(
            f"site {site.name} has no interrupted run{wanted} to go on with",
            key="--resume",
            advice="Only the last run can go on, where Ctrl-C or a kill ended it: "
            "leave out --resume to start one.",
        )
    if run.site_sha256 != site.sha256:
        raise InputError(
            f"{site.path} was changed since run {run.id} was interrupted",
            file=site.path,
            key="--resume",
            advice="Start again without --resume.",
        )
    begun = {name: found for name in left if (found := _begun(run, name)) is not None}
    files = {
        file_name(result.name, kind): data
        for result in fresh
        for kind, data in kept_files(run, result).items()
    }
    return Unfinished(
        run_id=run.id,
        fabric=run.before,
        suites=begun,
        names=left,
        repeat=repeat,
        finished=fresh,
        files=files,
        states=files.get("states.json", b""),
        after=counters_of(run, fresh[-1])[1] if fresh else {},
    )


def _asked(run: ValidationRun) -> tuple[tuple[str, ...], int]:
    """Suites that a run which did not come to its end was to carry out, and how often."""
    if run.status == "partial" and run.finished_at is not None:
        if all(result.status == "complete" for result in run.suites):
            return (), 1
        repeat = max((result.repetitions for result in run.suites), default=1)
        return tuple(result.name for result in run.suites), repeat
    running = read_running(run.folder) if run.status in ("running", "interrupted") else None
    return (running.suites, running.repeat) if running is not None else ((), 1)


def _finished(run: ValidationRun, now: datetime) -> tuple[SuiteResult, ...]:
    """Suites whose result stands: measured to their end within the last day."""
    return tuple(
        result
        for result in run.suites
        if result.status == "complete"
        and "counters" in result.files
        and timedelta(0) <= now - result.finished_at <= MAX_AGE
    )


def _begun(run: ValidationRun, name: str) -> Begun | None:
    result = run.suite(name)
    if result is not None and "begin" in result.files:
        return Begun(*interrupted(run, result))
    journal = Journal(run.folder, name)
    found = journal.read()
    if found is None:
        return None
    steps, counters = found
    return Begun(steps, snapshots_from(counters, journal.counters_path)[0])
