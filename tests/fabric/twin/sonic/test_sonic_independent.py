"""Our SONiC module against the emulator: two readings of the same sources."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from fabric.devices.base import Change
from fabric.devices.registry import expected_qos, target_of
from fabric.devices.sonic import MODULE
from fabric.qos import DeviceQos, canonical_sha256
from fabric.site import Site
from fabric.twin.sonic import EmulatedSwitch
from tests.fabric.devices.sonic.samples import switches as intents


def outputs(switch: EmulatedSwitch) -> dict[str, str]:
    target = target_of(switch.site, switch.name)
    shell = switch.shell()
    return {command: shell.execute(command).text for command in MODULE.read_commands(target)}


def read(switch: EmulatedSwitch) -> DeviceQos:
    return MODULE.read(target_of(switch.site, switch.name), outputs(switch))


def run(switch: EmulatedSwitch, lines: tuple[str, ...]) -> None:
    shell = switch.shell()
    for line in lines:
        answer = shell.execute(line)
        assert answer.accepted
        assert not MODULE.is_error(answer.text)


@pytest.mark.parametrize("name", ["leaf1", "spine1"])
def test_every_command_of_a_change_is_taken_read_back_and_undone(
    sonic_site: Site, switches: dict[str, EmulatedSwitch], name: str
):
    switch, target = switches[name], target_of(sonic_site, name)
    wanted = expected_qos(sonic_site, name)
    before = read(switch)
    assert before.unread == ()
    assert before.neighbors
    assert all(neighbor.peer in sonic_site.devices for neighbor in before.neighbors)
    change = MODULE.change(target, outputs(switch), wanted)
    run(switch, change.commands)
    state = read(switch)
    for port in wanted.ports:
        assert state.port(port.name) == port
    assert MODULE.change(target, outputs(switch), wanted) == Change()
    run(switch, change.rollback)
    assert canonical_sha256((read(switch),)) == canonical_sha256((before,))


@settings(
    max_examples=15,
    deadline=None,
    # The switch is put back as it was by each example itself.
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(intents(("Ethernet0", "Ethernet48")))
def test_any_intent_is_read_back_from_the_switch(leaf: EmulatedSwitch, intended: DeviceQos):
    target = target_of(leaf.site, "leaf1")
    before = leaf.running_text()
    change = MODULE.change(target, outputs(leaf), intended)
    run(leaf, change.commands)
    state = read(leaf)
    for port in MODULE.normalise(intended).ports:
        assert state.port(port.name) == port
    run(leaf, change.rollback)
    assert leaf.running_text() == before


def test_the_vendors_safety_net_holds(leaf: EmulatedSwitch):
    target, net = target_of(leaf.site, "leaf1"), MODULE.safety_net("run-1")
    leaf.model = "Mellanox-SN4700-O32"
    before = leaf.running_text()
    run(leaf, net.prepare)
    run(leaf, MODULE.change(target, outputs(leaf), expected_qos(leaf.site, "leaf1")).commands)
    assert read(leaf).saved is False
    run(leaf, net.undo)
    assert leaf.running_text() == before
    run(leaf, net.save)
    assert read(leaf).saved is True


@pytest.mark.parametrize("kind", ["pfc-off", "mtu", "ecn-off"])
def test_each_fault_is_seen_and_put_right(leaf: EmulatedSwitch, kind: str):
    target, wanted = target_of(leaf.site, "leaf1"), expected_qos(leaf.site, "leaf1")
    run(leaf, MODULE.change(target, outputs(leaf), wanted).commands)
    leaf.break_(kind, "" if kind == "ecn-off" else "Ethernet0")
    state = read(leaf)
    wrong = {p.name for p in wanted.ports if state.port(p.name) != p}
    assert wrong == {p.name for p in wanted.ports} if kind == "ecn-off" else {"Ethernet0"}
    run(leaf, MODULE.change(target, outputs(leaf), wanted).commands)
    healed = read(leaf)
    assert all(healed.port(port.name) == port for port in wanted.ports)
    assert replace(healed, saved=None).unread == ()
