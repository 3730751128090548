"""Every rule sees its own fault and no other does; none sees anything where all is right."""

from dataclasses import replace

import pytest

from fabric.audit import audit, rules
from fabric.audit.rule import FIX
from fabric.counters import CounterSnapshot
from fabric.qos import DeviceQos, Ecn, Neighbor, Remark, Scheduler, Watchdog
from fabric.topology import ClosShape, PortRef
from tests.fabric.audit import healthy as h
from tests.fabric.audit.healthy import LEAF_PORT, NIC, dcqcn, leaf, nic
from tests.sites import make_site

UPLINK = "Ethernet1/49"


@pytest.fixture
def site(tmp_path):
    return make_site(tmp_path)


@pytest.fixture
def fabric(site):
    """(states, intended)."""
    return h.healthy(site)


@pytest.fixture
def states(fabric):
    return fabric[0]


@pytest.fixture
def intended(fabric):
    return fabric[1]


def buffer(**changes):
    return leaf(lambda p: {"ingress_buffers": (replace(p.ingress_buffers[0], **changes),)})


def ecn(**changes):
    return leaf(lambda p: {"queues": h.queues(p, 3, ecn=replace(p.queue(3).ecn, **changes))})


def lldp(*neighbors):
    def spoil(states):
        ours = {n.port: n for n in states["leaf1"].neighbors}
        ours |= {n.port: n for n in neighbors}
        states["leaf1"] = replace(states["leaf1"], neighbors=tuple(ours.values()))

    return spoil


def two_neighbours(states):
    extra = Neighbor(LEAF_PORT, "b8ce.f600.0001", "b8ce.f600.0001")
    state = states["leaf1"]
    states["leaf1"] = replace(state, neighbors=(*state.neighbors, extra))


def remark(rule):
    return h.device("leaf1", remarks=(Remark(rule, LEAF_PORT, "seen by the module", ("a line",)),))


NOT_NEGOTIATED = h.both(
    *(h.facts("leaf1", port, pfc_mode="auto") for port in (LEAF_PORT, "Ethernet1/2", UPLINK)),
    leaf(lambda p: {"pfc_priorities": ()}),
)
BARE = h.every_port(
    "spine1",
    lambda p: {
        "pfc_priorities": (),
        "queues": h.queues(p, 3, ecn=None),
        "trust": "none",
        "mtu_bytes": 1500,
        "watchdog": None,
        "ingress_buffers": (),
    },
)

