"""Sweeps: all points, in order, on processes here or on a Dask cluster."""

import os
import signal
import threading
import time

import pytest

from fabric.errors import InputError, ToolError
from fabric.sim import sweep
from fabric.sim.cases import Case, run_case
from fabric.sim.sweep import Workers
from fabric.sim.variants import Variants
from tests.fabric.sim.scenario import star
from tests.sites import make_site


def square(point):
    if point == 3:
        raise InputError("three is not allowed")
    return point * point, os.getpid()


def slow(point):
    time.sleep(0 if point < 2 else 30)
    return point


def check_squares(swept):
    assert not swept.partial
    assert [outcome.index for outcome in swept.outcomes] == list(range(8))
    for outcome in swept.outcomes:
        if outcome.index == 3:
            assert (outcome.value, outcome.error) == (None, "three is not allowed")
        else:
            assert outcome.value[0] == outcome.index**2
            assert outcome.error == ""


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_point_has_its_outcome_and_one_failure_hides_no_other(jobs):
    told = []
    with Workers(jobs=jobs) as workers:
        assert workers.count == jobs
        swept = workers.sweep(square, range(8), lambda done, total: told.append((done, total)))
    check_squares(swept)
    assert told == [(done, 8) for done in range(1, 9)]
    elsewhere = {o.value[1] != os.getpid() for o in swept.outcomes if o.value is not None}
    assert elsewhere == {jobs > 1}


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_dask_cluster_takes_the_points():
    from distributed import LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        Workers(cluster.scheduler_address) as workers,
    ):
        assert workers.count == 2
        check_squares(workers.sweep(square, range(8)))
        case = Case(star(4), "incast", 1, "packet", 2_000, 500)
        there = workers.sweep(run_case, [case]).outcomes[0].value
    here = run_case(case)
    assert there.goodput_bps == here.goodput_bps
    assert there.message_p99_us == here.message_p99_us


def test_no_scheduler_is_said(monkeypatch):
    monkeypatch.setattr(sweep, "_CONNECT_S", 1)
    with (
        pytest.raises(ToolError, match="tcp://127.0.0.1:1 does not answer"),
        Workers("tcp://127.0.0.1:1"),
    ):
        pass
    with pytest.raises(InputError, match="--dask nonsense://x"), Workers("nonsense://x"):
        pass


def test_ctrl_c_keeps_what_has_come_in():
    started = time.monotonic()

    def interrupt(done, total):
        if done == 2:
            threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

    with Workers(jobs=2) as workers:
        swept = workers.sweep(slow, range(6), interrupt)
        assert swept.partial
        assert [outcome.value for outcome in swept.outcomes] == [0, 1]
        assert time.monotonic() - started < 20
        again = workers.sweep(square, range(3))
    assert [outcome.value[0] for outcome in again.outcomes] == [0, 1, 4]


def test_variants_differ_in_what_was_set_and_leave_the_file_alone(tmp_path):
    site = make_site(tmp_path)
    before = site.path.read_bytes()
    variant = Variants(site).with_settings(
        {"intent.profiles.25G.kmin": "50KB", "intent.dcqcn.ai_rate_mbps": "20"}
    )
    assert variant.intent.profiles["25G"].kmin == 50_000
    assert variant.intent.profiles["100G"] == site.intent.profiles["100G"]
    assert variant.intent.dcqcn.ai_rate_mbps == 20
    assert variant.topology is site.topology
    assert site.path.read_bytes() == before


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("intent.profiles.25G.kmin", "1MB", "kmin"),
        ("intent.dcqcn.ai_speed", "20", "unknown key"),
        ("intent.profiles.25G.xoff", "90MB", "lossless buffers need"),
        ("profiles.25G.kmin", "50KB", "not a setting of the intent"),
        ("intent.profiles.25G.kmin.low", "1", "no settings of its own"),
        ("intent.dcqcn.ai_rate_mbps", "[", "not a YAML value"),
    ],
)
def test_a_setting_that_does_not_hold_is_named(tmp_path, key, value, words):
    with pytest.raises(InputError, match=words) as caught:
        Variants(make_site(tmp_path)).with_settings({key: value})
    assert key in str(caught.value)
