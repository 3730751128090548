from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.devices.nxos import MODULE
from fabric.devices.sections import find, parse, to_text
from fabric.errors import DeviceError
from fabric.qos import Watchdog
from tests.fabric.devices.nxos.interpreter import apply, as_set
from tests.fabric.devices.nxos.listings import listing, roce_port, switch, switches, target

PORTS = ("Ethernet1/1", "Ethernet1/3")
OURS_ON_A_PORT = ("mtu ", "priority-flow-control ", "flowcontrol ", "service-policy ")
BARE = "interface Ethernet1/1\n  description a\ninterface Ethernet1/3\n"


def plan(running: str, intended):
    return MODULE.change(target(*PORTS), {"show running-config": running}, intended)


def read(running: str):
    return MODULE.read(target(*PORTS), {"show running-config": running})


def check(running: str, intended) -> str:
    """Apply, compare with what is intended, roll back, compare with what was; what came of it."""
    change = plan(running, intended)
    before = parse(running)
    after = apply(before, change.commands)
    state = read(to_text(after))
    for port in MODULE.normalise(intended).ports:
        assert state.port(port.name) == port
    assert plan(to_text(after), intended).empty
    assert as_set(apply(after, change.rollback)) == as_set(before)
    assert change.empty == (not change.diff)
    return to_text(after)


@settings(max_examples=40, deadline=None)
@given(switches(PORTS))
def test_a_bare_switch_becomes_what_is_intended_and_back(state):
    check(BARE, state)


@settings(max_examples=40, deadline=None)
@given(switches(PORTS), switches(PORTS))
def test_any_intent_follows_any_other_and_back(first, second):
    running = to_text(apply(parse(BARE), plan(BARE, first).commands))
    after = check(running, second)
    # Nothing of the first intent is left behind.
    assert as_set(parse(after)) == as_set(apply(parse(BARE), plan(BARE, second).commands))


@settings(max_examples=30, deadline=None)
@given(switches(PORTS))
def test_a_switch_in_use_keeps_every_line_that_is_not_ours(state):
    running = listing("running-config")
    after = check(running, state)
    found = parse(after)
    for section in parse(running):
        now = find(found, section.text)
        if section.text.startswith("priority-flow-control watch-dog"):
            continue
        if section.text not in ("system qos", *(f"interface {port}" for port in PORTS)):
            assert now == section
            continue
        for line in section.children:
            if not line.text.startswith(OURS_ON_A_PORT):
                assert line in now.children
    assert find(found, "system qos").child("service-policy type queuing output QOS_EGRESS_PORT")


@settings(max_examples=40, deadline=None)
@given(
    state=switches(PORTS),
    edits=st.lists(st.tuples(st.integers(0, 300), st.sampled_from(["drop", "add"])), max_size=6),
)
def test_lines_changed_by_hand_inside_our_objects_are_put_right(state, edits):
    lines = to_text(apply(parse(BARE), plan(BARE, state).commands)).splitlines()
    for position, what in edits:
        ours = [index for index, line in enumerate(lines) if line.startswith(("    ", "  match"))]
        if not ours:
            break
        index = ours[position % len(ours)]
        if what == "drop":
            del lines[index]
        else:
            lines[index] = f"{lines[index]} 1"
    running = "\n".join(lines) + "\n"
    change = plan(running, state)
    after = apply(parse(running), change.commands)
    assert read(to_text(after)).ports == MODULE.normalise(state).ports
    assert as_set(apply(after, change.rollback)) == as_set(parse(running))


def test_a_switch_that_does_what_is_intended_is_left_alone():
    state = switch(roce_port())
    running = f"hostname leaf-1\n{MODULE.render(state)}  ip address 10.0.0.1/31\n"
    change = plan(running, state)
    assert change.empty
    assert (change.diff, change.commands, change.rollback) == ("", (), ())