# rule -> (device, port, how it comes about)
FAULTS = {
    "bare-tier": ("spine1", "", BARE),
    "max-lossless": ("host1", NIC, h.host(lambda p: {"pfc_priorities": tuple(range(8))})),
    "cnp-lossless": ("leaf1", LEAF_PORT, leaf(lambda p: {"pfc_priorities": (3, 6)})),
    "default-lossless": (
        "leaf1", LEAF_PORT, leaf(lambda p: {"dscp_to_priority": h.wrong_dscp(p, 0, 3)})),
    "pfc-auto": ("leaf1", LEAF_PORT, NOT_NEGOTIATED),
    "pfc": ("leaf1", LEAF_PORT, leaf(lambda p: {"pfc_priorities": (), "ingress_buffers": ()})),
    "link-pause": ("leaf1", LEAF_PORT, leaf(lambda p: {"link_pause": True})),
    "port-missing": ("leaf1", LEAF_PORT, lambda s: s.update(
        leaf1=replace(s["leaf1"], ports=s["leaf1"].ports[1:]))),
    "rdma-mtu": ("host1", NIC, h.both(
        h.host(lambda p: {"mtu_bytes": 1500, "class_mtu_bytes": (1500,) * 8}),
        h.facts("host1", NIC, rdma_mtu_bytes=1024))),
    "mtu": ("leaf1", LEAF_PORT, leaf(
        lambda p: {"mtu_bytes": 1500, "class_mtu_bytes": (1500,) * 8})),
    "fec": ("host1", NIC, h.facts("host1", NIC, fec="none")),
    "trust": ("leaf1", LEAF_PORT, leaf(
        lambda p: {"trust": "pcp", "dscp_to_priority": (0,) * 64})),
    "dscp-map": ("leaf1", LEAF_PORT, leaf(
        lambda p: {"dscp_to_priority": h.wrong_dscp(p, 26, 0)})),
    "cnp-dscp": ("host1", NIC, dcqcn(cnp_dscp=46)),
    "class-map": ("leaf1", LEAF_PORT, leaf(
        lambda p: {"priority_to_class": (0, 1, 2, 0, 4, 5, 6, 7)})),
    "rewrite": ("leaf1", LEAF_PORT, remark("rewrite")),
    "ecmp": ("leaf1", LEAF_PORT, remark("ecmp")),
    "vendor": ("leaf1", LEAF_PORT, remark("something-else")),
    "watchdog-preconditions": ("leaf1", LEAF_PORT, remark("watchdog-preconditions")),
    "ecn-lossy-queue": ("leaf1", LEAF_PORT, leaf(
        lambda p: {"queues": h.queues(replace(p, queues=h.queues(p, 0, ecn=p.queue(3).ecn)),
                                      3, ecn=None)})),
    "ecn-range": ("leaf1", LEAF_PORT, ecn(kmin_bytes=400_000, kmax_bytes=400_000)),
    "ecn-before-pfc": ("leaf1", LEAF_PORT, ecn(kmin_bytes=200_000)),
    "speed-profile": ("leaf1", UPLINK, lambda s: s.update(leaf1=h.with_port(
        s["leaf1"], UPLINK, queues=h.queues(s["leaf1"].port(UPLINK), 3,
                                            ecn=Ecn(100_000, 400_000, 20))))),
    "ecn": ("leaf1", LEAF_PORT, leaf(lambda p: {"queues": h.queues(p, 3, ecn=None)})),
    "cnp-scheduler": ("leaf1", LEAF_PORT, leaf(
        lambda p: {"queues": h.queues(p, 6, scheduler=Scheduler("ets", 5))})),
    "strict-starves": ("leaf1", LEAF_PORT, leaf(
        lambda p: {"dscp_to_priority": h.wrong_dscp(p, 46, 6)})),
    "ets-weights": ("leaf1", LEAF_PORT, leaf(
        lambda p: {"queues": h.queues(p, 3, scheduler=Scheduler("ets", 0))})),
    "scheduler": ("leaf1", LEAF_PORT, leaf(lambda p: {"queues": h.queues(
        replace(p, queues=h.queues(p, 3, scheduler=Scheduler("ets", 60))),
        0, scheduler=Scheduler("ets", 40))})),
    "rate-limit": ("host1", NIC, h.host(
        lambda p: {"queues": h.queues(p, 3, max_rate_bps=10**9)})),
    "buffer-sanity": ("leaf1", LEAF_PORT, buffer(xon_bytes=160_000)),
    "headroom": ("leaf1", LEAF_PORT, buffer(size_bytes=160_000)),
    "buffer": ("leaf1", LEAF_PORT, buffer(xon_bytes=100_000)),
    "watchdog": ("leaf1", LEAF_PORT, leaf(lambda p: {"watchdog": None})),
    "watchdog-times": ("leaf1", LEAF_PORT, leaf(lambda p: {"watchdog": Watchdog(50, 400)})),
    "lldp-peers": ("leaf1", LEAF_PORT, two_neighbours),
    "cabling": ("leaf1", LEAF_PORT, lldp(Neighbor(LEAF_PORT, "host2", "ens1f9"))),
    "dcbx": ("host1", NIC, nic(dcbx="firmware")),
    "cable-length": ("host1", NIC, nic(cable_m=100)),
    "tos-confused": ("host1", NIC, nic(rdma_cm_tos=26, verbs_traffic_class=104)),
    "tos": ("host1", NIC, nic(rdma_cm_tos=0)),
    "verbs-tos": ("host1", NIC, nic(verbs_traffic_class=None)),
    "dcqcn-off": ("host1", NIC, nic(dcqcn=None)),
    "dcqcn-priority": ("host1", NIC, dcqcn(np_priorities=(5,), rp_priorities=(5,))),
    "dcqcn": ("host1", NIC, dcqcn(ai_rate_mbps=5, hai_rate_mbps=500)),
    "gid": ("host1", NIC, h.facts("host1", NIC, gid_type="v1")),
    "lldp-agents": ("host1", "", h.facts("host1", NIC, lldp_agents=("lldpad",))),
    "virtual": ("host1", NIC, h.facts("host1", NIC, virtual_function=True)),
    "persistence": ("host1", NIC, nic(persistent=False)),
    "unsaved": ("leaf1", "", h.device("leaf1", saved=False)),
    "uneven": ("host1", "", h.device("host1", firmware="mlx5_core, firmware 16.35, Linux 6.8")),
}  # fmt: skip

