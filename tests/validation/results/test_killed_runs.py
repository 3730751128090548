"""Killed in the middle of a suite: the next run goes on with every step that was over."""

import json
import multiprocessing
import os
import pickle
import signal

import pytest
from typer.testing import CliRunner

from fabric.errors import AccessError, InputError
from paisoar.cli import app
from tests.validation.fake import FakeFabric
from tests.validation.judgement.test_judgement import change_port, site_with
from tests.validation.test_extra_suites import LEAF
from validation.certificates.certify import certify, lacking
from validation.judgement.rejudge import disagreements
from validation.results.journal import Journal, read_running
from validation.results.prune import plan_pruning
from validation.results.store import Store, altered_evidence, latest_run, list_runs
from validation.run import run_suites
from validation.suites import SUITES
from validation.times import utc_now


@pytest.fixture
def fabric(tmp_path):
    return FakeFabric(site_with(tmp_path, soak_cycles=8))


def run(fabric, *suites, **options):
    return run_suites(
        fabric.site, suites or None, readers=fabric.readers(), probe=fabric.probe, **options
    )


def killed_in_step(fabric, step, *suites, **options):
    """Run these suites in a process that is killed in its n-th step; its counters stay moved."""
    counters = fabric.site.path.parent / "counters"
    child = os.fork()
    if not child:

        def kill(flows):
            if fabric.steps_carried == step:
                counters.write_bytes(pickle.dumps(fabric.values))
                os.kill(os.getpid(), signal.SIGKILL)

        fabric.on_carry = kill
        try:
            run(fabric, *suites, **options)
        finally:
            os._exit(3)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    fabric.values = pickle.loads(counters.read_bytes())
    return latest_run(fabric.site)


@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_goes_on_after_a_kill(fabric, suite):
    steps = len(SUITES[suite].plan(fabric.site).steps)
    stopped = killed_in_step(fabric, steps, suite)
    assert (stopped.status, stopped.suites) == ("interrupted", ())
    done = run(fabric, resume=True)
    assert fabric.steps_carried == 1  # all others were over
    assert (done.status, done.verdict) == ("complete", "PASS")
    assert dict(done.suite(suite).seen) == dict(done.suite(suite).expected)
    assert done.versions["goes on with"] == stopped.id
    assert disagreements(fabric.site, done) == []
    assert not list(done.folder.glob("*journal*"))
    assert read_running(done.folder) is None
    with pytest.raises(InputError, match="no interrupted run"):
        run(fabric, resume=True)


def test_a_killed_run_is_interrupted_and_one_that_is_at_work_is_running(fabric):
    stopped = killed_in_step(fabric, 2, "latency")
    seen = []

    def look(flows):
        with Store(fabric.site) as store:
            seen.append({run_id: status for run_id, (_, status) in store.begun().items()})
        seen.append({found.id: found.status for found in list_runs(fabric.site)})

    fabric.on_carry = look
    second = run(fabric, "preflight")
    assert seen
    assert all(each == {stopped.id: "interrupted", second.id: "running"} for each in seen)
    shown = CliRunner().invoke(app, ["runs", "list", "-f", str(fabric.site.path), "--json"])
    statuses = [found["status"] for found in json.loads(shown.stdout)["runs"]]
    assert statuses == ["interrupted", "complete"]
    assert [going.run_id for going in plan_pruning(fabric.site, keep=1).going] == [stopped.id]


def test_the_list_says_how_a_killed_run_goes_on(fabric):
    killed_in_step(fabric, 2, "latency")
    shown = CliRunner().invoke(app, ["runs", "list", "-f", str(fabric.site.path)])
    assert "interrupted" in shown.stdout
    assert "validate --resume" in shown.stdout
    run(fabric, resume=True)
    shown = CliRunner().invoke(app, ["runs", "list", "-f", str(fabric.site.path)])
    assert "validate --resume" not in shown.stdout


def test_suites_that_were_over_are_taken_over_and_the_whole_is_certified(fabric):
    stopped = killed_in_step(fabric, 8)  # preflight and latency have three steps each
    assert [suite.name for suite in stopped.suites] == ["preflight", "latency"]
    done = run(fabric, resume=True)
    assert [suite.name for suite in done.suites] == ["preflight", "latency", "bandwidth", "incast"]
    assert done.suites[:2] == stopped.suites
    assert fabric.steps_carried == 5 + 5
    assert altered_evidence(done) == ()
    assert lacking(fabric.site, done, utc_now()) == []
    assert certify(fabric.site, done, reader=fabric.read_states).id


