"""What the emulated EOS takes, refuses and prints. Sources: the modules under test."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from fabric.counters import Counter
from fabric.site import Site
from fabric.twin.eos import EmulatedSwitch
from fabric.twin.eos.cli import Cli
from tests.fabric.twin.eos.conftest import Console


def test_modes_and_prompts(leaf: EmulatedSwitch, console: Console):
    fresh = Cli(leaf)
    assert fresh.prompt == "leaf1>"
    assert fresh.execute("configure").text == "% Invalid input (at token 0: 'configure')\n"
    assert "Arista DCS-7050SX3-48YC8" in fresh.execute("show version").text
    for line, prompt in (
        ("conf t", "leaf1(config)#"),
        ("int et1", "leaf1(config-if-Et1)#"),
        ("uc-tx-queue 3", "leaf1(config-if-Et1-uc-txq-3)#"),
        ("qos profile A", "leaf1(config-qos-profile-A)#"),
        ("end", "leaf1#"),
        ("configure session paisoar-1", "leaf1(config-s-paisoa)#"),
        ("interface Ethernet49/1", "leaf1(config-s-paisoa-if-Et49/1)#"),
        ("abort", "leaf1#"),
    ):
        console.type(line)
        assert console.cli.prompt == prompt


@pytest.mark.parametrize(
    ("where", "line", "says"),
    [
        ("configure", "qos profil", "% Incomplete command"),
        ("configure", "feature qos", "% Invalid input (at token 0: 'feature')"),
        ("interface Ethernet1", "mtu 9216", "% Invalid input (at token 1: '9216')"),
        (
            "interface Ethernet1",
            "priority-flow-control watchdog action errdisable",
            "% Invalid input (at token 1: 'watchdog')",
        ),
        (
            "interface Ethernet1",
            "priority-flow-control mode on",
            "% Invalid input (at token 1: 'mode')",
        ),
        ("interface Ethernet1", "priority-flow-control priority 3", "% Incomplete command"),
        (
            "interface Ethernet1",
            "tx-queue 3",
            "% Unavailable command (not supported on this hardware platform)",
        ),
        ("qos profile P", "mtu 9000", "% Invalid input (at token 0: 'mtu')"),
        ("uc-tx-queue 3", "random-detect ecn", "% Incomplete command"),
        (
            "uc-tx-queue 3",
            "bandwidth remaining percent 50",
            "% Invalid input (at token 1: 'remaining')",
        ),
        (
            "uc-tx-queue 3",
            "random-detect ecn minimum-threshold 9 kbytes maximum-threshold 3 kbytes",
            "% Minimum threshold must not be greater than maximum threshold",
        ),
        (
            "uc-tx-queue 3",
            "random-detect ecn minimum-threshold 150 kbytes maximum-threshold 3 mbytes",
            "% Minimum and maximum threshold must have the same unit",
        ),
        (
            "uc-tx-queue 3",
            "random-detect ecn count",
            "% ECN counters cannot be enabled in a qos profile",
        ),
        ("configure", "interface Ethernet99", "% Interface does not exist"),
        (
            "configure",
            "qos map traffic-class 3 to tx-queue 7",
            "% Traffic-class 7 and tx-queue 7 are reserved for control traffic",
        ),
        ("configure", "qos map dscp 64 to traffic-class 3", "% Invalid input (at token 3: '64')"),
        (
            "configure",
            "priority-flow-control pause watchdog default action drop timer 200 milliseconds",
            "% Invalid input (at token 4: 'action')",
        ),
        (
            "interface Ethernet1",
            "priority-flow-control pause watchdog port timer timeout 0.1 polling-interval 0.09 "
            "recovery-time 0.2",
            "% Polling interval must be at most half of timeout and recovery time",
        ),
        ("policy-map type quality-of-service P", "class tx-queue 3", "% Invalid input (at token 2"),
        ("interface Ethernet3", "ip address 10.0.0.1/31", "% Ethernet3: ip configuration needs"),
    ],
)
def test_wrong_lines_are_refused(console: Console, where: str, line: str, says: str):
    console.type("configure", *(["qos profile P"] if where.startswith("uc-") else []))
    if where != "configure":
        console.type(where)
    assert console.refused(line).startswith(says)


def test_a_configuration_is_printed_as_eos_does(console: Console):
    console.type("configure", "qos map dscp 26 to traffic-class 3", "qos map dscp 8-10 to traf 2")
    console.type("qos profile P", "qos trust dscp", "prio on", "priority-flow-control prio 3 no-")
    console.type("prio prio 4 drop", "uc-tx-queue 3", "no priority", "bandwidth percent 40")
    console.type("interface Ethernet1", "service-profile P", "mtu 9000", "flowcontrol receive off")
    console.type("uc-tx-queue 3", "random-detect ecn count", "uc-tx-queue 4", "end")
    text = console.running()
    assert "qos map dscp 8 9 10 to traffic-class 2\n" in text
    assert "qos map dscp 26" not in text
    assert (
        """\
