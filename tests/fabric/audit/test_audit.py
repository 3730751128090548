"""Every rule sees its own fault, and none sees anything on a fabric that is right."""

from dataclasses import replace

import pytest

from fabric.audit import audit, rules
from fabric.intended import intended_qos
from fabric.qos import Neighbor, Scheduler
from fabric.topology import PortRef
from tests.sites import make_site

LEAF_PORT = "Ethernet1/1"


@pytest.fixture
def site(tmp_path):
    return make_site(tmp_path)


@pytest.fixture
def intended(site):
    return {device: intended_qos(site, device) for device in site.devices}


@pytest.fixture
def states(site, intended):
    """What a device shows of itself when it does what is intended."""
    states = {}
    for name, state in intended.items():
        if state.kind == "switch":
            neighbors = tuple(
                Neighbor(port.port, *site.topology.peer(port))
                for port in site.topology.ports_of[name]
            )
            state = replace(state, saved=True, neighbors=neighbors, config_sha256="a" * 64)
        states[name] = state
    return states


def with_port(state, name, **changes):
    ports = tuple(replace(p, **changes) if p.name == name else p for p in state.ports)
    return replace(state, ports=ports)


def with_nic(state, **changes):
    (port,) = state.ports
    return replace(state, ports=(replace(port, nic=replace(port.nic, **changes)),))


def wrong_dscp(port, dscp, priority):
    values = list(port.dscp_to_priority)
    values[dscp] = priority
    return tuple(values)


def queue_changed(port, traffic_class, **changes):
    return tuple(
        replace(q, **changes) if q.traffic_class == traffic_class else q for q in port.queues
    )


def leaf(change):
    return "leaf1", LEAF_PORT, lambda s: with_port(s, LEAF_PORT, **change(s.port(LEAF_PORT)))


def nic(**changes):
    return "host1", "ens1f0", lambda s: with_nic(s, **changes)


FAULTS = {
    "port-missing": ("leaf1", LEAF_PORT, lambda s: replace(s, ports=s.ports[1:])),
    "pfc": leaf(lambda p: {"pfc_priorities": ()}),
    "trust": leaf(lambda p: {"trust": "pcp"}),
    "dscp-map": leaf(lambda p: {"dscp_to_priority": wrong_dscp(p, 26, 0)}),
    "class-map": leaf(lambda p: {"priority_to_class": (0, 1, 2, 0, 4, 5, 6, 7)}),
    "mtu": leaf(lambda p: {"mtu_bytes": 1500, "class_mtu_bytes": (1500,) * 8}),
    "ecn": leaf(lambda p: {"queues": queue_changed(p, 3, ecn=None)}),
    "scheduler": leaf(lambda p: {"queues": queue_changed(p, 6, scheduler=Scheduler("ets", 5))}),
    "buffer": leaf(lambda p: {"ingress_buffers": ()}),
    "link-pause": leaf(lambda p: {"link_pause": True}),
    "watchdog": leaf(lambda p: {"watchdog": None}),
    "dcbx": nic(dcbx="firmware"),
    "cable-length": nic(cable_m=100),
    "tos": nic(rdma_cm_tos=26),
    "dcqcn": nic(dcqcn=None),
    "persistence": nic(persistent=False),
    "unsaved": ("leaf1", "", lambda s: replace(s, saved=False)),
    "cabling": (
        "leaf1",
        LEAF_PORT,
        lambda s: replace(s, neighbors=(Neighbor(LEAF_PORT, "host2", "ens1f0"), *s.neighbors[1:])),
    ),
}


def test_a_fabric_that_does_what_is_intended_has_no_finding(site, states, intended):
    report = audit(site, states, intended, baseline=states)
    assert report.clean
    assert report.skipped == ()


@pytest.mark.parametrize("rule", FAULTS)
def test_one_fault_is_found_by_its_own_rule_alone_and_on_the_right_port(
    site, states, intended, rule
):
    device, port, change = FAULTS[rule]
    states[device] = change(states[device])
    report = audit(site, states, intended)
    assert [(f.rule, f.device, f.port) for f in report.findings] == [(rule, device, port)]
    assert report.findings[0].fix


def test_every_rule_but_the_two_of_other_tests_has_its_fault_here():
    assert {rule.id for rule in rules()} - set(FAULTS) == {"drift", "unread"}


def test_a_pfc_finding_quotes_both_ends_of_the_cable(site, states, intended):
    states["leaf1"] = with_port(states["leaf1"], LEAF_PORT, pfc_priorities=())
    (finding,) = audit(site, states, intended).findings
    peer = site.topology.peer(PortRef("leaf1", LEAF_PORT))
    assert finding.evidence == (
        f"leaf1:{LEAF_PORT}: PFC on none",
        f"{peer}: PFC on 3",
    )


def test_one_cause_on_many_ports_is_one_row(site, states, intended):
    queues = queue_changed(states["leaf1"].port(LEAF_PORT), 3, ecn=None)
    state = states["leaf1"]
    for port in state.ports:
        state = with_port(state, port.name, queues=queues)
    states["leaf1"] = state
    (finding,) = audit(site, states, intended).findings
    assert finding.port == ", ".join(port.name for port in state.ports)


def test_a_change_after_certification_is_drift_even_where_no_rule_minds_it(site, states, intended):
    baseline = dict(states)
    states["leaf2"] = replace(states["leaf2"], config_sha256="b" * 64)
    (finding,) = audit(site, states, intended, baseline=baseline).findings
    assert (finding.rule, finding.device) == ("drift", "leaf2")


def test_what_a_device_does_not_show_is_a_skip_and_no_pass(site, states, intended):
    states["leaf1"] = replace(states["leaf1"], unread=("watchdog times",), neighbors=None)
    report = audit(site, states, intended)
    assert {(skip.rule, skip.reason) for skip in report.skipped} == {
        ("unread", "watchdog times"),
        ("cabling", "no LLDP table was shown"),
    }


def test_a_setting_that_a_nic_does_not_show_is_not_called_wrong(site, states, intended):
    host = next(name for name, state in states.items() if state.kind == "host")
    port = states[host].ports[0]
    facts = (
        "DCBX mode",
        "cable length",
        "rdma_cm TOS",
        "verbs traffic class",
        "DCQCN parameters timer",
    )
    nic = replace(port.nic, dcbx="off", cable_m=0, rdma_cm_tos=None, verbs_traffic_class=None)
    states[host] = replace(
        with_port(states[host], port.name, nic=replace(nic, dcqcn=None)),
        unread=tuple(f"{port.name}: {fact}" for fact in facts),
    )
    report = audit(site, states, intended)
    assert report.findings == ()
    assert {skip.rule for skip in report.skipped} == {
        "unread", "dcbx", "cable-length", "tos", "dcqcn",
    }  # fmt: skip