# rule -> (device, port, counters)
COUNTS = {
    "storms": ("leaf1", LEAF_PORT, [("watchdog_storms", 2, 3)]),
    "slow-receiver": ("host1", NIC, [("tx_pause_storm_warnings", 4, None)]),
    "link-errors": ("leaf1", LEAF_PORT, [("rx_crc_errors", 9, None)]),
    "one-way": ("host1", NIC, [("tx_prio_packets", 10**6, 3), ("rx_prio_packets", 0, 3)]),
    "lossless-drops": ("leaf1", LEAF_PORT, [("queue_drops", 12, 3), ("queue_drops", 9, 0)]),
}
ELSEWHERE = {"drift", "unread", "software-nic"}


def judge(site, states, intended, **more):
    return audit(site, states, intended, counters=h.no_counts(states), **more)


def test_a_fabric_that_does_what_is_intended_has_no_finding_and_no_skip(site, states, intended):
    report = judge(site, states, intended, baseline=states)
    assert report.findings == ()
    assert report.skipped == ()


@pytest.mark.parametrize("rule", FAULTS)
def test_one_fault_is_found_by_its_own_rule_alone_and_on_the_right_port(
    site, states, intended, rule
):
    device, port, spoil = FAULTS[rule]
    spoil(states)
    report = judge(site, states, intended)
    assert [(f.rule, f.device, f.port) for f in report.findings] == [(rule, device, port)]
    assert report.findings[0].fix
    assert report.findings[0].evidence


@pytest.mark.parametrize("rule", COUNTS)
def test_what_has_happened_is_found_in_counters_by_one_rule(site, states, intended, rule):
    device, port, values = COUNTS[rule]
    counters = h.no_counts(states)
    counters[device] = CounterSnapshot(
        device, 0.0, tuple(h.counted(device, port, n, v, p) for n, v, p in values)
    )
    report = audit(site, states, intended, counters=counters)
    assert [(f.rule, f.device, f.port) for f in report.findings] == [(rule, device, port)]


def test_every_rule_has_its_fault_in_these_tests():
    assert {rule.id for rule in rules()} == set(FAULTS) | set(COUNTS) | ELSEWHERE


def test_every_rule_says_what_holds_what_it_costs_how_to_see_it_and_how_to_mend_it():
    for rule in rules():
        assert rule.what, rule.id
        assert rule.cost, rule.id
        assert rule.see, rule.id
        assert rule.mend, rule.id


def test_a_capped_class_is_named_with_its_cap(site, states, intended):
    h.host(lambda p: {"queues": h.queues(p, 3, max_rate_bps=10**9)})(states)
    (finding,) = judge(site, states, intended).findings
    assert finding.message.startswith(
        "traffic class 3 may send 1G at most, should send without a limit."
    )


