"""Taking old runs out: which may go, which may not and why, so that a kill does no harm.

A run's folder is renamed first, then its rows go in one transaction, then the folder.
Killed in between, what was begun is known by the folder's name, and the next pruning
ends it. Folders that merely no run names are left alone: they may be another database's.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from fabric.errors import GateRefusedError, InputError
from fabric.site import Site
from validation.certificates import certificate
from validation.certificates.validity import check
from validation.files import not_written
from validation.results.store import Store, run_dir, validation_dir
from validation.times import Clock, from_text, utc_now

RUN_ID = re.compile("val-[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}")
# A run that says it is running may be: a soak takes days.
_MAY_RUN = timedelta(days=7)


@dataclass(frozen=True)
class Going:
    """A run that would be removed; ``began`` is None where only its evidence is left."""

    run_id: str
    began: datetime | None
    size_bytes: int


@dataclass(frozen=True)
class Pruning:
    """What would be removed, and the runs that would be too but for a reason."""

    going: tuple[Going, ...]
    held: Mapping[str, str]
    kept: int

    @property
    def size_bytes(self) -> int:
        """Room on the disk that it frees."""
        return sum(run.size_bytes for run in self.going)


def plan_pruning(
    site: Site,
    *,
    older_than: timedelta | None = None,
    keep: int | None = None,
    clock: Clock = utc_now,
) -> Pruning:
    """Runs older than this, beyond the newest ``keep``; both where both are given.

    Never what a certificate stands on that is neither expired nor revoked, nor a run
    that may be at work, nor one whose evidence lies on another machine. InputError
    without any limit.
    """
    if older_than is None and keep is None:
        raise InputError(
            "nothing says which runs are old",
            advice="Use --older-than 30d, --keep 10, or both.",
        )
    now = clock()
    with Store(site) as store:
        begun, shared = store.begun(), store.shared
    standing = certified_runs(site, clock=clock)
    newest = list(begun)[-keep:] if keep else []
    begun_removals = _begun_removals(site)
    going, held = [], {}
    for run_id, (text, status) in begun.items():
        began = _time(text)
        if run_id in begun_removals:
            going.append(Going(run_id, began, _size_bytes(_going_dir(site, run_id))))
            continue
        young = older_than is not None and (began is None or now - began < older_than)
        if run_id in newest or young:
            continue
        folder = run_dir(site, run_id)
        elsewhere = shared and not folder.exists()
        if why := _held(run_id, standing, status, began, now, elsewhere=elsewhere):
            held[run_id] = why
        else:
            going.append(Going(run_id, began, _size_bytes(folder)))
    going += [
        Going(run_id, None, _size_bytes(_going_dir(site, run_id)))
        for run_id in begun_removals
        if run_id not in begun
    ]
    return Pruning(tuple(going), held, len(begun) - sum(run.began is not None for run in going))


def _held(
    run_id: str,
    standing: Mapping[str, str],
    status: str,
    began: datetime | None,
    now: datetime,
    *,
    elsewhere: bool,
) -> str:
    if run_id in standing:
        return f"certificate {standing[run_id]} stands on it"
    if status == "running" and (began is None or now - began < _MAY_RUN):
        return "it may be at work"
    if elsewhere:
        return "its evidence is not on this machine"
    return ""


def certified_runs(site: Site, *, clock: Clock = utc_now) -> dict[str, str]:
    """Runs that a certificate stands on, by the newest such; not expired or revoked ones."""
    found = {}
    for certificate_id in certificate.ids(site):
        try:
            read = certificate.read(site, certificate_id)
        except (GateRefusedError, InputError):
            continue
        try:
            check(site, read, clock())
        except GateRefusedError as error:
            if error.reason in ("expired", "revoked"):
                continue
        found[read.predicate.run.id] = certificate_id
    return found


def prune(
    site: Site, pruning: Pruning, on_done: Callable[[str], None] = lambda _: None
) -> tuple[str, ...]:
    """Remove what was planned, except what a certificate has come to stand on since.

    Returns the runs that are gone. InputError that names the folder which cannot be
    removed; what was removed before stays so.
    """
    gone = []
    with Store(site) as store:
        for run in pruning.going:
            if run.run_id in certified_runs(site):
                continue
            marked = _going_dir(site, run.run_id)
            try:
                with suppress(FileNotFoundError):
                    run_dir(site, run.run_id).rename(marked)
                store.remove(run.run_id)
                with suppress(FileNotFoundError):
                    shutil.rmtree(marked)
            except OSError as error:
                raise not_written(marked, error) from error
            gone.append(run.run_id)
            on_done(run.run_id)
    return tuple(gone)


def _going_dir(site: Site, run_id: str) -> Path:
    return run_dir(site, run_id).with_name(f".going-{run_id}")


def _begun_removals(site: Site) -> tuple[str, ...]:
    """Runs whose removal was begun and not ended."""
    folders = (validation_dir(site) / "runs").glob(".going-*")
    names = sorted(folder.name.removeprefix(".going-") for folder in folders)
    return tuple(name for name in names if RUN_ID.fullmatch(name))


def _time(text: str) -> datetime | None:
    try:
        return from_text(text)
    except ValueError:
        return None


def _size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*") if path.is_file())
