"""Each fault fails its own check, names device and port, and nothing passes vacuously."""

from dataclasses import replace

import numpy as np
import pytest

from fabric.qos import PortFacts
from fabric.site import load_site
from fabric.topology import PortRef
from tests.sites import write_site
from tests.validation.fake import FakeFabric
from validation.certificates.certify import certify
from validation.criteria import jain, payload_bps
from validation.run import run_suites

USUAL = ("preflight", "latency", "bandwidth", "incast")
HOST1 = PortRef("host1", "ens1f0")
HOST3 = PortRef("host3", "ens1f0")
LEAF = PortRef("leaf1", "Ethernet1/1")


def run(fabric, *suites):
    return run_suites(fabric.site, suites, readers=fabric.readers(), probe=fabric.probe)


def failures(fabric, *suites):
    return [check for check in run(fabric, *suites).all_checks if check.verdict == "FAIL"]


def change_port(fabric, ref, **values):
    state = fabric.states[ref.device]
    ports = tuple(replace(p, **values) if p.name == ref.port else p for p in state.ports)
    fabric.states[ref.device] = replace(state, ports=ports)


def change_nic(fabric, ref, **values):
    nic = fabric.states[ref.device].port(ref.port).nic
    change_port(fabric, ref, nic=replace(nic, **values))


def once(fabric, key, value):
    """Move one counter once, during the next flow only."""

    def spoil(flow, tally):
        tally[key] += value
        fabric.spoil = lambda flow, tally: None

    fabric.spoil = spoil


def site_with(tmp_path, **certify):
    path = write_site(tmp_path)
    text = path.read_text()
    for name, value in certify.items():
        old = next(line for line in text.splitlines() if line.strip().startswith(f"{name}:"))
        text = text.replace(old, f"  {name}: {value}")
    path.write_text(text)
    return load_site(path)


def test_a_sound_fabric_passes_everything_and_says_that_it_is_simulated(fabric):
    result = run(fabric)
    assert {check.verdict for check in result.all_checks} == {"PASS"}
    assert result.verdict == "PASS"
    assert {check.evidence_class for check in result.all_checks} == {"simulated"}
    assert all(check.to_json()["simulated"] for check in result.all_checks)
    assert all(len(check.evidence_sha256) == 64 for check in result.all_checks)


@pytest.mark.parametrize("suite", ["latency", "bandwidth", "incast", "preflight"])
def test_ingress_drops_name_port_priority_and_pfc(fabric, suite):
    change_port(fabric, LEAF, pfc_priorities=())
    once(fabric, (*LEAF, "rx_discards", None), 1234)
    (failure,) = failures(fabric, suite)
    assert failure.id == f"{suite}.loss"
    assert (failure.device, failure.port) == LEAF
    assert failure.reason.startswith("leaf1 Ethernet1/1: 1,234 packets dropped at ingress")
    assert "PFC is off there" in failure.reason


def test_drops_at_ingress_name_the_peer_that_does_not_listen(fabric):
    change_port(fabric, HOST1, pfc_priorities=())
    once(fabric, (*LEAF, "rx_discards", None), 9)
    reasons = [f.reason for f in failures(fabric, "incast") if f.id == "incast.loss"]
    assert "PFC is off at its peer host1:ens1f0" in reasons[0]


def test_per_priority_drops_are_preferred_and_named(fabric):
    once(fabric, (*HOST1, "rx_prio_discards", 3), 5)
    (failure,) = failures(fabric, "incast")
    assert "host1 ens1f0: 5 packets of priority 3 dropped at ingress" in failure.reason


def test_egress_drops_fail(fabric):
    once(fabric, ("spine1", "Ethernet1/2", "queue_drops", 3), 3)
    (failure,) = failures(fabric, "bandwidth")
    assert "spine1 Ethernet1/2: 3 packets of priority 3 dropped at egress" in failure.reason


def test_drops_within_the_allowance_pass(tmp_path):
    fabric = FakeFabric(site_with(tmp_path, max_drops=10))
    once(fabric, (*LEAF, "rx_discards", None), 10)
    assert failures(fabric, "incast") == []
    once(fabric, (*LEAF, "rx_discards", None), 11)
    assert [f.id for f in failures(fabric, "incast")] == ["incast.loss"]