@pytest.mark.parametrize(
    ("parameter", "value", "right"),
    [("max_rate_mbps", 1000, 0), ("gd_log2", 10, 11), ("min_decrease_percent", 10, 50)],
)
def test_dcqcn_parameters_that_throttle_a_nic_are_found(
    site, states, intended, parameter, value, right
):
    dcqcn(**{parameter: value})(states)
    (finding,) = judge(site, states, intended).findings
    assert finding.rule == "dcqcn"
    assert f"{parameter} is {value}, should be {right}" in finding.message


def test_counters_that_were_not_read_are_skips(site, states, intended):
    report = audit(site, states, intended)
    assert {(skip.rule, skip.device) for skip in report.skipped} == {(rule, "") for rule in COUNTS}
    assert "--counters" in report.skipped[0].reason


def test_a_pfc_finding_quotes_both_ends_of_the_cable_and_who_suffers(site, states, intended):
    states["leaf1"] = h.with_port(states["leaf1"], LEAF_PORT, pfc_priorities=())
    (finding,) = judge(site, states, intended).findings
    peer = site.topology.peer(PortRef("leaf1", LEAF_PORT))
    assert finding.message.startswith("PFC is off for priority 3 at this end of the cable only.")
    assert finding.evidence == (
        f"leaf1:{LEAF_PORT}: PFC on none (mode on)",
        f"{peer}: PFC on 3",
        "on the path of 6 of 12 host pairs",
    )


@pytest.mark.parametrize("rule", [rule.id for rule in rules() if rule.shows])
def test_a_finding_about_a_cable_quotes_both_of_its_ends(site, states, intended, rule):
    device, port, spoil = FAULTS[rule]
    spoil(states)
    end = PortRef(device, port)
    peer = site.topology.peer(end)
    (finding,) = judge(site, states, intended).findings
    here, there = finding.evidence[:2]
    assert here.startswith(f"{end}: ")
    assert there.startswith(f"{peer}: ")
    assert here.partition(": ")[2]
    assert there.partition(": ")[2]
    # The other end was not read, or does not show it.
    facts = next(one.facts for one in rules() if one.id == rule)
    other = states.pop(peer.device)
    (finding,) = judge(site, states, intended).findings
    assert finding.evidence[1] == f"{peer}: not read"
    if facts:
        hidden = f"{peer.port}: {facts[0]}: refused"
        states[peer.device] = replace(other, unread=(hidden,))
        (finding,) = judge(site, states, intended).findings
        assert finding.evidence[1] == f"{peer}: not shown ({hidden})"


ENDS = {
    "trust": ("trusts pcp", "trusts dscp"),
    "link-pause": ("link pause on, PFC on 3 (mode on)", "link pause off, PFC on 3"),
    "dcbx": ("DCBX firmware controlled, PFC on 3", "PFC on 3 (mode on)"),
    "cable-length": (
        "headroom for a cable of 100 m",
        "headroom set by hand, not by a cable's length",
    ),
    "ecn-range": (
        "ECN in traffic class 3 from 400000 to 400000 B up to 20 %",
        "a NIC, which marks nothing itself",
    ),
    "tos": (
        "TOS of rdma_cm 0, traffic class of verbs 106",
        "DSCP 26 -> priority 3, DSCP 48 -> priority 6",
    ),
}


@pytest.mark.parametrize("rule", ENDS)
def test_each_end_is_quoted_with_what_it_does(site, states, intended, rule):
    FAULTS[rule][2](states)
    (finding,) = judge(site, states, intended).findings
    assert tuple(line.partition(": ")[2] for line in finding.evidence[:2]) == ENDS[rule]


@pytest.mark.parametrize(
    "spoil",
    [
        h.host(lambda p: {"trust": "pcp"}),
        h.host(lambda p: {"pfc_priorities": (), "ingress_buffers": ()}),
        h.host(lambda p: {"link_pause": True}),
        h.host(lambda p: {"queues": h.queues(p, 3, max_rate_bps=10**9)}),
        nic(dcbx="firmware"),
    ],
)
def test_a_setting_that_is_wrong_now_is_not_also_one_that_does_not_last(
    site, states, intended, spoil
):
    """The boot script sets the right one: so it does not reproduce what is set now."""
    h.both(spoil, nic(persistent=False))(states)
    (finding,) = judge(site, states, intended).findings
    assert finding.rule != "persistence"


