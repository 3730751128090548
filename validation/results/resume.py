"""Going on with a run that was interrupted: its finished steps, and its counters before them.

The deltas of a suite that goes on reach from its first beginning to its end, the pause
included, so that nothing that moved meanwhile goes unseen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabric.counters import CounterSnapshot
from fabric.errors import InputError
from fabric.site import Site
from validation.certificates.fingerprint import Fingerprint
from validation.results.kept import interrupted
from validation.results.result import ValidationRun
from validation.results.store import latest_run
from validation.traffic import StepMeasure


@dataclass(frozen=True)
class Begun:
    """What an interrupted suite had: steps that ran, and every device's counters before."""

    steps: tuple[StepMeasure, ...]
    before: Mapping[str, CounterSnapshot]


@dataclass(frozen=True)
class Unfinished:
    """A run to go on with. ``suites`` are its unfinished ones; empty where none had begun.

    ``repeat`` is how often bandwidth and incast are measured.
    """

    run_id: str
    fabric: Fingerprint
    suites: Mapping[str, Begun]
    names: tuple[str, ...]
    repeat: int

    def check_fabric(self, now: Fingerprint) -> None:
        """InputError where the fabric is not the one that the run began on."""
        changed = self.fabric.changed(now)
        if changed:
            raise InputError(
                f"{', '.join(changed)} changed since run {self.run_id} was interrupted",
                key="--resume",
                advice="Start again without --resume: half a run says nothing of two fabrics.",
            )


def unfinished(site: Site, names: Sequence[str] | None = None) -> Unfinished:
    """The site's last run, where it was interrupted in one of these suites (any where None).

    Raises InputError where there is none, where the file or its criteria have changed since,
    and where its evidence is gone or altered.
    """
    run = latest_run(site)
    left = _left(run, names) if run is not None else ()
    if run is None or run.before is None or not left:
        wanted = f" of {', '.join(names)}" if names else ""
        raise InputError(
            f"site {site.name} has no interrupted run{wanted} to go on with",
            key="--resume",
            advice="Only the last run can go on, where Ctrl-C ended it: "
            "leave out --resume to start one.",
        )
    if run.site_sha256 != site.sha256:
        raise InputError(
            f"{site.path} was changed since run {run.id} was interrupted",
            file=site.path,
            key="--resume",
            advice="Start again without --resume.",
        )
    begun = {
        result.name: Begun(*interrupted(run, result))
        for result in run.suites
        if result.name in left and "begin" in result.files
    }
    repeat = max(result.repetitions for result in run.suites)
    return Unfinished(run.id, run.before, begun, left, repeat)


def _left(run: ValidationRun, names: Sequence[str] | None) -> tuple[str, ...]:
    if run.status != "partial":
        return ()
    open_ones = (result.name for result in run.suites if result.status != "complete")
    return tuple(name for name in open_ones if names is None or name in names)