def test_packets_over_the_mtu_name_the_port_and_its_mtu(fabric):
    change_port(fabric, LEAF, mtu_bytes=1500)

    def spoil(flow, tally):
        # As NX-OS counts: giants are among the input discards as well.
        for name in ("rx_mtu_drops", "rx_discards"):
            tally[(*LEAF, name, None)] += 16
        fabric.spoil = lambda flow, tally: None

    fabric.spoil = spoil
    found = {f.id: f for f in failures(fabric, "preflight")}
    assert set(found) == {"preflight.mtu", "preflight.loss"}
    assert "the MTU there is 1500, the intent says 9216" in found["preflight.loss"].reason
    assert (found["preflight.mtu"].device, found["preflight.mtu"].port) == LEAF


def test_a_pair_that_does_not_get_through_fails_reach(fabric):
    carry = fabric.carry

    def lossy(site, states, flows, options):
        result = carry(site, states, flows, options)
        times = tuple(
            times[:0] if (flow.source, flow.target) == (HOST1, HOST3) else times
            for flow, times in zip(result.flows, result.messages_us, strict=True)
        )
        return replace(result, messages_us=times)

    fabric.carry = lossy
    (failure,) = failures(fabric, "preflight")
    assert failure.subject == "host1:ens1f0 -> host3:ens1f0"
    assert failure.device == ""  # one pair blames neither end
    change_port(fabric, PortRef("spine1", "Ethernet1/2"), mtu_bytes=2000)
    reach = next(f for f in failures(fabric, "preflight") if f.id == "preflight.reach")
    assert reach.reason.endswith("spine1:Ethernet1/2 passes packets of 2,000 bytes only")
    assert reach.device == "spine1"

    change_port(fabric, PortRef("spine1", "Ethernet1/2"), mtu_bytes=9216)
    queues = fabric.states["host1"].port(HOST1.port).queues
    capped = tuple(
        replace(q, max_rate_bps=5 * 10**9) if q.traffic_class == 3 else q for q in queues
    )
    change_port(fabric, HOST1, queues=capped)
    reach = next(f for f in failures(fabric, "preflight") if f.id == "preflight.reach")
    assert reach.reason.endswith("host1:ens1f0 sends RDMA at 5 Gb/s at most")


def test_a_wrong_dscp_map_on_a_nic_fails_the_priority_check_by_counters(fabric):
    wrong = tuple(5 if dscp == 26 else p for dscp, p in enumerate([0] * 64))
    change_port(fabric, HOST3, dscp_to_priority=wrong)
    found = [f for f in failures(fabric, "preflight") if f.id == "preflight.priority"]
    assert {(f.device, f.port) for f in found} == {HOST3}
    assert any("most were in priority 5" in f.reason for f in found)
    assert all("DSCP 26 is mapped to priority 5 there, not 3" in f.reason for f in found)


def test_a_nic_without_a_traffic_class_sends_rdma_unmarked(fabric):
    change_nic(fabric, HOST3, verbs_traffic_class=None)
    found = {f.subject: f for f in failures(fabric, "preflight")}
    words = "host3:ens1f0 sets no traffic class for RDMA: it leaves with DSCP 0, not 26"
    assert found["host3:ens1f0 sent"].reason.endswith(words)
    # Its peers do as they should; what they miss is put down to the sender.
    assert found["host1:ens1f0 received"].reason.endswith(words)


def test_a_switch_that_loses_the_class_on_the_way_is_named(fabric):
    def misqueue(flow, tally):
        for key in [k for k in tally if k[0] == "spine1" and k[2] == "tx_queue_packets"]:
            tally[(*key[:3], 0)] += tally.pop(key)

    fabric.spoil = misqueue
    change_port(fabric, PortRef("spine1", "Ethernet1/1"), trust="none")
    failing = [f for f in failures(fabric, "preflight") if f.id == "preflight.priority"]
    assert [f.subject for f in failing] == ["spine1"]
    assert "trusts none, not DSCP" in failing[0].reason


def test_a_device_that_does_not_answer_fails_and_nothing_is_sent(fabric):
    fabric.dead.add("leaf2")
    result = run(fabric)
    assert fabric.steps_carried == 0
    assert "connection refused" in result.unread["leaf2"]
    readable = [c for c in result.suite("preflight").checks if c.id == "preflight.readable"]
    assert [c.device for c in readable if c.verdict == "FAIL"] == ["leaf2"]
    assert result.suite("incast").status == "partial"
    assert {c.verdict for c in result.all_checks if c.id == "incast.fraction"} == {"NOT_RUN"}
    assert result.verdict == "FAIL"


