"""A device is blamed only after two partners, a cable before the device."""

from itertools import combinations

from fabric.topology import ClosShape, PortRef
from tests.sites import make_site
from tests.validation.fake import FakeFabric
from tests.validation.judgement.test_judgement import once, run
from validation.judgement.blame import culprits

A, B, C, D, E = (PortRef(f"host{n}", "ens1f0") for n in range(1, 6))


def rest(*failed):
    gone = {frozenset(pair) for pair in failed}
    return [pair for pair in combinations((A, B, C, D, E), 2) if frozenset(pair) not in gone]


def test_one_pair_blames_neither_of_its_ends():
    assert culprits([(A, B)], rest((A, B))) == ()
    assert culprits([(A, B), (B, A)], rest((A, B))) == ()  # both ways are one pair


def test_two_partners_that_do_well_elsewhere_blame_the_port_between():
    failed = [(A, B), (C, A)]
    (found,) = culprits(failed, rest(*failed))
    assert (found.port, found.failed_with) == (A, (B, C))
    assert found.passed_with == (D, E)
    assert found.sureness == "likely"


def test_a_port_that_fails_with_everybody_is_blamed_for_sure():
    failed = [(A, other) for other in (B, C, D, E)]
    (found,) = culprits(failed, rest(*failed))
    assert (found.port, found.sureness) == (A, "sure")


def test_two_bad_ports_are_both_found_and_their_partners_are_not():
    failed = [(A, o) for o in (B, C, D, E)] + [(B, o) for o in (C, D, E)]
    assert [found.port for found in culprits(failed, rest(*failed))] == [A, B]


def test_a_fabric_in_which_nothing_works_blames_nobody():
    everything = list(combinations((A, B, C, D, E), 2))
    assert culprits(everything, []) == ()


def slow_at(fabric, port):
    for other in fabric.site.topology.endpoints:
        fabric.latency_us[port, other] = fabric.latency_us[other, port] = 30.0


def test_failures_of_one_host_name_it_and_say_how_sure_that_is(fabric):
    slow_at(fabric, PortRef("host3", "ens1f0"))
    found = [c for c in run(fabric, "latency").all_checks if c.verdict == "FAIL"]
    (blame,) = [c for c in found if c.id == "latency.blame"]
    assert (blame.subject, blame.device, blame.port) == ("host3:ens1f0", "host3", "ens1f0")
    assert "failed with 3 of 3 partners, 3 of which did well with others (sure)" in blame.reason
    assert "look at this port and its host" in blame.reason
    assert {c.device for c in found if c.id == "latency.p99"} == {"host3"}


def test_one_slow_pair_names_no_device(fabric):
    fabric.latency_us[A, C] = 30.0
    (failure,) = [c for c in run(fabric, "latency").all_checks if c.verdict == "FAIL"]
    assert (failure.id, failure.device) == ("latency.p99", "")


def test_the_cable_is_named_where_both_of_its_ends_agree(tmp_path):
    fabric = FakeFabric(make_site(tmp_path, ClosShape(4, 2, 1)))
    slow_at(fabric, D)
    peer = fabric.site.topology.peer(D)

    def spoil(flow, tally):
        for end in (D, peer):
            tally[(*end, "link_down_events", None)] += 1
        fabric.spoil = lambda flow, tally: None

    fabric.spoil = spoil
    made = run(fabric, "latency")
    (blame,) = [c for c in made.all_checks if c.id == "latency.blame"]
    assert blame.subject == f"{peer} - {D}"
    assert "look at the cable: leaf2 Ethernet1/2 link_down_events moved by 1" in blame.reason
    # One end alone is not enough.
    once(fabric, (*D, "link_down_events", None), 1)
    (blame,) = [c for c in run(fabric, "latency").all_checks if c.id == "latency.blame"]
    assert blame.subject == str(D)
