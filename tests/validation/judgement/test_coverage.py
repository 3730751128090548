"""What had to be seen beside what was seen: nothing passes because nobody looked."""

from dataclasses import replace

import pytest

from tests.validation.judgement.test_judgement import failures, run, site_with
from validation.certificates.certify import lacking
from validation.judgement.judging import judged
from validation.judgement.rejudge import disagreements
from validation.results.kept import observation_of
from validation.suites import SUITES
from validation.times import utc_now

USUAL = ("preflight", "latency", "bandwidth", "incast")


def observed(fabric, name):
    made = run(fabric, name)
    result = made.suite(name)
    return observation_of(fabric.site, SUITES[name].plan(fabric.site), made, result)


def coverage(found):
    return {c.subject: c for c in found.checks if c.id.endswith(".coverage")}


@pytest.mark.parametrize("name", SUITES)
def test_a_sound_fabric_shows_everything_that_a_suite_looks_at(fabric, name):
    result = run(fabric, name).suite(name)
    assert dict(result.seen) == dict(result.expected)
    found = {c.subject: (c.verdict, c.value) for c in result.checks if c.id == f"{name}.coverage"}
    assert found == {what: ("PASS", count) for what, count in result.expected.items()}
    assert ("counters" in found) == (name != "tcp")


@pytest.mark.parametrize("name", USUAL)
def test_a_judgement_that_looks_at_nothing_does_not_pass(fabric, name):
    """All of its checks gone, and all of its traffic: coverage alone must fail it."""
    observation = observed(fabric, name)
    nothing = replace(
        observation, steps=tuple(replace(step, flows=()) for step in observation.steps)
    )
    blind = replace(SUITES[name], judge=lambda observation: ())
    found = coverage(judged(blind, nothing))
    assert "FAIL" in {check.verdict for check in found.values()}
    uncounted = replace(observation, before={}, after={})
    check = coverage(judged(blind, uncounted))["counters"]
    assert (check.verdict, check.value) == ("FAIL", None)
    assert check.reason.startswith(f"0 of {observation.plan.expected['counters']} counters")


def test_a_counter_that_nobody_misses_is_missed_by_coverage(fabric):
    """A device that stops showing one counter is named with its port."""
    observation = observed(fabric, "incast")
    after = dict(observation.after)
    gone = next(c for c in after["leaf1"].counters if c.name == "rx_packets")
    after["leaf1"] = replace(
        after["leaf1"], counters=tuple(c for c in after["leaf1"].counters if c != gone)
    )
    blind = replace(SUITES["incast"], judge=lambda observation: ())
    check = coverage(judged(blind, replace(observation, after=after)))["counters"]
    assert check.verdict == "FAIL"
    assert (check.device, check.port) == ("leaf1", gone.port)
    assert f"leaf1:{gone.port} rx_packets is not known" in check.reason


def test_what_another_check_names_is_not_failed_twice(fabric):
    fabric.hidden = {("leaf1", "queue_drops"), ("leaf1", "tx_discards")}
    assert {f.id for f in failures(fabric, "incast")} == {"incast.loss"}
    found = [c for c in run(fabric, "incast").all_checks if c.id == "incast.coverage"]
    said = {c.subject: (c.verdict, c.reason) for c in found}
    assert said["counters"][0] == "SKIP"
    assert "leaf1:Ethernet1/1 queue_drops is not known" in said["counters"][1]


def test_a_counter_that_a_device_cannot_have_is_a_skip_with_its_words(fabric):
    fabric.hidden = {("leaf1", "rx_crc_errors")}
    fabric.excuses["leaf1"] = ("rx_crc_errors: not counted on this platform",)
    made = run(fabric, *USUAL)
    result = made.suite("preflight")
    assert result.seen["counters"] == result.expected["counters"] - 3
    (check,) = [c for c in result.checks if c.subject == "counters"]
    assert check.verdict == "SKIP"
    assert "leaf1: rx_crc_errors: not counted on this platform" in check.reason
    # It withholds nothing: the profile can do without.
    assert lacking(fabric.site, made, utc_now()) == []


def test_a_profile_that_may_lose_does_not_count_what_was_sent_again(tmp_path):
    lossless = SUITES["incast"].plan(site_with(tmp_path))
    lossy = SUITES["incast"].plan(site_with(tmp_path, profile="lossy-tolerant"))
    assert lossless.expected["counters"] - lossy.expected["counters"] == 4 * 5


def test_coverage_is_judged_again_from_the_evidence(fabric):
    made = run(fabric, "latency")
    wrong = replace(made.suite("latency"), seen={**made.suite("latency").seen, "counters": 1})
    (line,) = disagreements(fabric.site, replace(made, suites=(wrong,)))
    assert "seen: stored" in line