def test_settings_that_do_not_last_are_found_beside_one_that_is_not_shown(site, states, intended):
    h.both(h.host(lambda p: {"trust": "none"}), nic(persistent=False))(states)
    states["host1"] = replace(states["host1"], unread=(f"{NIC}: trust: refused",))
    (finding,) = judge(site, states, intended).findings
    assert finding.rule == "persistence"


def test_one_cause_on_many_ports_is_one_row(site, states, intended):
    h.every_port("leaf1", lambda p: {"queues": h.queues(p, 3, ecn=None)})(states)
    (finding,) = judge(site, states, intended).findings
    assert finding.port == ", ".join(port.name for port in states["leaf1"].ports)
    assert finding.evidence[-1] == "on the path of 10 of 12 host pairs"


def test_a_change_after_certification_is_drift_even_where_no_rule_minds_it(site, states, intended):
    baseline = dict(states)
    states["leaf2"] = replace(states["leaf2"], config_sha256="b" * 64)
    (finding,) = judge(site, states, intended, baseline=baseline).findings
    assert (finding.rule, finding.device) == ("drift", "leaf2")


def test_what_a_device_does_not_show_is_a_skip_and_no_pass(site, states, intended):
    states["leaf1"] = replace(states["leaf1"], unread=("watchdog times",), neighbors=None, facts=())
    report = judge(site, states, intended)
    assert {(skip.rule, skip.reason) for skip in report.skipped} == {
        ("unread", "watchdog times"),
        ("cabling", "no LLDP table was shown"),
        ("fec", "no port's FEC was shown"),
    }


def test_a_host_that_shows_nothing_of_its_links_is_skipped(site, states, intended):
    states["host1"] = replace(states["host1"], facts=())
    report = judge(site, states, intended)
    assert report.findings == ()
    assert {skip.rule for skip in report.skipped} == {"fec", "gid", "rdma-mtu"}


def test_a_setting_that_a_nic_does_not_show_is_not_called_wrong(site, states, intended):
    port = states["host1"].ports[0]
    facts = (
        "DCBX mode",
        "cable length",
        "rdma_cm TOS",
        "verbs traffic class",
        "DCQCN parameters timer",
        "PFC of priorities 3",
        "trust",
        "MTU",
    )
    hidden = replace(port.nic, dcbx="off", cable_m=0, rdma_cm_tos=None, verbs_traffic_class=None)
    state = h.with_port(
        states["host1"],
        NIC,
        nic=replace(hidden, dcqcn=None),
        pfc_priorities=(),
        ingress_buffers=(),
        trust="none",
        mtu_bytes=0,
        class_mtu_bytes=(0,) * 8,
    )
    states["host1"] = replace(state, unread=tuple(f"{NIC}: {fact}" for fact in facts))
    report = judge(site, states, intended)
    assert report.findings == ()
    assert {skip.rule for skip in report.skipped} == {
        "unread", "dcbx", "cable-length", "tos", "verbs-tos", "dcqcn", "pfc", "trust", "mtu",
    }  # fmt: skip


def test_software_rdma_is_skipped_and_never_passed(site, states, intended):
    nic(family="rxe")(states)
    intended["host1"] = replace(intended["host1"], ports=states["host1"].ports)
    report = judge(site, states, intended)
    assert [skip.rule for skip in report.skipped] == ["software-nic"]


def test_swapped_cables_are_one_finding_that_names_both(site, states, intended):
    lldp(Neighbor(LEAF_PORT, "host2", NIC), Neighbor("Ethernet1/2", "host1", NIC))(states)
    (finding,) = judge(site, states, intended).findings
    assert (finding.rule, finding.port) == ("cabling", f"{LEAF_PORT}, Ethernet1/2")
    assert "swapped" in finding.message
    assert finding.fix != FIX


