"""Killed at every write: what was there before is whole, and work goes on."""

import os
import shutil
import signal
import traceback
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from fabric.errors import JudgedBadError
from validation.certificates import certificate
from validation.certificates.certify import certify
from validation.results.prune import plan_pruning, prune
from validation.results.store import altered_evidence, list_runs
from validation.run import run_suites
from validation.times import utc_now
from validation.watch.reading import last_reading
from validation.watch.watcher import Watcher


def killed_at(number, work):
    """Carry out ``work`` in a child that is killed at its n-th write; False where it ended first.

    Before and after each renaming, removal, flush to disk and commit.
    """
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            assert os.WTERMSIG(status) == signal.SIGKILL
            return True
        assert os.WEXITSTATUS(status) == 0
        return False
    try:
        left = [number]

        def point(*_):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        def around(function):
            def called(*arguments, **options):
                point()
                result = function(*arguments, **options)
                point()
                return result

            return called

        for name in ("replace", "rename", "unlink"):
            setattr(Path, name, around(getattr(Path, name)))
        for name in ("fsync", "unlink", "rmdir"):
            setattr(os, name, around(getattr(os, name)))
        event.listen(Engine, "commit", point)
        event.listen(Engine, "after_cursor_execute", point)
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(3)


def every_point(work, after, step=1):
    """Kill at the 1st, (1 + step)-th, ... write; ``after`` looks at what each kill left."""
    number = 1
    while killed_at(number, work):
        after()
        number += step
    assert number > 1, "nothing was written"
    return number


def preflight(fabric):
    return run_suites(fabric.site, ["preflight"], readers=fabric.readers(), probe=fabric.probe)


@pytest.mark.slow
def test_a_killed_validation_leaves_earlier_runs_and_is_never_certified(fabric, measured):
    before = measured.to_json()

    def whole():
        runs = {run.id: run for run in list_runs(fabric.site)}
        assert runs[measured.id].to_json() == before
        assert altered_evidence(runs[measured.id]) == ()
        for run_id, run in runs.items():
            if run_id == measured.id:
                continue
            # What the database names is on the disk and is what was hashed.
            assert altered_evidence(run) == ()
            if run.status != "complete":
                with pytest.raises(JudgedBadError):
                    certify(fabric.site, run, reader=fabric.read_states)

    every_point(lambda: preflight(fabric), whole, step=3)
    assert preflight(fabric).verdict == "PASS"
    assert certify(fabric.site, measured, reader=fabric.read_states)


@pytest.mark.xdist_group("postgresql")
def test_a_validation_that_is_killed_leaves_whole_runs_on_postgresql_too(fabric, postgresql):
    first = preflight(fabric)
    before = first.to_json()

    def whole():
        runs = {run.id: run for run in list_runs(fabric.site)}
        assert runs[first.id].to_json() == before
        assert all(altered_evidence(run) == () for run in runs.values())
        assert [i for i, run in runs.items() if run.status == "running"] == []

    every_point(lambda: preflight(fabric), whole, step=9)
    assert preflight(fabric).verdict == "PASS"


def test_a_killed_pruning_removes_no_more_than_was_planned_and_is_ended_by_the_next(fabric):
    young = preflight(fabric)
    kept = [young]

    def again():
        kept[0] = preflight(fabric)

    def whole():
        runs = {run.id: run for run in list_runs(fabric.site)}
        newest = kept[0]
        assert runs[newest.id].to_json() == newest.to_json()
        assert altered_evidence(runs[newest.id]) == ()
        prune(fabric.site, plan_pruning(fabric.site, keep=1))
        assert [run.id for run in list_runs(fabric.site)] == [newest.id]
        folders = [path.name for path in newest.folder.parent.iterdir()]
        assert folders == [newest.id]
        again()

    again()
    every_point(lambda: prune(fabric.site, plan_pruning(fabric.site, keep=1)), whole, step=2)


def test_a_killed_watch_leaves_a_reading_that_is_whole_or_the_one_before(fabric, signed):
    def one_round():
        watcher = Watcher(fabric.site, readers=fabric.readers())
        watcher.conclude(watcher.read())

    one_round()

    def whole():
        assert last_reading(fabric.site, utc_now(), 3600).certificate_id == signed.id

    every_point(one_round, whole)


def test_a_killed_revocation_is_done_or_is_done_by_the_next_round(fabric, signed):
    fabric.states["leaf1"] = replace(fabric.states["leaf1"], firmware="2")
    folder = fabric.site.state_dir / "certificates"
    keys = fabric.site.state_dir / "keys"

    def restore():
        for kept, place in ((saved / "certificates", folder), (saved / "keys", keys)):
            shutil.rmtree(place)
            shutil.copytree(kept, place)

    saved = fabric.site.path.parent / "saved"
    shutil.copytree(folder, saved / "certificates")
    shutil.copytree(keys, saved / "keys")

    def one_round():
        watcher = Watcher(fabric.site, readers=fabric.readers())
        return watcher.conclude(watcher.read())

    def whole():
        assert certificate.show(fabric.site).reason in ("", "revoked")
        one_round()
        assert certificate.show(fabric.site).reason == "revoked"
        restore()

    every_point(one_round, whole)
