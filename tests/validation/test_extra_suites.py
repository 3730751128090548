"""mixed, burst, collective and soak: what they send, and what makes each of them fail."""

import pytest

from fabric.errors import JudgedBadError
from fabric.topology import ClosShape, PortRef
from tests.sites import make_site
from tests.validation.fake import FakeFabric
from tests.validation.judgement.test_judgement import once, run, site_with
from validation.certificates.certify import certify, lacking
from validation.criteria import required_checks
from validation.judgement.rejudge import disagreements
from validation.planned import outline, rounds
from validation.results import frames
from validation.suites import SUITES
from validation.times import utc_now

EXTRA = ("mixed", "burst", "collective", "soak")
HOST1 = PortRef("host1", "ens1f0")
HOST2 = PortRef("host2", "ens1f0")
LEAF = PortRef("leaf1", "Ethernet1/1")


def bad(fabric, *suites):
    return [c for c in run(fabric, *suites).all_checks if c.verdict in ("FAIL", "NOT_RUN")]


@pytest.mark.parametrize("suite", EXTRA)
def test_a_sound_fabric_passes_and_is_judged_the_same_from_its_evidence(fabric, suite):
    made = run(fabric, suite)
    assert {check.verdict for check in made.all_checks} == {"PASS"}
    (result,) = made.suites
    assert dict(result.seen) == dict(result.expected)
    assert disagreements(fabric.site, made) == []


@pytest.mark.parametrize("suite", EXTRA)
def test_two_hosts_cannot_be_tested_or_are(tmp_path, suite):
    plan = SUITES[suite].plan(make_site(tmp_path, ClosShape(2, 1, 0)))
    assert bool(plan.impossible) == (suite in ("mixed", "burst"))
    assert bool(plan.steps) != bool(plan.impossible)


@pytest.mark.parametrize("suite", EXTRA)
def test_lost_rdma_fails_every_one_of_them_and_names_the_port(fabric, suite):
    once(fabric, ("spine1", "Ethernet1/2", "queue_drops", 3), 3)
    (failure,) = bad(fabric, suite)
    assert failure.id == f"{suite}.loss"
    assert (failure.device, failure.port) == ("spine1", "Ethernet1/2")


def test_each_class_presses_on_one_sender_of_the_other(site):
    plan = SUITES["mixed"].plan(site)
    names = [step.id.rpartition("-")[0] for step in plan.steps[:4]]
    assert names == ["rdma-alone", "tcp-alone", "tcp-presses", "rdma-presses"]
    shapes = [[(s.role, len(s.pairs)) for s in step.streams] for step in plan.steps[:4]]
    assert shapes == [
        [("roce", 1)],
        [("default", 1)],
        [("roce", 1), ("default", 2)],
        [("default", 1), ("roce", 2)],
    ]


def test_a_class_below_its_share_fails_in_the_direction_of_the_pressure(fabric):
    def squeeze(flows):
        pressed = {f.transport for f in flows} == {"rdma", "tcp"}
        lone = [f for f in flows if f.transport == "rdma"]
        fabric.goodput = {}
        if pressed and len(lone) == 1 and lone[0].target == HOST1:
            fabric.goodput[lone[0].source, HOST1] = 0.2

    fabric.on_carry = squeeze
    (failure,) = bad(fabric, "mixed")
    assert failure.id == "mixed.share"
    assert failure.subject == "tcp-presses-host1:ens1f0 RDMA"
    assert "ETS 50 %): leaf1:Ethernet1/1 serves queue 3 by ets with 50 %" in failure.reason
    assert (failure.device, failure.port) == LEAF


def test_a_host_whose_tcp_is_slow_by_itself_does_not_fail_the_fabric(fabric):
    """A kernel that brings a tenth of the wire alone cannot ask for half of it."""

    def slow(flows):
        fabric.goodput = {}
        tcp = [f for f in flows if f.transport == "tcp"]
        if len(tcp) == 1:
            fabric.goodput[tcp[0].source, tcp[0].target] = 0.1 if len(flows) == 1 else 0.195

    fabric.on_carry = slow
    assert bad(fabric, "mixed") == []


