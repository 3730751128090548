"""Bandwidth and incast measured again and again: the median, its spread, how sure it is."""

import pytest

from fabric.errors import InputError
from fabric.topology import ClosShape
from tests.sites import make_site
from tests.validation.fake import FakeFabric
from tests.validation.test_extra_suites import HOST1, HOST2
from validation.certificates.certify import certify, lacking
from validation.judgement.rejudge import disagreements
from validation.results import frames
from validation.run import run_suites
from validation.times import utc_now


def run(fabric, *suites, **options):
    return run_suites(
        fabric.site, suites or None, readers=fabric.readers(), probe=fabric.probe, **options
    )


def by_turn(fabric, steps, shares, pair=(HOST1, HOST2)):
    """This share of a pair's rate in each repetition of a plan of so many steps."""

    def carry(flows):
        fabric.goodput = {pair: shares[(fabric.steps_carried - 1) // steps]}

    fabric.on_carry = carry


def check(made, name, subject):
    (found,) = [c for c in made.all_checks if (c.id, c.subject) == (name, subject)]
    return found


def test_one_bad_repetition_is_an_outlier_and_the_median_stands(fabric):
    by_turn(fabric, 6, (0.97, 0.96, 0.2, 0.98, 0.97))
    made = run(fabric, "bandwidth", repeat=5)
    found = check(made, "bandwidth.fraction", f"{HOST1} -> {HOST2}")
    assert (found.verdict, found.value) == ("PASS", 0.97)
    assert "median of 5, 0.200 to 0.980" in found.reason
    assert "outliers 0.200" in found.reason
    steady = check(made, "bandwidth.fraction", f"{HOST2} -> {HOST1}")
    assert (steady.verdict, steady.reason) == ("PASS", "")
    assert made.suite("bandwidth").seen["repetitions"] == 5
    assert made.verdict == "PASS"
    assert disagreements(fabric.site, made) == []


def test_a_median_below_the_limit_fails_and_says_how_sure_that_is(fabric):
    by_turn(fabric, 6, (0.7, 0.72, 0.68, 0.71, 0.69))
    found = check(run(fabric, "bandwidth", repeat=5), "bandwidth.fraction", f"{HOST1} -> {HOST2}")
    assert (found.verdict, found.value) == ("FAIL", 0.7)
    assert "median of 5, 0.680 to 0.720, 95 % sure that it is 0.680 to 0.720: sure" in found.reason


def test_a_median_that_might_have_gone_the_other_way_is_borderline_beside_pass_too(fabric):
    by_turn(fabric, 6, (0.85, 0.97, 0.88, 0.93, 0.91))
    found = check(run(fabric, "bandwidth", repeat=5), "bandwidth.fraction", f"{HOST1} -> {HOST2}")
    assert found.verdict == "PASS"
    assert found.reason.endswith("borderline")


def test_few_repetitions_say_so_and_one_is_said_to_be_one(fabric):
    by_turn(fabric, 6, (0.7, 0.8))
    found = check(run(fabric, "bandwidth", repeat=2), "bandwidth.fraction", f"{HOST1} -> {HOST2}")
    assert "median of 2, 0.700 to 0.800: too few" in found.reason
    fabric.steps_carried = 0
    found = check(run(fabric, "bandwidth"), "bandwidth.fraction", f"{HOST1} -> {HOST2}")
    assert "measured once" in found.reason


def test_shares_of_an_incast_are_judged_by_the_median_as_well(fabric):
    by_turn(fabric, 5, (0.97, 0.1, 0.97, 0.97, 0.97), (HOST2, HOST1))
    made = run(fabric, "incast", repeat=5)
    found = check(made, "incast.jain", f"all-to-host1 {HOST1}")
    assert found.verdict == "PASS"
    assert "outliers 0." in found.reason
    assert made.verdict == "PASS"
    fabric.steps_carried = 0
    once = check(run(fabric, "incast"), "incast.jain", f"all-to-host1 {HOST1}")
    assert once.verdict == "PASS"
    by_turn(fabric, 5, (0.1,) * 5, (HOST2, HOST1))
    fabric.steps_carried = 0
    found = check(run(fabric, "incast", repeat=5), "incast.jain", f"all-to-host1 {HOST1}")
    assert (found.verdict, found.device) == ("FAIL", "host2")


def test_a_repetition_that_is_missing_is_no_pass(fabric):
    def stop(flows):
        if fabric.steps_carried == 9:
            raise KeyboardInterrupt

    fabric.on_carry = stop
    with pytest.raises(KeyboardInterrupt):
        run(fabric, "bandwidth", repeat=3)
    fabric.on_carry = lambda flows: None
    fabric.steps_carried = 0
    done = run(fabric, resume=True)
    assert fabric.steps_carried == 10  # eight of eighteen were done
    assert dict(done.suite("bandwidth").seen) == dict(done.suite("bandwidth").expected)
    assert done.suite("bandwidth").repetitions == 3


def test_a_repeated_run_is_certified_with_the_number_of_its_repetitions(fabric):
    made = run(fabric, repeat=2)
    assert lacking(fabric.site, made, utc_now()) == []
    signed = certify(fabric.site, made, reader=fabric.read_states)
    covered = {(c.suite, c.what): (c.expected, c.seen) for c in signed.predicate.coverage}
    assert covered["bandwidth", "repetitions"] == (2, 2)
    assert ("latency", "repetitions") not in covered
    # A figure of a pair is one, however often it was measured.
    assert len(frames.bandwidth_frame(made)) == 12


def test_less_than_once_is_refused(fabric):
    with pytest.raises(InputError, match="0 times"):
        run(fabric, "bandwidth", repeat=0)


def test_many_to_few_are_judged_by_each_receivers_share(tmp_path):
    fabric = FakeFabric(make_site(tmp_path, ClosShape(6, 2, 1)))
    made = run(fabric, "incast")
    few = {c.subject: c for c in made.all_checks if c.subject.startswith("many-to-2 ")}
    assert set(few) == {"many-to-2 host1:ens1f0", "many-to-2 host4:ens1f0"}
    assert {c.verdict for c in few.values()} == {"PASS"}
    fabric.goodput = {(HOST2, HOST1): 0.05}
    bad = {(c.id, c.subject) for c in run(fabric, "incast").failures}
    assert ("incast.jain", "many-to-2 host1:ens1f0") in bad
    assert ("incast.jain", "many-to-2 host4:ens1f0") not in bad