def test_ctrl_c_takes_over_finished_suites_too(fabric):
    def stop(flows):
        if fabric.steps_carried == 8:
            raise KeyboardInterrupt

    fabric.on_carry = stop
    with pytest.raises(KeyboardInterrupt):
        run(fabric)
    fabric.on_carry = lambda flows: None
    done = run(fabric, resume=True)
    assert lacking(fabric.site, done, utc_now()) == []


def test_what_moved_between_two_suites_and_during_the_pause_counts(fabric):
    killed_in_step(fabric, 7)  # in bandwidth's first step
    fabric.values[(*LEAF, "rx_discards", None)] += 5
    done = run(fabric, resume=True)
    assert {c.id for c in done.failures} == {"bandwidth.loss"}


def test_a_run_that_was_killed_twice_has_the_steps_of_both(fabric):
    killed_in_step(fabric, 4, "soak", repeat=1)
    second = killed_in_step(fabric, 3, resume=True)
    assert len(Journal(second.folder, "soak").read()[0]) == 3 + 2
    done = run(fabric, resume=True)
    assert fabric.steps_carried == 3
    assert done.verdict == "PASS"


def test_a_run_that_goes_on_and_is_killed_before_its_first_step_loses_nothing(fabric):
    killed_in_step(fabric, 5, "soak")
    counters = fabric.values
    child = os.fork()
    if not child:
        fabric.on_states_read = lambda: os.kill(os.getpid(), signal.SIGKILL)
        run(fabric, resume=True)
        os._exit(3)
    os.waitpid(child, 0)
    fabric.values = counters
    done = run(fabric, resume=True)
    assert fabric.steps_carried == 4
    assert done.verdict == "PASS"


def test_a_refused_resume_leaves_the_interrupted_run_the_last_one(fabric):
    killed_in_step(fabric, 5, "soak")
    port = fabric.states["leaf1"]
    change_port(fabric, LEAF, pfc_priorities=())
    for _ in range(2):
        with pytest.raises(InputError, match="leaf1 changed since run"):
            run(fabric, resume=True)
    fabric.states["leaf1"] = port
    assert run(fabric, resume=True).verdict == "PASS"


def test_a_step_that_was_cut_off_while_it_was_written_is_sent_again(fabric):
    stopped = killed_in_step(fabric, 5, "soak")
    journal = Journal(stopped.folder, "soak")
    data = journal.path.read_bytes()
    journal.path.write_bytes(data[:-7])
    assert len(journal.read()[0]) == 3
    assert run(fabric, resume=True).verdict == "PASS"
    assert fabric.steps_carried == 5


@pytest.mark.parametrize("name", ["soak.journal", "soak.journal.parquet"])
@pytest.mark.parametrize("way", ["altered", "gone"])
def test_a_journal_that_is_not_what_was_written_is_refused_by_name(fabric, name, way):
    stopped = killed_in_step(fabric, 5, "soak")
    path = stopped.folder / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    if way == "gone":
        path.unlink()
    if (name, way) == ("soak.journal", "gone"):
        # Nothing says that the suite had begun: it is measured from its start.
        assert run(fabric, resume=True).verdict == "PASS"
        assert fabric.steps_carried == 8
        return
    with pytest.raises(InputError, match=r"soak\.journal") as error:
        run(fabric, resume=True)
    assert "without --resume" in error.value.advice
    assert list_runs(fabric.site) == (stopped,)


def test_finished_evidence_that_was_altered_is_refused(fabric):
    stopped = killed_in_step(fabric, 8)
    path = stopped.folder / "latency.flows.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"latency\.flows\.parquet.*not what was hashed"):
        run(fabric, resume=True)


def test_two_runs_at_once_are_refused_and_the_first_goes_on(fabric):
    refused = []

    def second(flows):
        if fabric.steps_carried == 2:
            with pytest.raises(AccessError, match=f"validated already .process {os.getpid()}"):
                run_suites(fabric.site, ["latency"], readers=fabric.readers(), probe=fabric.probe)
            refused.append(1)

    fabric.on_carry = second
    assert run(fabric, "bandwidth").verdict == "PASS"
    assert refused
    assert len(list_runs(fabric.site)) == 1


def test_a_run_that_is_at_work_is_not_taken_over(fabric):
    """From another process, as a second terminal would."""

    def ask(site_path, answer):
        other = FakeFabric(fabric.site)
        try:
            run(other, resume=True)
        except Exception as error:
            answer.put(type(error).__name__)

    def second(flows):
        if fabric.steps_carried == 2:
            context = multiprocessing.get_context("fork")
            answer = context.Queue()
            child = context.Process(target=ask, args=(fabric.site.path, answer))
            child.start()
            assert answer.get(timeout=60) == "AccessError"
            child.join()

    fabric.on_carry = second
    assert run(fabric, "bandwidth").verdict == "PASS"