qos profile P
   qos trust dscp
   priority-flow-control on
   priority-flow-control priority 3 no-drop
   !
   uc-tx-queue 3
      no priority
      bandwidth percent 40
"""
        in text
    )
    assert (
        """\
interface Ethernet1
   description host1 ens1f0 25G
   mtu 9000
   no switchport
   ip address unnumbered Loopback0
   ip ospf area 0.0.0.0
   service-profile P
   !
   uc-tx-queue 3
      random-detect ecn count
!
interface Ethernet2
"""
        in text
    )
    assert text.endswith("!\nend\n")


def test_nothing_of_a_session_takes_effect_before_its_commit(console: Console):
    before = console.running()
    console.type("configure session s", "interface Ethernet1", "mtu 9000")
    assert console.running() == before
    assert "+   mtu 9000\n" in console.type("show session-config diffs")
    console.type("end")
    assert "s                    pending" in console.type("show configuration sessions")
    console.type("configure session s", "commit")
    assert "   mtu 9000\n" in console.running()
    assert console.refused("configure session s abort") == "% Session s does not exist"


def test_an_unconfirmed_commit_comes_back_by_itself(console: Console, leaf: EmulatedSwitch):
    before = console.running()
    console.type("configure session s", "interface Ethernet1", "mtu 9000", "commit timer 00:00:01")
    assert console.running() != before
    assert console.refused("configure session s").startswith("% Session s is waiting")
    time.sleep(1.1)
    console.type("show version")
    assert console.running() == before
    assert list(leaf.session_states()) == []


def test_a_commit_is_confirmed_or_aborted_from_outside(console: Console):
    before = console.running()
    change = ("interface Ethernet1", "mtu 9000", "commit timer 01:00:00")
    console.type("configure session s", *change, "configure session s abort")
    assert console.running() == before
    console.type("configure session t", *change, "configure session t commit")
    assert console.running() != before
    assert console.refused("configure session t commit") == "% Session t does not exist"


def test_a_restart_keeps_configuration_and_pending_commits(
    console: Console, site: Site, leaf: EmulatedSwitch
):
    before = console.running()
    console.type("configure session s", "interface Ethernet1", "mtu 9000", "commit timer 01:00:00")
    again = Console(EmulatedSwitch("leaf1", leaf.folder, site))
    assert again.running() == console.running() != before
    again.type("configure session s abort")
    assert again.running() == before


def test_counters_move_what_is_shown(console: Console, leaf: EmulatedSwitch, tmp_path: Path):
    leaf.add_counters(
        [
            Counter("leaf1", "Ethernet1", "rx_packets", 7),
            Counter("leaf1", "Ethernet1", "tx_pause_frames", 5, 3),
            Counter("leaf1", "Ethernet1", "ecn_marked_packets", 4, 3),
            Counter("leaf1", "Ethernet1", "queue_drops", 2, 0),
            Counter("leaf1", "Ethernet1", "watchdog_storms", 1, 3),
        ]
    )

    def shown(command: str) -> dict:
        return json.loads(console.type(f"{command} | json"))

    port = shown("show interfaces")["interfaces"]["Ethernet1"]
    assert port["interfaceCounters"]["inUcastPkts"] == 7
    pfc = shown("show priority-flow-control counters")["interfaceCounters"]
    assert pfc["Ethernet1"] == {"rxFrames": 0, "txFrames": 5}
    ecn = shown("show qos interfaces ecn counters queue")["intfQueueCounters"]
    assert ecn["Ethernet1"]["queueCounters"]["3"] == "-"
    console.type("configure", "interface et1", "uc-tx-queue 3", "random-detect ecn count", "end")
    ecn = shown("show qos interfaces ecn counters queue")["intfQueueCounters"]
    assert ecn["Ethernet1"]["queueCounters"]["3"] == "4"
    queues = shown("show interfaces counters queue detail")["egressQueueCounters"]["interfaces"]
    classes = queues["Ethernet1"]["ucastQueues"]["trafficClasses"]
    assert classes["TC0"]["dropPrecedences"]["DP0"]["droppedPackets"] == 2
    watchdog = shown("show priority-flow-control counters watchdog")["interfaces"]
    assert watchdog == {"Ethernet1": {"txQueues": {"3": {"stuckCount": 1, "recoveryCount": 1}}}}
    assert console.refused("show running-config | json") == "% This is an unconverted command"
    console.type("clear counters")
    assert leaf.counter_sum("Ethernet1", "rx_packets") == 0


def test_filters_and_help(console: Console):
    assert console.type("show running-config | include ^hostname") == "hostname leaf1\n"
    assert "configure" in console.cli.help("conf")
    assert console.refused("show running-config | nonsense").startswith("% Invalid input")
