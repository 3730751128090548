"""A clock that is set back: nothing is certified by it, and nothing waits for it."""

import io
import re
from datetime import timedelta

import pytest
from rich.console import Console

from fabric.errors import InputError, JudgedBadError
from paisoar.commands.validate import show_run
from tests.validation.test_repetitions import run
from validation.certificates.certify import certify, lacking
from validation.results.store import latest_run
from validation.times import utc_now


def test_a_run_that_ended_before_it_began_is_not_certified(fabric):
    """The clock is an hour back from the fifth step on."""

    def clock():
        return utc_now() - timedelta(hours=fabric.steps_carried >= 5)

    made = run(fabric, clock=clock)
    assert made.verdict == "PASS"
    with pytest.raises(JudgedBadError, match="before it began .*the clock was set back"):
        certify(fabric.site, made, reader=fabric.read_states)


def test_a_run_by_a_clock_that_ran_ahead_is_not_certified_until_then(fabric):
    made = run(fabric, clock=lambda: utc_now() + timedelta(hours=1))
    (line,) = lacking(fabric.site, made, utc_now())
    assert "which is in the future" in line


def test_after_a_run_of_the_future_the_next_says_so_and_is_named_for_certify(fabric):
    ahead = run(fabric, "preflight", clock=lambda: utc_now() + timedelta(hours=1))
    told = []
    made = run(fabric, on_event=told.append)
    assert any(f"run {ahead.id} began later than now" in event.text for event in told)
    out = io.StringIO()
    show_run(Console(file=out, width=300), made, fabric.site)
    assert re.search(rf"Next: paisoar certify -f \S+ --run {made.id}", out.getvalue())
    assert certify(fabric.site, made, reader=fabric.read_states)


def test_what_was_interrupted_by_a_clock_ahead_is_measured_anew(fabric):
    def stop(flows):
        if fabric.steps_carried == 8:
            raise KeyboardInterrupt

    fabric.on_carry = stop
    with pytest.raises(KeyboardInterrupt):
        run(fabric, clock=lambda: utc_now() + timedelta(hours=1))
    assert [suite.status for suite in latest_run(fabric.site).suites][:2] == ["complete"] * 2
    fabric.on_carry = lambda flows: None
    fabric.steps_carried = 0
    done = run(fabric, resume=True)
    # Suites of the future have no age; the steps of the one that had begun count.
    assert fabric.steps_carried == 3 + 3 + 5 + 5
    assert lacking(fabric.site, done, utc_now()) == []


def test_suites_of_more_than_a_day_ago_are_measured_anew(fabric):
    def stop(flows):
        if fabric.steps_carried == 8:
            raise KeyboardInterrupt

    fabric.on_carry = stop
    with pytest.raises(KeyboardInterrupt):
        run(fabric, clock=lambda: utc_now() - timedelta(hours=25))
    fabric.on_carry = lambda flows: None
    fabric.steps_carried = 0
    run(fabric, resume=True)
    assert fabric.steps_carried == 3 + 3 + 5 + 5


def test_a_run_of_the_future_that_is_complete_is_nothing_to_go_on_with(fabric):
    run(fabric, "preflight", clock=lambda: utc_now() + timedelta(hours=1))
    with pytest.raises(InputError, match="no interrupted run"):
        run(fabric, resume=True)