def test_a_cable_that_loses_packets_fails_at_the_receiving_end(fabric):
    def lose(flow, tally):
        if (key := ("spine1", "Ethernet1/1", "rx_packets", None)) in tally:
            tally[key] -= 500

    fabric.spoil = lose
    (failure,) = [f for f in failures(fabric, "incast") if f.id == "incast.cable"]
    assert failure.subject == "leaf1:Ethernet1/49 -> spine1:Ethernet1/1"
    assert "the cable or a transceiver loses packets" in failure.reason


def test_crc_errors_and_flaps_fail_preflight(fabric):
    once(fabric, (*LEAF, "rx_crc_errors", None), 2)
    (failure,) = failures(fabric, "preflight")
    assert (failure.id, failure.port) == ("preflight.errors", "Ethernet1/1")


def test_a_neighbour_that_is_not_the_cabled_one_fails_the_link(fabric):
    state = fabric.states["leaf1"]
    swapped = tuple(replace(n, peer="host2") if n.port == LEAF.port else n for n in state.neighbors)
    fabric.states["leaf1"] = replace(state, neighbors=swapped)
    (failure,) = failures(fabric, "preflight")
    assert (
        failure.reason == "leaf1:Ethernet1/1 is cabled to host2:ens1f0, the site says host1:ens1f0"
    )


def test_a_host_that_names_its_port_by_mac_is_no_stranger(fabric):
    state = fabric.states["leaf1"]
    by_mac = tuple(
        replace(n, peer=f"{n.peer}.example.net", peer_port="0c42.a1b2.c3d4")
        for n in state.neighbors
    )
    fabric.states["leaf1"] = replace(state, neighbors=by_mac)
    assert failures(fabric, "preflight") == []


def test_slow_pairs_fail_latency_and_slow_directions_fail_bandwidth(fabric):
    fabric.latency_us[HOST1, HOST3] = 12.0
    fabric.goodput[HOST3, HOST1] = 0.5
    found = {f.id: f for f in failures(fabric, "latency", "bandwidth")}
    assert found["latency.p99"].subject == "host1:ens1f0 -> host3:ens1f0"
    assert found["latency.p99"].value == 12.0
    assert found["bandwidth.fraction"].value == 0.5
    assert found["bandwidth.fraction"].limit == 0.9
    # Half of one direction is an eighth of what crosses the middle of four hosts.
    assert set(found) == {"latency.p99", "bandwidth.fraction", "bandwidth.bisection"}
    assert "95 % sure that it is 12.00 to 12.00: sure" in found["latency.p99"].reason
    assert "slowest is host3:ens1f0 -> host1:ens1f0" in found["bandwidth.bisection"].reason


def test_missing_answers_fail_latency_although_the_rest_is_quick(fabric):
    carry = fabric.carry
    fabric.carry = lambda *args: replace(
        carry(*args), messages_us=tuple(times[:-1] for times in carry(*args).messages_us)
    )
    assert {f.reason.rpartition(": ")[2] for f in failures(fabric, "latency")} == {
        "199 of 200 answers came"
    }


def test_unfair_shares_fail_the_incast_and_name_the_starved_sender(fabric):
    fabric.goodput.update({(HOST1, HOST3): 0.01})
    found = {f.id: f for f in failures(fabric, "incast")}
    assert found["incast.jain"].device == "host1"
    assert found["incast.fraction"].subject == "all-to-host3 host3:ens1f0"


