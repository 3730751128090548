"""NICs that count neither packets by priority nor retransmissions: Intel E810.

What they do not count is named, their switches are judged, and nothing passes because
nobody looked. Traffic is simulated; only SSH is left out.
"""

from dataclasses import replace

import pytest

from fabric.devices.irdma.family import NAMES
from fabric.sim.api import Flow, SimOptions
from fabric.sim.run import simulate, warm_up
from fabric.site import load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape, PortRef
from tests.sites import make_site
from tests.validation.test_simulated import SimulatedFabric
from validation.certificates.certify import certify
from validation.probes.sim import SimProbe
from validation.run import run_suites
from validation.traffic import Stream, application_tos

HOST1, HOST3 = PortRef("host1", "ens1f0"), PortRef("host3", "ens1f0")
LEAF = PortRef("leaf1", "Ethernet1/1")
ON_LATER_CHIPS = ("out_of_sequence", "packet_seq_err", "implied_nak_seq_err")
ON_LATER_CHIPS += ("local_ack_timeout_err", "rnr_nak_retry_err", "rx_icrc_errors")


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    warm_up()


@pytest.fixture
def e810(tmp_path):
    """Four hosts with E810 on two leaves, each device as it should be."""
    path = tmp_path / "fabric.yaml"
    shape = ClosShape(4, 2, 1)
    path.write_text(starter_yaml(shape, site="test", environment="twin", nics=["irdma"]))
    fabric = SimulatedFabric(load_site(path))
    said = [f"ens1f0: {name}: {why}" for name, why in NAMES.uncounted.items()]
    said += [f"ens1f0: {name}: hw_counters has no such" for name in ON_LATER_CHIPS]
    for host in fabric.site.topology.hosts:
        fabric.excuses[host] = tuple(said)
        fabric.hidden |= {(host, name) for name in (*NAMES.uncounted, *ON_LATER_CHIPS)}
    return fabric


def run(fabric, *suites):
    return run_suites(fabric.site, suites, readers=fabric.readers(), probe=fabric.probe)


def failed(made):
    return {(check.id, check.subject) for check in made.all_checks if check.verdict == "FAIL"}


def test_a_sound_fabric_passes_is_certified_and_says_what_was_not_counted(e810):
    made = run(e810)
    assert made.verdict == "PASS"
    checks = made.all_checks
    judged = {c.subject for c in checks if c.id == "preflight.priority" and c.verdict == "PASS"}
    assert "leaf1:Ethernet1/1 -> host1:ens1f0" in judged
    assert {"leaf1", "leaf2", "spine1"} <= judged
    skipped = {(c.id, c.subject) for c in checks if c.verdict == "SKIP"}
    for subject in ("host1:ens1f0 sent", "host1:ens1f0 received", "host1 drops"):
        assert ("preflight.uncounted", subject) in skipped
    assert ("incast.uncounted", "host1 retransmission") in skipped
    (marking,) = (c for c in checks if (c.id, c.subject) == ("preflight.marking", "host2:ens1f0"))
    assert "NCCL_IB_TC=106" in marking.reason
    assert not any(check.id.endswith((".priority", ".loss")) for check in skipped_only(checks))
    certify(e810.site, made, reader=e810.read_states)


def skipped_only(checks):
    return [check for check in checks if check.verdict == "SKIP"]


def test_a_sender_that_marks_its_rdma_otherwise_fails_at_the_switches(e810):
    e810.change(HOST1, nic=replace(nic_of(e810, HOST1), verbs_traffic_class=0))
    found = failed(run(e810, "preflight"))
    assert ("preflight.priority", "leaf1") in found
    assert ("preflight.priority", "leaf2:Ethernet1/1 -> host3:ens1f0") in found


def test_a_switch_that_counts_what_comes_in_by_priority_names_the_host(e810):
    for port in e810.site.topology.endpoints:
        e810.values[(*e810.site.topology.peer(port), "rx_prio_packets", 3)] = 0
    sound = run(e810, "preflight")
    judged = {c.subject for c in sound.all_checks if c.id == "preflight.priority"}
    assert sound.verdict == "PASS"
    assert f"{HOST3} -> leaf2:Ethernet1/1" in judged
    e810.change(HOST1, nic=replace(nic_of(e810, HOST1), verbs_traffic_class=0))
    bad = [c for c in run(e810, "preflight").failures if c.subject.startswith("host")]
    assert [(c.subject, c.device) for c in bad] == [(f"{HOST1} -> {LEAF}", "host1")]
    assert "0 of " in bad[0].reason
    assert "host1:ens1f0 sends RDMA with DSCP 0, not 26" in bad[0].reason


