"""From the applied configuration to the intended one and back, line by line."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from fabric.devices.nvue import MODULE
from fabric.devices.nvue.tree import get, parse, sha256
from fabric.errors import DeviceError, InputError
from fabric.qos import Watchdog
from tests.fabric.devices.nvue.samples import (
    BARE,
    carried_out,
    outputs,
    roce_port,
    sample,
    switch,
    switches,
    target,
)

LONGEST = 460


def used():
    tree = parse(sample("config.json"), "sample")
    tree["interface"]["swp49"] = {"type": "swp"}
    return tree


def plan(tree, intended):
    return MODULE.change(target(), outputs(tree), intended)


def check(tree, intended):
    """Carry out, compare with what is intended, roll back, compare; what came of it."""
    change = plan(tree, intended)
    after = carried_out(tree, change.commands)
    state = MODULE.read(target(), outputs(after))
    for port in MODULE.normalise(intended).ports:
        assert state.port(port.name) == port
    assert plan(after, intended).empty
    assert sha256(carried_out(after, change.rollback)) == sha256(tree)
    assert change.empty == (not change.diff)
    assert all(len(line) < LONGEST for line in (*change.commands, *change.rollback))
    return after


@settings(max_examples=40, deadline=None)
@given(switches())
def test_a_bare_switch_becomes_what_is_intended_and_back(state):
    check(BARE, state)


@settings(max_examples=30, deadline=None)
@given(switches())
def test_a_switch_in_use_keeps_what_is_not_ours(state):
    before = used()
    after = check(before, state)
    for kind in ("mapping", "pfc", "egress-scheduler", "congestion-control", "link-pause"):
        for name, profile in before["qos"][kind].items():
            assert after["qos"][kind][name] == profile
    for name in ("lo", "eth0", "swp2", "swp5s0", "vlan10"):
        assert after["interface"][name] == before["interface"][name]
    for top in ("bridge", "system"):
        assert after[top] == before[top]
    # There is a lossless pool already.
    assert after["qos"]["traffic-pool"] == before["qos"]["traffic-pool"]


@settings(max_examples=30, deadline=None)
@given(switches(), switches())
def test_any_intent_follows_any_other_and_leaves_nothing_of_it(first, second):
    once = carried_out(BARE, plan(BARE, first).commands)
    after = check(once, second)
    straight = carried_out(BARE, plan(BARE, second).commands)
    for tree in (after, straight):  # a pool once made stays: others may use it
        tree["qos"].pop("traffic-pool", None)
    assert after == straight


@settings(max_examples=40, deadline=None)
@given(switches())
def test_render_read_is_normalise(state):
    tree = carried_out({}, tuple(MODULE.render(state).splitlines()))
    assert MODULE.read(target(), outputs(tree)).ports == MODULE.normalise(state).ports


def test_a_pool_for_lossless_traffic_is_made_only_where_there_is_none():
    lines = plan(BARE, switch(roce_port())).commands
    assert "nv set qos traffic-pool default-lossless memory-percent 50" in lines
    assert "nv set qos traffic-pool default-lossy memory-percent 50" in lines
    without = replace(roce_port(), pfc_priorities=(), ingress_buffers=(), watchdog=None)
    assert not any("traffic-pool" in line for line in plan(BARE, switch(without)).commands)


def test_dscps_of_a_priority_are_one_line():
    lines = [line for line in plan(BARE, switch(roce_port())).commands if " dscp " in line]
    assert len(lines) == 3
    assert any(line.endswith("dscp 26 switch-priority 3") for line in lines)


def test_a_profile_that_another_port_still_uses_stays():
    both = switch(roce_port("swp1"), roce_port("swp49"))
    once = carried_out(BARE, plan(BARE, both).commands)
    change = plan(once, switch(roce_port("swp1", kmin=5000)))
    assert not any(line.startswith("nv unset qos") for line in change.commands)
    alone = plan(once, switch(roce_port("swp1", kmin=5000), roce_port("swp49", kmin=5000)))
    gone = [line for line in alone.commands if line.startswith("nv unset qos")]
    assert len(gone) == 1
    assert gone[0].startswith("nv unset qos congestion-control paisoar-")


def test_the_diff_names_both_values():
    once = carried_out(BARE, plan(BARE, switch(roce_port())).commands)
    once["interface"]["swp1"]["link"]["mtu"] = "1500"
    change = plan(once, switch(roce_port()))
    assert change.diff == "- interface swp1 link mtu 1500\n+ interface swp1 link mtu 9216\n"
    assert change.commands == ("nv set interface swp1 link mtu 9216",)
    assert change.rollback == ("nv set interface swp1 link mtu 1500",)


def test_nothing_is_left_that_led_to_ours_alone():
    change = plan(BARE, switch(roce_port()))
    assert "nv unset interface swp1 qos" in change.rollback
    assert "nv unset qos" in change.rollback
    after = carried_out(BARE, change.commands)
    assert (
        get(carried_out(after, change.rollback), "interface", "swp1") == BARE["interface"]["swp1"]
    )


def test_watchdog_times_become_what_the_switch_can_do():
    ports = (
        replace(roce_port("swp1"), watchdog=Watchdog(150, 400, "shutdown")),
        replace(roce_port("swp49"), watchdog=Watchdog(420, 400, "forward")),
    )
    normal = MODULE.normalise(switch(*ports))
    assert [port.watchdog for port in normal.ports] == [Watchdog(500, None, "drop")] * 2
    check(BARE, switch(*ports))


def test_what_nvue_cannot_do_is_refused():
    with pytest.raises(InputError, match="trust pcp"):
        MODULE.render(switch(replace(roce_port(), trust="pcp")))
    buffers = roce_port().ingress_buffers
    other = replace(buffers[0], priority=4, xoff_bytes=1000, xon_bytes=500)
    two = replace(roce_port(), pfc_priorities=(3, 4), ingress_buffers=(*buffers, other))
    with pytest.raises(InputError, match="different thresholds"):
        MODULE.render(switch(two))
    with pytest.raises(InputError, match="others none"):
        MODULE.render(switch(replace(roce_port(), pfc_priorities=(3, 4))))
    swapped = replace(roce_port("swp2"), priority_to_class=(1, 0, 2, 3, 4, 5, 6, 7))
    with pytest.raises(InputError, match="differently by port"):
        MODULE.render(switch(roce_port(), swapped))


def test_a_port_that_is_not_there_or_roce_mode_is_named():
    with pytest.raises(DeviceError, match=r"leaf-a: .*swp99"):
        plan(BARE, switch(roce_port("swp99")))
    with pytest.raises(DeviceError, match="RoCE mode"):
        plan({**BARE, "qos": {"roce": {"mode": "lossless"}}}, switch(roce_port()))


def test_nothing_intended_changes_and_renders_nothing():
    assert plan(BARE, switch()).empty
    assert MODULE.render(switch()) == ""


def test_a_change_is_applied_with_a_timer_and_confirmed_once_verified():
    net = MODULE.safety_net("run-1")
    assert net.edit.apply == ("nv config apply --confirm 10m -y",)
    assert (net.confirm, net.save) == (("nv config apply --confirm-yes",), ("nv config save",))
    assert net.undo == ("nv config apply --confirm-no",)
