"""Our Junos module against the emulator: two readings of the same documentation."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given, settings

from fabric.devices.base import Change
from fabric.devices.junos import MODULE
from fabric.devices.registry import target_of
from fabric.errors import DeviceError
from fabric.intended import intended_qos
from fabric.provisioning.plan import mismatches
from fabric.qos import DeviceQos
from fabric.site import Site
from fabric.twin.junos import EmulatedSwitch
from tests.fabric.devices.intents import reached, state, switches, target
from tests.fabric.twin.console import Provisioner
from tests.fabric.twin.junos.conftest import Console

PORTS = ("et-0/0/0", "et-0/0/48")


@pytest.mark.parametrize("name", ["leaf1", "spine1"])
def test_every_command_of_a_change_is_taken_read_back_and_undone(site: Site, switches, name: str):
    provisioner = Provisioner(site, name, Console(switches[name]))
    assert provisioner.module is MODULE
    assert not provisioner.change().empty
    provisioner.there_and_back()
    provisioner.apply()
    held = provisioner.read()
    assert held.unread == ()
    assert held.saved
    assert {(f.up, f.fec) for f in held.facts if f.speed_bps} == {(True, "rs")}
    assert held.neighbors is not None
    assert len(held.neighbors) == len(provisioner.target.ports)


@settings(max_examples=25, deadline=None)
@given(switches("junos", PORTS), switches("junos", PORTS))
def test_any_intent_follows_any_other_and_back(site: Site, first: DeviceQos, second: DeviceQos):
    assume(reached(first) and reached(second))
    with tempfile.TemporaryDirectory() as folder:
        console = Console(EmulatedSwitch("leaf1", Path(folder), site))
        where = target("junos", *PORTS)
        texts = []
        for intended in (first, second):
            outputs = console.outputs(MODULE.read_commands(where))
            change = MODULE.change(where, outputs, intended)
            if not change.empty:
                console.apply(MODULE, change)
            texts.append((console.running(), change))
            outputs = console.outputs(MODULE.read_commands(where))
            assert mismatches(MODULE.read(where, outputs), MODULE.fit(where, intended)) == []
            assert MODULE.change(where, outputs, intended).empty
        console.undo(MODULE, texts[1][1])
        assert console.running() == texts[0][0]


FOREIGN = """\
set class-of-service forwarding-classes class VOICE queue-num 5
set class-of-service classifiers dscp THEIRS forwarding-class VOICE loss-priority low code-points ef
set class-of-service schedulers THEIRS transmit-rate percent 10
set class-of-service scheduler-maps THEIRS forwarding-class VOICE scheduler THEIRS
set class-of-service congestion-notification-profile THEIRS input ieee-802.1 code-point 101 pfc
set class-of-service shared-buffer ingress buffer-partition lossless dynamic-threshold 9
set class-of-service shared-buffer ingress buffer-partition lossless percent 60
set class-of-service interfaces et-0/0/0 unit 0 classifiers dscp THEIRS
set class-of-service interfaces et-0/0/0 unit 0 rewrite-rules dscp default
set class-of-service interfaces et-0/0/0 scheduler-map THEIRS
set class-of-service interfaces et-0/0/0 congestion-notification-profile THEIRS
set class-of-service interfaces et-0/0/7 scheduler-map THEIRS
set interfaces et-0/0/0 mtu 1600
set interfaces et-0/0/1 ether-options flow-control
set interfaces et-0/0/1 unit 0 family inet mtu 1400
set interfaces et-0/0/7 mtu 2000
set vlans storage vlan-id 12
"""


def test_what_others_configured_stays_or_comes_back(site: Site, console: Console):
    console.type("configure", *FOREIGN.splitlines(), "commit")
    console.back()
    after = Provisioner(site, "leaf1", console).there_and_back()
    for line in (
        "forwarding-classes class VOICE queue-num 5",
        "scheduler-maps THEIRS forwarding-class VOICE",
        "buffer-partition lossless percent 60",
        "et-0/0/0 unit 0 rewrite-rules dscp default",
        "interfaces et-0/0/7 scheduler-map THEIRS",
        "vlans storage vlan-id 12",
    ):
        assert line in after
    for line in ("dynamic-threshold 9", "mtu 1600", "family inet mtu 1400", "flow-control\n"):
        assert line not in after


def test_a_queue_that_others_use_otherwise_is_a_conflict(site: Site, console: Console):
    console.type(
        "configure", "set class-of-service forwarding-classes class BULK queue-num 3", "commit"
    )
    console.back()
    where = target_of(site, "leaf1")
    outputs = console.outputs(MODULE.read_commands(where))
    with pytest.raises(DeviceError, match="queue 3 is lossy for its forwarding class BULK"):
        MODULE.change(where, outputs, intended_qos(site, "leaf1"))


def test_lines_changed_by_hand_in_our_objects_are_put_right_and_back(site: Site, console: Console):
    provisioner = Provisioner(site, "leaf1", console)
    provisioner.apply()
    lines = console.running().splitlines()
    scheduler = next(line for line in lines if line.endswith("transmit-rate percent 50"))
    drop = next(line for line in lines if "drop-probability 20" in line)
    console.type(
        "configure",
        scheduler.replace("percent 50", "percent 7"),
        drop.replace("set", "delete"),
        drop.replace("probability 20", "probability 90"),
        "commit",
    )
    console.back()
    provisioner.there_and_back()


def test_a_refusal_throws_the_candidate_away(console: Console):
    before, net = console.running(), MODULE.safety_net("run-1")
    console.type(net.edit.enter, "set interfaces et-0/0/0 mtu 9000")
    assert MODULE.is_error(console.refused("set interfaces et-0/0/0 mtu 90000"))
    console.type(*net.edit.discard)
    console.back()
    assert console.running() == before
    console.type(net.edit.enter, "set class-of-service interfaces et-0/0/0 scheduler-map NONE")
    assert MODULE.is_error(console.refused(net.edit.apply[0]))
    console.back()
    assert console.running() == before


@pytest.mark.parametrize("kind", ["pfc-off", "mtu", "ecn-off"])
def test_faults_are_seen(site: Site, console: Console, kind: str):
    Provisioner(site, "leaf1", console).sees_fault(kind, PORTS[0])


def test_a_state_without_ports_changes_nothing(console: Console):
    outputs = console.outputs(MODULE.read_commands(target("junos")))
    assert MODULE.change(target("junos"), outputs, state("junos")) == Change()
