"""The bench of provisioning: both ways end as intended, and are judged by their medians."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from fabric.errors import ToolError
from fabric.provisioning.bench import Case, Compared, compare, compare_all
from fabric.topology import ClosShape

SMALL = Case("a leaf and a host", ClosShape(1, 1, 0))


@pytest.mark.slow
def test_both_ways_do_all_that_is_intended():
    told = []
    row = compare(SMALL, 1, lambda what, done, of: told.append((what, done, of)))
    assert row.devices == 2
    assert row.commands > 50
    assert len(row.ours_s) == len(row.loop_s) == 1
    assert told == [
        ("a leaf and a host: playbooks", 0, 2),
        ("a leaf and a host: netmiko loop", 1, 2),
    ]


@pytest.mark.slow
def test_a_way_that_leaves_something_out_is_no_result(monkeypatch):
    monkeypatch.setattr("fabric.provisioning.bench._by_playbooks", lambda _site, _plan: None)
    with pytest.raises(ToolError, match="leaf1 is not as intended after the playbooks"):
        compare(SMALL, 1)


def test_the_verdict_is_that_of_the_medians():
    row = Compared("x", 24, 1, ours_s=(10.0, 11.0, 30.0), loop_s=(54.0, 56.0, 55.0))
    assert row.ratio == 5.0
    assert row.to_json()["verdict"] == "PASS"
    assert Compared("x", 24, 1, (11.1,), (55.0,)).to_json()["verdict"] == "FAIL"


@pytest.mark.parametrize(
    ("budget_s", "measured"),
    [(0, {"a": 1}), (25, {"a": 3}), (45, {"a": 3, "b": 2}), (1000, {"a": 3, "b": 3})],
)
def test_no_turn_begins_after_the_time_that_was_given(monkeypatch, budget_s, measured):
    """With a round of 10 s by a clock of its own."""
    now = [0.0]

    def compare(case, rounds, _on_step, again):
        done = 0
        while done < rounds and (not done or again()):
            now[0] += 10
            done += 1
        return Compared(case.name, 1, 1, (1.0,) * done, (5.0,) * done)

    monkeypatch.setattr("fabric.provisioning.bench.compare", compare)
    cases = [Case(name, ClosShape(1, 1, 0)) for name in "ab"]
    rows = compare_all(cases, 3, budget_s, clock=lambda: now[0])
    assert {row.case: row.to_json()["rounds"] for row in rows} == measured


@pytest.mark.slow
def test_a_further_round_is_left_out_where_the_time_is_over():
    row = compare(SMALL, 2, again=lambda: False)
    assert (len(row.ours_s), len(row.loop_s)) == (1, 1)


def _left_of(folder):
    """Processes whose temporary files are in this folder."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if str(folder) in " ".join(process.environ().values()):
                found.append(process)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_bench_that_is_ended_leaves_nothing_behind(tmp_path, number):
    bench = subprocess.Popen(
        [sys.executable, "-m", "paisoar", "bench", "fabric", "--only", "provision"],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    # The twin is up: its devices listen.
    while not list(tmp_path.glob("paisoar-bench-*/.paisoar/twin/inventory.json")):
        assert bench.poll() is None
        time.sleep(0.2)
    assert len(_left_of(tmp_path)) > 1
    bench.send_signal(number)
    _, said = bench.communicate()
    assert bench.returncode == 130, said
    assert "Nothing was left running" in said
    assert _left_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
