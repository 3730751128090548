"""Our EOS module against the emulator: two readings of the same documentation."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from fabric.devices.base import Change
from fabric.devices.eos import MODULE
from fabric.provisioning.plan import mismatches
from fabric.site import Site
from fabric.twin.eos import EmulatedSwitch
from tests.fabric.devices.intents import state, switches, target
from tests.fabric.twin.console import Provisioner
from tests.fabric.twin.eos.conftest import Console

PORTS = ("Ethernet1", "Ethernet49/1")


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
@given(switches("eos", PORTS), switches("eos", PORTS))
def test_any_intent_follows_any_other_and_back(site: Site, first, second):
    with tempfile.TemporaryDirectory() as folder:
        console = Console(EmulatedSwitch("leaf1", Path(folder), site))
        where = target("eos", *PORTS)
        texts = []
        for intended in (first, second):
            outputs = console.outputs(MODULE.read_commands(where))
            change = MODULE.change(where, outputs, intended)
            if not change.empty:
                console.apply(MODULE, change)
            texts.append((console.running(), change))
            held = MODULE.read(where, console.outputs(MODULE.read_commands(where)))
            assert mismatches(held, MODULE.normalise(intended)) == []
            assert MODULE.change(where, console.outputs(("show running-config",)), intended).empty
        console.undo(MODULE, texts[1][1])
        assert console.running() == texts[0][0]


FOREIGN = """\
qos profile THEIRS
   qos trust cos
   uc-tx-queue 2
      no priority
      bandwidth percent 30
class-map type qos match-any STORAGE
   match dscp 10
policy-map type quality-of-service CLASSIFY
   class STORAGE
      set traffic-class 4
platform trident mmu queue profile THEIR-BUFFERS
   ingress threshold 1
platform trident mmu queue profile THEIR-BUFFERS apply
priority-flow-control pause watchdog default timeout 5
qos map dscp 26 to traffic-class 5
qos map dscp 10 11 to traffic-class 4 drop-precedence 1
qos map traffic-class 2 4 to tx-queue 5
interface Ethernet1
   mtu 1600
   flowcontrol receive on
   no qos trust
   service-policy type qos input CLASSIFY
   service-profile THEIRS
   priority-flow-control on
   priority-flow-control priority 5 no-drop
   uc-tx-queue 5
      no priority
      shape rate 40 percent
interface Ethernet7
   service-profile THEIRS
   mtu 2000
vlan 12
   name storage
"""


def test_what_others_configured_stays_or_comes_back(site: Site, console: Console):
    console.type("configure", *FOREIGN.splitlines(), "end")
    after = Provisioner(site, "leaf1", console).there_and_back()
    for line in (
        "qos profile THEIRS",
        "platform trident mmu queue profile THEIR-BUFFERS\n",
        "   class STORAGE",
        "shape rate 40 percent",
        "interface Ethernet7\n   mtu 2000\n   service-profile THEIRS",
        "   name storage",
        "default timeout 5",
    ):
        assert line in after
    for line in ("THEIR-BUFFERS apply", "no qos trust", "drop-precedence 1", "mtu 1600"):
        assert line not in after


def test_lines_changed_by_hand_in_our_profiles_are_put_right_and_back(site: Site, console: Console):
    provisioner = Provisioner(site, "leaf1", console)
    provisioner.apply()
    profile = next(h for h in console.switch.config.blocks if h.startswith("qos profile PAISOAR"))
    console.type("configure", profile, "no qos trust", "no priority-flow-control", "uc-tx-queue 6")
    console.type("no priority", "exit", "uc-tx-queue 3", "bandwidth percent 7", "end")
    provisioner.there_and_back()


def test_a_refusal_throws_the_session_away(console: Console):
    before, net = console.running(), MODULE.safety_net("run-1")
    console.type(net.edit.enter, "interface Ethernet1", "mtu 9000")
    assert MODULE.is_error(console.refused("mtu 90000"))
    console.type(*net.edit.discard)
    assert console.running() == before
    assert console.cli.prompt == "leaf1#"
    assert MODULE.is_error(console.refused(net.undo[0]))


@pytest.mark.parametrize("kind", ["pfc-off", "mtu", "ecn-off"])
def test_faults_are_seen(site: Site, console: Console, kind: str):
    Provisioner(site, "leaf1", console).sees_fault(kind, PORTS[0])


def test_a_state_without_ports_changes_nothing(console: Console):
    outputs = console.outputs(("show running-config",))
    assert MODULE.change(target("eos"), outputs, state("eos")) == Change()