def test_tcp_that_travels_in_another_class_is_found_by_its_switch(fabric):
    def spoil(flow, tally):
        key = (*fabric.site.topology.peer(flow.target), "tx_queue_packets", 0)
        if flow.transport == "tcp" and flow.target == HOST1:
            tally[(*key[:3], 3)] += tally.pop(key)

    fabric.spoil = spoil
    found = bad(fabric, "mixed")
    assert [(f.id, f.device, f.port) for f in found] == [("mixed.class", *LEAF)]
    assert "it travels in another class" in found[0].reason


def test_pfc_for_tcp_fails_mixed(fabric):
    once(fabric, (*LEAF, "tx_pause_frames", 0), 5)
    assert [f.id for f in bad(fabric, "mixed")] == ["mixed.pause-priority"]


def test_a_lossy_queue_that_never_filled_is_a_skip(fabric):
    def spoil(flow, tally):
        for key in [key for key in tally if key[2] == "queue_drops"]:
            del tally[key]

    fabric.spoil = spoil
    made = run(fabric, "mixed")
    lossy = [c for c in made.all_checks if c.id == "mixed.lossy"]
    assert {c.verdict for c in lossy} == {"SKIP"}
    assert "TCP never filled queue 0 of leaf1:Ethernet1/1" in lossy[0].reason


def test_drops_of_all_classes_together_prove_nothing_beside_tcp(fabric):
    once(fabric, (*LEAF, "rx_discards", None), 9)
    checks = {(c.id, c.subject): c for c in run(fabric, "mixed").all_checks}
    assert checks["mixed.loss", "leaf1"].verdict == "SKIP"
    assert "TCP's may be among them" in checks["mixed.loss", "leaf1"].reason
    # Where nothing but RDMA is sent they are RDMA's.
    once(fabric, (*LEAF, "rx_discards", None), 9)
    assert [f.id for f in bad(fabric, "burst")] == ["burst.loss"]


def test_bursts_ask_for_half_of_the_wire_whatever_their_number(tmp_path):
    plan = SUITES["burst"].plan(make_site(tmp_path, ClosShape(16, 4, 2)))
    assert [s.id for s in plan.steps[:4]] == [f"micro-{n}-to-host1:ens1f0" for n in (2, 4, 8, 15)]
    for step in plan.steps:
        (stream,) = step.streams
        asked = len(stream.pairs) * stream.message_bytes * 8 * stream.messages_per_s
        assert asked / 25e9 == pytest.approx(0.49, abs=0.01)
        period_us = stream.gap_us + stream.message_bytes * 8e6 / 24.5e9
        assert step.duration_us == pytest.approx(50 * period_us, rel=0.01)


def test_bursts_that_do_not_come_through_fail(fabric):
    fabric.goodput[HOST2, HOST1] = 0.1
    failures = bad(fabric, "burst")
    assert {f.id for f in failures} == {"burst.fraction"}
    assert all(f.subject.endswith("-to-host1:ens1f0") for f in failures)
    assert "the slowest is host2:ens1f0" in failures[0].reason


def test_a_ring_is_as_fast_as_its_slowest_member(fabric):
    fabric.goodput[HOST1, HOST2] = 0.5
    (failure,) = bad(fabric, "collective")
    assert (failure.id, failure.subject) == ("collective.busbw", "ring")
    assert "host1:ens1f0 sends 12.25 Gbit/s, 50.0%" in failure.reason
    assert "all wait for it" in failure.reason


def test_a_soak_fails_for_one_bad_cycle_and_names_it_and_the_host(fabric):
    def dip(flows):
        fabric.goodput = {(HOST1, HOST2): 0.5} if fabric.steps_carried == 21 else {}

    fabric.on_carry = dip
    found = {f.id: f for f in bad(fabric, "soak")}
    assert set(found) == {"soak.cov", "soak.ratio", "soak.host"}
    assert "cycle21-ring, where host1:ens1f0 was slowest" in found["soak.ratio"].reason
    assert "1 outliers (sure)" in found["soak.ratio"].reason
    assert found["soak.host"].subject == "host1:ens1f0"
    assert found["soak.ratio"].device == ""  # one bad cycle blames nobody