@pytest.mark.parametrize(
    "name", ["out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "duplicate_request"]
)
def test_any_retransmission_fails_a_lossless_profile(fabric, name):
    once(fabric, (*HOST3, name, None), 1)
    (failure,) = failures(fabric, "incast")
    assert (failure.id, failure.device) == ("incast.retransmission", "host3")
    assert f"host3 ens1f0 {name} moved by 1" in failure.reason


def silence(fabric, *names):
    def spoil(flow, tally):
        for key in [k for k in tally if k[2] in names]:
            del tally[key]

    fabric.spoil = spoil


def test_no_marks_under_incast_fail_and_name_the_switch_without_ecn(fabric):
    state = fabric.states["leaf1"].port(LEAF.port)
    change_port(fabric, LEAF, queues=tuple(replace(q, ecn=None) for q in state.queues))

    def unmarked(flow, tally):
        if flow.target == HOST1:
            tally.pop((*LEAF, "ecn_marked_packets", 3), None)
            tally.pop((*HOST1, "np_cnp_sent", None), None)
            tally.pop((*flow.source, "rp_cnp_handled", None), None)

    fabric.spoil = unmarked
    found = {f.id: f for f in failures(fabric, "incast")}
    assert set(found) == {"incast.ecn", "incast.cnp"}
    assert (found["incast.ecn"].device, found["incast.ecn"].port) == LEAF
    assert "ECN is off on the RDMA queue of leaf1:Ethernet1/1" in found["incast.cnp"].reason


def test_marks_are_taken_from_the_receiver_where_the_switch_counts_none(fabric):
    fabric.hidden = {("leaf1", "ecn_marked_packets"), ("leaf2", "ecn_marked_packets")}
    assert failures(fabric, "incast") == []
    silence(fabric, "np_ecn_marked_packets")
    assert {f.subject for f in failures(fabric, "incast")} == {
        str(port) for port in fabric.site.topology.endpoints
    }


def test_cnps_that_nobody_handles_fail(fabric):
    dcqcn = fabric.states["host1"].port("ens1f0").nic.dcqcn
    change_nic(fabric, HOST1, dcqcn=replace(dcqcn, rp_priorities=()))
    silence(fabric, "rp_cnp_handled")
    (failure,) = failures(fabric, "incast")
    assert failure.id == "incast.cnp-handled"
    assert "host1:ens1f0 ignores CNPs for priority 3" in failure.reason


def test_too_much_pause_fails_the_dcqcn_profile(fabric):
    once(fabric, (*HOST1, "rx_pause_us", 3), 50_000)
    (failure,) = failures(fabric, "incast")
    assert failure.id == "incast.pause-ratio"
    assert failure.value == pytest.approx(50_000 / (5 * 80_000))


def test_pause_of_a_lossy_priority_fails(fabric):
    once(fabric, (*LEAF, "tx_pause_frames", 0), 4)
    (failure,) = failures(fabric, "incast")
    assert failure.id == "incast.pause-priority"
    assert "PFC pauses a class that must not be paused" in failure.reason


def test_pfc_only_profile_wants_pauses_and_no_notifications(tmp_path):
    fabric = FakeFabric(site_with(tmp_path, profile="lossless-pfc-only"))
    silence(fabric, "np_cnp_sent", "rp_cnp_handled", "np_ecn_marked_packets")
    (failure,) = failures(fabric, "incast")
    assert failure.id == "incast.pfc"

    def paused(flow, tally):
        tally[(*LEAF, "tx_pause_frames", 3)] += 1

    fabric.spoil = paused
    assert failures(fabric, "incast") == []


def test_a_profile_that_may_lose_is_certified_with_losses_where_flows_meet(tmp_path):
    def lose(flow, tally):
        tally[*LEAF, "queue_drops", 3] += 1
        tally[*HOST1, "packet_seq_err", None] += 1

    def made(profile):
        fabric = FakeFabric(site_with(tmp_path, profile=profile))
        alone = run(fabric, "preflight", "latency")
        fabric.spoil = lose
        return fabric, alone, run(fabric, "bandwidth", "incast")

    fabric, _, met = made("lossy-tolerant")
    assert met.failures == ()
    (lost,) = [c for c in met.all_checks if c.id == "incast.loss" and c.verdict == "SKIP"]
    assert "queue_drops" not in lost.reason
    assert "the profile lossy-tolerant lets it, where flows meet" in lost.reason
    # Nobody competes there: a loss is a fault whatever the profile.
    assert {c.id for c in failures(fabric, "latency")} >= {"latency.loss"}

    fabric, _, met = made("lossless-dcqcn")
    assert {"incast.loss", "incast.retransmission", "bandwidth.loss"} <= {
        c.id for c in met.failures
    }


def test_a_lossy_fabric_is_certified(tmp_path):
    fabric = FakeFabric(site_with(tmp_path, profile="lossy-tolerant"))
    met = []
    fabric.on_carry = lambda flows: met.append(len({flow.target for flow in flows}) < len(flows))

    def lose(flow, tally):
        if met[-1]:
            tally[*LEAF, "queue_drops", 3] += 1

    fabric.spoil = lose
    signed = certify(fabric.site, run(fabric, *USUAL), reader=fabric.read_states)
    assert any(met)
    assert signed.predicate.profile.name == "lossy-tolerant"


def test_missing_counters_fail_unless_the_device_says_why_and_then_skip(fabric):
    hidden = {("leaf1", "queue_drops"), ("leaf1", "tx_discards")}
    fabric.hidden = hidden
    found = [f for f in failures(fabric, "incast") if f.id == "incast.loss"]
    assert {f.device for f in found} == {"leaf1"}
    assert "nothing proves no loss" in found[0].reason
    fabric.excuses["leaf1"] = ("queue_drops: not counted on this platform",)
    skipped = [c for c in run(fabric, "incast").all_checks if c.verdict == "SKIP"]
    assert [(c.id, c.subject) for c in skipped] == [
        ("incast.loss", "leaf1"),
        ("incast.coverage", "counters"),
    ]
    assert "not counted on this platform" in skipped[0].reason


def test_pause_counters_that_a_nic_shows_only_with_pfc_on_are_no_zero(fabric):
    fabric.hidden = {("host1", "rx_pause_us")}
    (failure,) = failures(fabric, "incast")
    assert failure.id == "incast.pause-ratio"
    assert "only where PFC is on" in failure.reason


def test_counters_cleared_during_the_test_fail(fabric):
    run(fabric, "latency")

    def clear(flows):
        for key in fabric.values:
            if key[0] == "leaf1":
                fabric.values[key] = 0

    fabric.on_carry = clear
    found = [f for f in failures(fabric, "latency") if f.id == "latency.loss"]
    # What is zero on both sides was never moved by the reset; the rest is unknown.
    assert found == []
    fabric.on_carry = lambda flows: None
    fabric.values[(*LEAF, "rx_discards", None)] = 50
    fabric.on_carry = clear
    (failure,) = [f for f in failures(fabric, "latency") if f.id == "latency.loss"]
    assert "cleared or rebooted during the test" in failure.reason


@pytest.mark.parametrize(
    ("attribute", "values"), [("up_s", (86400.0, 20.0)), ("boot_id", ("aaaaaaaa", "bbbbbbbb"))]
)
def test_a_device_that_rebooted_during_a_suite_fails_it_by_name(fabric, attribute, values):
    shown = getattr(fabric, attribute)
    shown["leaf1"] = values[0]

    def reboot(flows):
        shown["leaf1"] = values[1]

    fabric.on_carry = reboot
    (failure,) = failures(fabric, "latency")
    assert (failure.id, failure.device) == ("latency.reboot", "leaf1")
    assert "leaf1: it rebooted between 1970-01-01T00:00:01Z and " in failure.reason
    assert failure.value == 1


def test_a_device_that_shows_no_uptime_is_skipped_with_the_reason(fabric):
    fabric.up_s["leaf1"] = None
    fabric.excuses["leaf1"] = ("uptime: 'show version' was not answered",)
    result = run(fabric, "latency")
    skips = [c for c in result.all_checks if c.id == "latency.reboot" and c.verdict == "SKIP"]
    assert [c.subject for c in skips] == ["leaf1"]
    assert "'show version' was not answered" in skips[0].reason
    assert result.verdict == "PASS"


def test_jain_and_the_wire():
    assert jain([1, 1, 1, 1]) == 1
    assert jain([1, 0, 0, 0]) == 0.25
    assert jain([0, 0]) == 0
    # 4096 of 4178 bytes on the wire are payload.
    assert payload_bps(25e9, 4096) == pytest.approx(24.509e9, rel=1e-4)


def take_down(fabric, ref, **facts):
    state = fabric.states[ref.device]
    fabric.states[ref.device] = replace(state, facts=(PortFacts(ref.port, **facts),))


def test_a_link_that_is_down_fails_although_packets_were_counted_on_it(fabric):
    take_down(fabric, LEAF, up=False, admin_up=False)
    (failure,) = failures(fabric, "preflight")
    assert failure.id == "preflight.link"
    assert (failure.device, failure.port) == tuple(LEAF)
    assert failure.reason.endswith("leaf1:Ethernet1/1 is shut")


def test_what_does_not_arrive_over_a_dead_link_names_the_port(fabric):
    take_down(fabric, HOST1, up=False, admin_up=False)
    carry = fabric.carry

    def dead(site, states, flows, options):
        result = carry(site, states, flows, options)
        cut = [HOST1 in (flow.source, flow.target) for flow in flows]
        return replace(
            result,
            goodput_bps=np.where(cut, 0.0, result.goodput_bps),
            messages_us=tuple(
                times[:0] if gone else times
                for times, gone in zip(result.messages_us, cut, strict=True)
            ),
        )

    fabric.carry = dead
    found = failures(fabric, "preflight", "latency", "bandwidth", "incast")
    for check in ("preflight.reach", "latency.p99", "bandwidth.fraction", "incast.fraction"):
        reasons = [f for f in found if f.id == check and "host1" in f.subject]
        assert reasons, check
        assert all("host1:ens1f0 is shut" in f.reason for f in reasons), check
        assert {(f.device, f.port) for f in reasons} == {tuple(HOST1)}, check