def test_rdma_cm_that_marks_otherwise_is_named_where_verbs_have_no_setting(e810):
    e810.values[(*LEAF, "rx_prio_packets", 3)] = 0
    e810.hidden.add(("leaf1", "tx_queue_packets"))
    nic = replace(nic_of(e810, HOST1), verbs_traffic_class=None, rdma_cm_tos=0)
    e810.change(HOST1, nic=nic)
    carried = e810.carry

    def unmarked(site, states, flows, options):
        result = carried(site, states, flows, options)
        e810.values[(*LEAF, "rx_prio_packets", 3)] = 0
        return result

    e810.carry = unmarked
    bad = [c for c in run(e810, "preflight").failures if c.subject == f"{HOST1} -> {LEAF}"]
    assert [c.device for c in bad] == ["host1"]
    assert "rdma_cm there marks RDMA with DSCP 0, not 26" in bad[0].reason


def nic_of(fabric, ref):
    return fabric.states[ref.device].port(ref.port).nic


def test_a_switch_that_loses_the_class_fails(e810):
    port = e810.states["leaf1"].port("Ethernet1/1")
    lost = tuple(0 if dscp == 26 else p for dscp, p in enumerate(port.dscp_to_priority))
    e810.change(LEAF, dscp_to_priority=lost)
    found = failed(run(e810, "preflight"))
    assert ("preflight.priority", "leaf1") in found
    assert ("preflight.priority", "leaf1:Ethernet1/2 -> host2:ens1f0") in found


def test_drops_at_a_switch_are_retransmissions_of_hosts_that_count_none(e810):
    e810.change(LEAF, pfc_priorities=())
    found = failed(run(e810, "incast"))
    assert ("incast.loss", "leaf1:Ethernet1/1") in found
    assert ("incast.retransmission", "host1") in found


def test_a_switch_that_does_not_count_queues_leaves_the_priority_unproven(e810):
    e810.hidden.add(("leaf1", "tx_queue_packets"))
    e810.excuses["leaf1"] = ("tx_queue_packets: this release counts none",)
    made = run(e810, "preflight")
    skipped = {c.subject for c in skipped_only(made.all_checks) if c.id == "preflight.priority"}
    assert "leaf1:Ethernet1/1 -> host1:ens1f0" in skipped
    assert "leaf1" in skipped


def test_a_switch_that_counts_drops_on_one_side_only_is_no_pass(e810):
    e810.hidden |= {("leaf1", "queue_drops"), ("leaf1", "tx_discards")}
    e810.excuses["leaf1"] = ("queue_drops, tx_discards: this release counts none",)
    made = run(e810, "incast")
    verdicts = {c.subject: c.verdict for c in made.all_checks if c.id == "incast.loss"}
    assert verdicts["leaf1"] == "SKIP"
    verdicts = {c.subject: c.verdict for c in made.all_checks if c.id == "incast.retransmission"}
    assert verdicts["host1"] == "SKIP"


def test_tests_mark_their_rdma_themselves_only_where_the_host_cannot(e810, tmp_path):
    assert application_tos(e810.site, HOST1) == 106
    probe = SimProbe(e810.site, e810.states, e810.carry)
    pair = Stream(((HOST1, HOST3),), message_bytes=1)
    flow = probe._flow(pair, HOST1, HOST3)
    assert (flow.dscp, flow.tos, flow.tos_back) == (26, 106, 106)
    other = probe._flow(replace(pair, role="default"), HOST1, HOST3)
    assert (other.tos, other.tos_back) == (None, None)
    (tmp_path / "mlx5").mkdir()
    mlx5 = SimulatedFabric(make_site(tmp_path / "mlx5"))
    assert application_tos(mlx5.site, HOST1) is None
    # A ConnectX that lost its setting is not helped: that is a fault to be seen.
    mlx5.change(HOST1, nic=replace(nic_of(mlx5, HOST1), verbs_traffic_class=None))
    flow = SimProbe(mlx5.site, mlx5.states, mlx5.carry)._flow(pair, HOST1, HOST3)
    assert (flow.dscp, flow.tos) == (0, None)


@pytest.mark.parametrize(
    ("own", "asked", "priority"), [(None, 106, 3), (106, 0, 3), (None, None, 0)]
)
def test_a_nic_without_a_setting_sends_what_the_application_asks(e810, own, asked, priority):
    e810.change(HOST1, nic=replace(nic_of(e810, HOST1), verbs_traffic_class=own))
    flow = Flow(HOST1, HOST3, 26, messages=1, tos=asked)
    result = simulate(e810.site, e810.states, [flow], SimOptions(200))
    sent = {
        c.priority
        for c in result.counters
        if (c.device, c.name) == ("leaf1", "tx_queue_packets") and c.port == "Ethernet1/49"
    }
    assert sent == {priority}