def test_a_soak_that_slows_down_drifts(fabric):
    def tire(flows):
        fabric.goodput = {(f.source, f.target): 0.97 - 0.0015 * fabric.steps_carried for f in flows}

    fabric.on_carry = tire
    found = {f.id: f for f in bad(fabric, "soak")}
    assert set(found) == {"soak.drift"}
    assert "drifts by -9" in found["soak.drift"].reason


def test_a_link_that_flaps_fails_a_soak(fabric):
    once(fabric, (*LEAF, "link_down_events", None), 1)
    (failure,) = bad(fabric, "soak")
    assert (failure.id, failure.device) == ("soak.errors", "leaf1")
    assert "link_down_events moved by 1" in failure.reason


def test_a_certificate_asks_for_what_the_site_names(tmp_path):
    plain = FakeFabric(site_with(tmp_path))
    assert lacking(plain.site, run(plain), utc_now()) == []
    assert "mixed.share" not in required_checks(plain.site.document.certify)
    more = FakeFabric(site_with(tmp_path, extra_suites="[collective]"))
    usual = ("preflight", "latency", "bandwidth", "incast")
    without = run(more, *usual)
    with pytest.raises(JudgedBadError, match="suite collective was not run"):
        certify(more.site, without, reader=more.read_states)
    made = run(more)  # what the site names is what is run where nothing is named
    assert [suite.name for suite in made.suites] == [*usual, "collective"]
    signed = certify(more.site, made, reader=more.read_states)
    covered = {(c.suite, c.what): (c.expected, c.seen) for c in signed.predicate.coverage}
    assert covered["collective", "steps"] == (4, 4)


@pytest.mark.parametrize("suite", SUITES)
def test_an_outline_says_what_would_be_sent(tmp_path, suite):
    site = make_site(tmp_path, ClosShape(5, 1, 0))
    plan = SUITES[suite].plan(site)
    said = outline(plan, plan.traffic_us).to_json()
    assert said["rounds"] == len(plan.steps) == len(rounds(plan))
    assert said["concurrency"] >= 2
    assert said["hosts_at_once"] <= 5
    assert said["seconds"] == pytest.approx(sum(step.duration_us for step in plan.steps) / 1e6)
    assert said["sizes_bytes"]
    assert 0 < said["pairs"] <= 20


def test_a_twin_says_that_it_knows_nothing_of_tcp_stacks(fabric):
    made = run(fabric, "tcp")
    (said,) = [c for c in made.all_checks if c.id == "tcp.latency"]
    assert said.verdict == "SKIP"
    assert "no host's TCP stack" in said.reason
    assert made.verdict == "PASS"
    assert disagreements(fabric.site, made) == []
    assert len(frames.latency_frame(made)) == len(frames.tcp_latency_frame(made)) == 0
    plan = SUITES["tcp"].plan(fabric.site)
    assert plan.expected == {"pairs": 6}
    assert plan.note


def test_real_hosts_play_tcp_ping_pong_between_the_same_pairs(tmp_path):
    plan = SUITES["tcp"].plan(make_site(tmp_path, ClosShape(5, 1, 0), environment="site"))
    assert plan.expected == {"pairs": 10, "tcp pairs": 10}
    for rdma, tcp in zip(plan.steps[::2], plan.steps[1::2], strict=True):
        assert [s.role for s in (*rdma.streams, *tcp.streams)] == ["roce", "default"]
        assert list(rdma.pairs()) == list(tcp.pairs())
        hosts = [end.device for pair in tcp.pairs() for end in pair]
        assert len(set(hosts)) == len(hosts) == 4  # one of five has a bye