def test_a_neighbour_may_call_itself_by_its_domain_and_name_its_port_by_address(
    site, states, intended
):
    states["host1"] = h.with_facts(states["host1"], NIC, mac="b8cef6000001")
    lldp(Neighbor(LEAF_PORT, "Host1.example.com", "b8ce.f600.0001"))(states)
    assert judge(site, states, intended).clean


def test_a_cable_that_the_file_lacks_is_found_at_one_end(site, states, intended):
    for name, port, peer in (("leaf1", "Ethernet1/7", "leaf2"), ("leaf2", "Ethernet1/7", "leaf1")):
        more = (*states[name].neighbors, Neighbor(port, peer, "Ethernet1/7"))
        states[name] = replace(states[name], neighbors=more)
    (finding,) = judge(site, states, intended).findings
    assert (finding.device, finding.port) == ("leaf1", "Ethernet1/7")
    assert "no such cable" in finding.message


@pytest.mark.parametrize("shut", ["host1", "leaf1"])
def test_a_port_that_is_shut_is_reported_where_it_is_shut_and_pairs_are_counted_without_it(
    site, states, intended, shut
):
    ends = (PortRef("leaf1", LEAF_PORT), site.topology.peer(PortRef("leaf1", LEAF_PORT)))
    for end in ends:
        h.facts(*end, up=False, speed_bps=None, admin_up=end.device != shut)(states)
    report = judge(site, states, intended)
    (finding,) = report.findings
    (at,) = (end for end in ends if end.device == shut)
    assert (finding.rule, finding.device, finding.port) == ("cabling", *at)
    assert finding.message.startswith("the port is shut")
    assert f"{at}: shut" in finding.evidence
    assert ("ip link set dev ens1f0 up" in finding.fix) is (shut == "host1")
    paths = report.paths
    assert (paths.lossless_pairs, paths.cut_pairs, paths.thinned_pairs) == (6, 6, 0)
    assert paths.summary == (
        "6 of 12 host pairs are lossless on every path that is up. 6 have no path, 0 fewer than "
        f"they should: {at} is shut."
    )


def test_pairs_are_counted_over_the_paths_that_are_up(tmp_path):
    site = make_site(tmp_path, ClosShape(hosts=4, leaves=2, spines=2))
    states, intended = h.healthy(site)
    uplink = next(
        p for p in site.topology.ports_of["leaf1"] if site.topology.peer(p).device == "spine1"
    )
    h.facts(*uplink, up=False, speed_bps=None)(states)
    paths = judge(site, states, intended).paths
    assert (paths.pairs, paths.lossless_pairs) == (12, 12)
    assert (paths.cut_pairs, paths.thinned_pairs) == (0, 8)
    assert paths.summary.endswith(
        f"0 have no path, 8 fewer than they should: {uplink} has no link."
    )
    # What the dead link would do to packets is no matter of any pair.
    states["leaf1"] = h.with_port(states["leaf1"], uplink.port, pfc_priorities=())
    assert judge(site, states, intended).paths.lossless_pairs == 12


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"up": False, "speed_bps": None}, "down"), ({"speed_bps": 10 * 10**9}, "runs at 10G")],
)
def test_a_dead_or_slow_link_is_reported_once_for_its_two_ends(
    site, states, intended, changes, words
):
    peer = site.topology.peer(PortRef("leaf1", LEAF_PORT))
    h.facts("leaf1", LEAF_PORT, **changes)(states)
    h.facts(*peer, **changes)(states)
    (finding,) = judge(site, states, intended).findings
    assert finding.rule == "cabling"
    assert words in finding.message
    assert {line.partition(": ")[0] for line in finding.evidence[:2]} == {
        f"leaf1:{LEAF_PORT}",
        str(peer),
    }