def test_forms_that_say_as_much_are_left_alone():
    state = switch(roce_port())
    running = MODULE.render(state).replace("mode on", "mode on send-tlv")
    running = running.replace("service-policy type qos input", "service-policy type qos input")
    running = "\n".join(
        f"{line} no-stats" if "service-policy type qos input" in line else line
        for line in running.splitlines()
    )
    assert plan(running, state).empty
    assert read(running).ports == MODULE.normalise(state).ports


def test_a_foreign_policy_is_detached_first_and_put_back_by_the_rollback():
    running = (
        "policy-map type qos THEIRS\n  class class-default\n    set qos-group 1\n"
        "interface Ethernet1/1\n  service-policy type qos input THEIRS\n"
    )
    change = plan(running, switch(roce_port()))
    detach = change.commands.index("  no service-policy type qos input THEIRS")
    attach = next(
        index
        for index, line in enumerate(change.commands)
        if line.startswith("  service-policy type qos input PAISOAR-IN-")
    )
    assert detach < attach
    assert "  service-policy type qos input THEIRS" in change.rollback
    assert not any("policy-map type qos THEIRS" in line for line in change.commands)


def test_objects_of_an_earlier_intent_are_removed_last():
    old, new = switch(roce_port(kmin=100_000)), switch(roce_port(kmin=200_000))
    change = plan(MODULE.render(old), new)
    (gone,) = [line for line in change.commands if line.startswith("no policy-map")]
    assert change.commands[-1] == gone
    assert f"-{gone.removeprefix('no ')}\n" in change.diff
    assert not any("class-map" in line or "network-qos" in line for line in change.commands)


def test_an_object_that_another_port_still_uses_is_left_to_it():
    old = MODULE.render(switch(roce_port("Ethernet1/1"), roce_port("Ethernet1/9")))
    change = plan(old, switch(roce_port("Ethernet1/1", kmin=200_000)))
    assert not any(line.startswith("no ") for line in change.commands)
    assert "Ethernet1/9" not in change.diff
    apply(parse(old), change.commands)


def test_the_diff_names_section_and_both_values():
    state = switch(roce_port())
    running = MODULE.render(state).replace(
        "interface Ethernet1/1\n  mtu 9216", "interface Ethernet1/1\n  mtu 1500"
    )
    running = running.replace("mode on", "mode off")
    change = plan(running, state)
    assert change.diff == (
        " interface Ethernet1/1\n"
        "-  mtu 1500\n"
        "-  priority-flow-control mode off\n"
        "+  mtu 9216\n"
        "+  priority-flow-control mode on\n"
    )
    assert change.commands == (
        "interface Ethernet1/1",
        "  mtu 9216",
        "  priority-flow-control mode on",
    )
    assert change.rollback == (
        "interface Ethernet1/1",
        "  priority-flow-control mode off",
        "  mtu 1500",
    )


def test_link_pause_goes_off_before_pfc_goes_on():
    running = BARE.replace("  description a", "  flowcontrol receive on\n  flowcontrol send on")
    state = switch(roce_port("Ethernet1/1"), roce_port("Ethernet1/3"))
    check(running, state)
    commands = plan(running, state).commands
    assert commands.index("  flowcontrol send off") < commands.index(
        "  priority-flow-control mode on"
    )


def test_a_watchdog_that_nobody_wants_any_more_goes_off():
    state = switch(replace(roce_port(), watchdog=Watchdog(300, None)))
    running = MODULE.render(state)
    change = plan(running, switch(replace(roce_port(), watchdog=None)))
    assert "no priority-flow-control watch-dog-interval on" in change.commands
    assert "no priority-flow-control watch-dog shutdown-multiplier 3" in change.commands


def test_a_port_that_the_switch_lacks_is_named():
    with pytest.raises(DeviceError, match=r"leaf-1: .*Ethernet1/99"):
        plan(BARE, switch(roce_port("Ethernet1/99")))


def test_nothing_intended_changes_nothing():
    assert plan(listing("running-config"), switch()).empty
