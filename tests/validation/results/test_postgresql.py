"""The same results, certificates and prunings on PostgreSQL, and no password anywhere."""

import os
import subprocess
import sys
import threading
from datetime import timedelta

import pytest

from fabric.errors import PaisoarError
from tests.validation.results.postgresql import PASSWORD
from validation.certificates.certify import certify
from validation.gate import open_gate
from validation.results.database import DATABASE_VARIABLE
from validation.results.prune import plan_pruning, prune
from validation.results.store import Store, database_path, latest_run, list_runs, load_run
from validation.run import run_suites

pytestmark = pytest.mark.xdist_group("postgresql")


def test_a_run_comes_back_as_it_was_and_is_certified(fabric, postgresql):
    made = run_suites(fabric.site, readers=fabric.readers(), probe=fabric.probe)
    assert not database_path(fabric.site).exists()
    assert load_run(fabric.site, made.id).to_json() == made.to_json()
    signed = certify(fabric.site, latest_run(fabric.site), reader=fabric.read_states)
    passed = open_gate(fabric.site, ("host1",), reader=fabric.read_states)
    assert passed.certificate_id == signed.id


def test_pruning(fabric, postgresql):
    for _ in range(3):
        run_suites(fabric.site, ["preflight"], readers=fabric.readers(), probe=fabric.probe)
    first, second, third = (run.id for run in list_runs(fabric.site))
    assert prune(fabric.site, plan_pruning(fabric.site, keep=1)) == (first, second)
    assert [run.id for run in list_runs(fabric.site)] == [third]
    assert not (list_runs(fabric.site)[0].folder.parent / first).exists()


def test_runs_whose_evidence_is_elsewhere_stay(fabric, postgresql):
    made = run_suites(fabric.site, ["preflight"], readers=fabric.readers(), probe=fabric.probe)
    made.folder.rename(fabric.site.path.parent / "elsewhere")
    pruning = plan_pruning(fabric.site, older_than=timedelta(seconds=0))
    assert pruning.going == ()
    assert pruning.held == {made.id: "its evidence is not on this machine"}


def test_many_may_begin_at_the_same_moment(fabric, postgresql):
    errors = []

    def begin():
        try:
            with Store(fabric.site) as store:
                store.ids()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=begin) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_the_password_is_in_no_name_and_no_error(site, postgresql, monkeypatch):
    with Store(site) as store:
        assert PASSWORD not in store.name
        assert "127.0.0.1" in store.name
    port_gone = postgresql.replace("@127.0.0.1:", "@127.0.0.1:1")[: -len("x")]
    for url, exit_code in (
        (postgresql.replace("paisoar:", "stranger:"), 3),
        (postgresql + "gone", 3),
        (port_gone, 3),
        (f"postgresql://paisoar@127.0.0.1:1/x?password={PASSWORD}", 3),
        (f"postgresql://paisoar:{PASSWORD}@127.0.0.1:nonsense/x", 2),
    ):
        monkeypatch.setenv(DATABASE_VARIABLE, url)
        with pytest.raises(PaisoarError) as error:
            Store(site)
        assert PASSWORD not in str(error.value)
        assert error.value.exit_code == exit_code


def test_the_command_shows_the_runs_and_no_password(fabric, postgresql):
    made = run_suites(fabric.site, ["preflight"], readers=fabric.readers(), probe=fabric.probe)
    done = subprocess.run(
        [sys.executable, "-m", "paisoar", "runs", "list", "-f", fabric.site.path],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert made.id in done.stdout
    assert PASSWORD not in done.stdout + done.stderr
