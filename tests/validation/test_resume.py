"""A run that was interrupted goes on where it stopped."""

import pytest

from fabric.errors import InputError
from tests.validation.fake import FakeFabric
from tests.validation.judgement.test_judgement import change_port, site_with
from tests.validation.test_extra_suites import LEAF
from validation.judgement.rejudge import disagreements
from validation.results.store import latest_run
from validation.run import run_suites


@pytest.fixture
def fabric(tmp_path):
    return FakeFabric(site_with(tmp_path, soak_cycles=20))


def run(fabric, *suites, **options):
    return run_suites(
        fabric.site, suites or None, readers=fabric.readers(), probe=fabric.probe, **options
    )


def interrupt_at(fabric, step):
    def stop(flows):
        if fabric.steps_carried == step:
            raise KeyboardInterrupt

    fabric.on_carry = stop
    with pytest.raises(KeyboardInterrupt):
        run(fabric, "soak")
    fabric.on_carry = lambda flows: None


def test_a_soak_goes_on_after_ctrl_c_with_the_cycles_that_it_had(fabric):
    interrupt_at(fabric, 13)
    stopped = latest_run(fabric.site)
    assert stopped.suite("soak").seen["steps"] == 12
    fabric.steps_carried = 0
    done = run(fabric, resume=True)
    assert fabric.steps_carried == 8  # twelve of twenty were done
    assert done.id != stopped.id
    assert done.versions["goes on with"] == stopped.id
    assert (done.status, done.verdict) == ("complete", "PASS")
    assert dict(done.suite("soak").seen) == dict(done.suite("soak").expected)
    assert disagreements(fabric.site, done) == []


def test_what_moved_before_and_during_the_pause_counts(fabric):
    interrupt_at(fabric, 13)
    fabric.values[(*LEAF, "link_down_events", None)] += 1
    done = run(fabric, "soak", resume=True)
    assert [c.id for c in done.failures] == ["soak.errors"]


def test_a_fabric_that_changed_meanwhile_is_refused(fabric):
    interrupt_at(fabric, 3)
    change_port(fabric, LEAF, pfc_priorities=())
    with pytest.raises(InputError, match="leaf1 changed since run val-"):
        run(fabric, resume=True)


def test_only_what_was_interrupted_can_go_on(fabric, tmp_path):
    with pytest.raises(InputError, match="no interrupted run"):
        run(fabric, resume=True)
    interrupt_at(fabric, 3)
    with pytest.raises(InputError, match="no interrupted run of mixed"):
        run(fabric, "mixed", resume=True)
    changed = FakeFabric(site_with(tmp_path, soak_cycles=30))
    with pytest.raises(InputError, match="was changed since run"):
        run(changed, resume=True)
    done = run(fabric, "soak")
    assert done.status == "complete"
    with pytest.raises(InputError, match="no interrupted run"):
        run(fabric, resume=True)


def test_a_second_interruption_keeps_both_parts(fabric):
    interrupt_at(fabric, 5)
    fabric.steps_carried = 0

    def stop(flows):
        if fabric.steps_carried == 4:
            raise KeyboardInterrupt

    fabric.on_carry = stop
    with pytest.raises(KeyboardInterrupt):
        run(fabric, resume=True)
    assert latest_run(fabric.site).suite("soak").seen["steps"] == 7
    fabric.on_carry = lambda flows: None
    assert run(fabric, resume=True).verdict == "PASS"