def test_both_ends_without_fec_are_one_finding_unless_the_cable_needs_none(site, states, intended):
    for device, port in (("leaf1", UPLINK), tuple(site.topology.peer(PortRef("leaf1", UPLINK)))):
        h.facts(device, port, fec="none")(states)
    (finding,) = judge(site, states, intended).findings
    assert (finding.rule, finding.message.partition(".")[0]) == ("fec", "the link runs without FEC")
    for device, port in (("leaf2", LEAF_PORT), ("host3", NIC)):
        h.facts(device, port, fec="none")(states)  # 3 m of 25G
    assert len(judge(site, states, intended).findings) == 1


def test_an_odd_one_needs_a_majority(site, states, intended):
    for number in (1, 2):
        h.device(f"host{number}", firmware="mlx5_core, firmware 16.35, Linux 5.4")(states)
    assert judge(site, states, intended).clean
    h.device("host2", firmware="mlx5_core, firmware 22.43, Linux 5.4")(states)
    assert [f.device for f in judge(site, states, intended).findings] == ["host1"]


def test_other_speeds_in_one_bond_are_found(site, states, intended):
    h.facts("host1", NIC, bond="bond0")(states)
    assert judge(site, states, intended).clean


@pytest.mark.parametrize("mode", ["on", "off"])
def test_pfc_that_a_dead_link_has_stopped_is_no_fault_of_its_own(site, states, intended, mode):
    """What the configuration has switched off stays one."""
    leaf(lambda _: {"pfc_priorities": ()})(states)
    ends = (PortRef("leaf1", LEAF_PORT), site.topology.peer(PortRef("leaf1", LEAF_PORT)))
    for end in ends:
        h.facts(*end, up=False, speed_bps=None)(states)
    h.facts("leaf1", LEAF_PORT, pfc_mode=mode)(states)
    report = judge(site, states, intended)
    assert sorted(f.rule for f in report.findings) == ["cabling"] + ["pfc"] * (mode == "off")
    reasons = [skip.reason for skip in report.skipped if skip.rule == "pfc"]
    assert reasons == [f"{LEAF_PORT}: PFC of a link that is down"] * (mode == "on")


def test_more_lossless_priorities_than_one_are_a_skip_where_the_hardware_is_not_known(
    site, states, intended
):
    leaf(lambda _: {"pfc_priorities": (3, 4)})(states)
    report = judge(site, states, intended)
    assert "max-lossless" not in {finding.rule for finding in report.findings}
    (skip,) = (skip for skip in report.skipped if skip.rule == "max-lossless")
    assert skip.device == "leaf1"
    assert skip.reason == "how many lossless priorities N9K holds is not known"


def test_a_remark_brings_its_own_fix_and_ports_with_the_same_share_one_row(site, states, intended):
    remarks = tuple(Remark("pfc", f"E{n}", "one way", (), (f"mend E{n}",)) for n in (1, 2))
    h.device("leaf1", remarks=remarks)(states)
    (finding,) = judge(site, states, intended).findings
    assert (finding.port, finding.fix) == ("E1, E2", ("mend E1", "mend E2"))
    assert DeviceQos.from_json(states["leaf1"].to_json()) == states["leaf1"]


@pytest.mark.parametrize(
    ("fits", "message"),
    [
        ((0, 1), "headroom is for cables of 0 to 1 m, too short ones"),
        ((40, 300), "headroom is for cables of 40 to 300 m, too long ones"),
        ((0, 5), None),
    ],
)
def test_headroom_of_a_switch_is_for_cables_of_the_length_that_is_there(
    site, states, intended, fits, message
):
    assert site.topology.link_of[PortRef("leaf1", LEAF_PORT)].length_m == 3
    h.facts("leaf1", LEAF_PORT, headroom_cable_m=fits)(states)
    findings = judge(site, states, intended).findings
    assert [f.message.split(". ")[0] for f in findings] == ([message] if message else [])
    assert DeviceQos.from_json(states["leaf1"].to_json()) == states["leaf1"]
