from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from fabric.devices.base import ReadError
from fabric.devices.cloudengine import MODULE
from fabric.devices.cloudengine.counters import queue_command
from fabric.devices.cloudengine.lines import is_physical, of_list, to_list
from fabric.devices.registry import SWITCHES, load
from fabric.errors import DeviceError, InputError
from fabric.qos import Ecn, Neighbor, Queue, Scheduler
from fabric.unread import Fact, unseen
from tests.fabric.devices.intents import roce_port, state, switches, target
from tests.fabric.devices.typed import Typed

RUNNING = "display current-configuration"
PORTS = ("25GE1/0/1", "100GE1/0/49:2")
FIXTURE = (Path(__file__).parent / "fixtures" / "display-current-configuration.txt").read_text()
ONE_VALUE = (
    "jumboframe enable ",
    "trust upstream ",
    "dcb pfc enable",
    "qos pq ",
    "qos drr ",
    *(f"qos queue {n} wred " for n in range(8)),
    *(f"qos queue {n} drr weight " for n in range(8)),
)
VERSION = """\
Huawei Versatile Routing Platform Software
VRP (R) software, Version 8.191 (CE6865EI V200R019C10SPC800)
Copyright (C) 2012-2020 Huawei Technologies Co., Ltd.
HUAWEI CE6865-48S8CQ-EI uptime is 3 days, 4 hours, 12 minutes
"""
LLDP = """\
Local Interface         Exptime(s) Neighbor Interface            Neighbor Device
-------------------------------------------------------------------------------
25GE1/0/1                      105 ens1f0np0                     gpu-17
100GE1/0/49:2                   98 100GE1/0/3                    spine-1
"""


def switch(text: str = FIXTURE) -> Typed:
    body = "".join(line for line in text.splitlines(keepends=True) if line[0] not in "#!")
    return Typed(body, negation="undo", one_value=ONE_VALUE)


def read(text: str, **outputs: str):
    return MODULE.read(target("cloudengine", *PORTS), {RUNNING: text, **outputs})


def change(text: str, intended):
    return MODULE.change(target("cloudengine", *PORTS), {RUNNING: text}, intended)


def test_the_entry_point_finds_the_module():
    assert load(SWITCHES, "cloudengine") is MODULE
    assert (MODULE.os, MODULE.netmiko_type) == ("cloudengine", "huawei_vrpv8")


@settings(max_examples=30, deadline=None)
@given(switches("cloudengine", PORTS))
def test_what_is_rendered_reads_back_as_the_same_on_every_port(intended):
    text = MODULE.render(intended)
    assert read(text).ports == MODULE.normalise(intended).ports
    assert MODULE.normalise(MODULE.normalise(intended)) == MODULE.normalise(intended)
    assert change(text, intended).empty


@settings(max_examples=25, deadline=None)
@given(switches("cloudengine", PORTS), switches("cloudengine", PORTS))
def test_a_change_reaches_what_is_intended_and_is_taken_back_exactly(first, second):
    held = switch()
    untouched = held.lines()
    there = change(held.text(), first)
    held.enter(there.commands)
    assert read(held.text()).ports[:2] == MODULE.normalise(first).ports
    reached = held.lines()
    again = change(held.text(), second)
    held.enter(again.commands)
    assert read(held.text()).ports[:2] == MODULE.normalise(second).ports
    held.enter(again.rollback)
    assert held.lines() == reached
    held.enter(there.rollback)
    assert held.lines() == untouched


def test_what_is_not_ours_stays():
    held = switch()
    before = held.lines()
    held.enter(change(FIXTURE, state("cloudengine", roce_port("25GE1/0/1"))).commands)
    gone = before - held.lines()
    assert {line[0] for line in gone} == {"interface 25GE1/0/1"}
    assert ("interface 25GE1/0/1", "dcb pfc buffer 4 xoff static 1500 cells") in held.lines()
    assert ("dcb pfc", "priority 3 4") in held.lines()


def test_lines_that_go_without_saying_may_be_left_out():
    intended = state("cloudengine", roce_port("25GE1/0/1"))
    text = MODULE.render(intended)
    shorter = text.replace(" ip-dscp-inbound 48 phb cs6 green\n", "").replace(
        " ip-dscp-inbound 0 phb be green\n", ""
    )
    assert shorter != text
    assert change(shorter, intended).empty
    assert read(shorter).ports == MODULE.normalise(intended).ports
    wrong = text.replace(" ip-dscp-inbound 26 phb af3 green\n", "").replace("phb be", "phb be")
    lacking = text.replace(" ip-dscp-inbound 9 phb be green\n", "")
    assert change(wrong, intended).empty  # DSCP 26 goes to its eighth anyway
    assert " ip-dscp-inbound 9 phb be green" in "\n".join(change(lacking, intended).commands)


def test_a_published_configuration():
    """Shapes of Huawei's configuration scripts; names and numbers are our own."""
    found = read(FIXTURE, **{"display version": VERSION, "display lldp neighbor brief": LLDP})
    port = found.port("25GE1/0/1")
    assert port.mtu_bytes == 9198
    assert (port.trust, port.pfc_priorities) == ("dscp", (4,))
    assert (port.priority_of_dscp(26), port.priority_of_dscp(46)) == (4, 6)
    assert port.priority_of_dscp(24) == 3
    assert port.queue(4) == Queue(4, Scheduler("ets", 65), Ecn(247_520, 18_000_000, 100))
    assert port.queue(7).scheduler == Scheduler("strict")
    trunk = found.port("100GE1/0/49:2")
    assert (trunk.pfc_priorities, trunk.trust) == ((3, 4), "pcp")
    assert trunk.queue(0).scheduler == Scheduler("strict")
    assert found.port("25GE1/0/2").link_pause
    assert found.port("25GE1/0/2").mtu_bytes == 1582
    assert found.port("25GE1/0/2.10") is None
    assert (found.model, found.firmware) == (
        "CE6865-48S8CQ-EI",
        "8.191 (CE6865EI V200R019C10SPC800)",
    )
    assert found.neighbors == (
        Neighbor("25GE1/0/1", "gpu-17", "ens1f0np0"),
        Neighbor("100GE1/0/49:2", "spine-1", "100GE1/0/3"),
    )


def test_whether_it_is_saved_whatever_stands_around_it():
    startup = "<leaf-1>display saved-configuration\n" + FIXTURE.replace("by admin", "by root")
    assert read(FIXTURE, **{"display saved-configuration": startup}).saved is True
    changed = startup.replace("vlan batch 20", "vlan batch 20 30")
    assert read(FIXTURE, **{"display saved-configuration": changed}).saved is False


def test_what_is_not_understood_is_said():
    text = "#\ninterface 25GE1/0/1\n dcb pfc enable lost mode auto\n trust upstream gone\n"
    unread = read(text).unread
    assert "25GE1/0/1: PFC of all priorities: dcb pfc lost is not shown" in unread
    assert "25GE1/0/1: priority of DSCPs: diffserv domain gone is not shown" in unread
    assert "25GE1/0/1: PFC of all priorities: it is negotiated by DCBX" in unread
    percent = (
        "#\ndrop-profile p\n color green low-limit 50 high-limit 90 discard-percentage 10\n"
        "#\ninterface 25GE1/0/1\n qos queue 3 wred p\n qos queue 3 ecn\n"
    )
    assert any("not in bytes" in reason for reason in read(percent).unread)
    with pytest.raises(ReadError, match="showed no configuration"):
        read("")


def test_a_configuration_that_was_cut_off_is_no_configuration():
    """VRP prints ``return`` last: Huawei, CloudEngine command reference."""
    with pytest.raises(ReadError, match="seems cut off.*does not end with 'return'"):
        read(FIXTURE[: FIXTURE.rindex("return")])


def test_a_frame_size_that_cannot_be_read_is_no_default():
    with pytest.raises(ReadError, match="no number in 'jumboframe enable many'"):
        read("#\ninterface 25GE1/0/1\n jumboframe enable many\n")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"trust": "pcp"}, "classifies by DSCP"),
        ({"link_pause": True}, "pause the link"),
        ({"priority_to_class": (0,) * 8}, "leaves by another queue"),
        (
            {"queues": (Queue(2, Scheduler("strict")), Queue(5, Scheduler("ets", 50)))},
            "strict queue before a shared one",
        ),
    ],
)
def test_what_vrp_cannot_do_is_refused(changed, said):
    with pytest.raises(InputError, match=said):
        MODULE.render(state("cloudengine", replace(roce_port("25GE1/0/1"), **changed)))


def test_a_port_that_is_not_there():
    with pytest.raises(DeviceError, match="shows no 25GE1/0/9"):
        change(FIXTURE, state("cloudengine", roce_port("25GE1/0/9")))


INTERFACE = """\
25GE1/0/1 current state : UP (ifindex: 9)
Line protocol current state : UP
    Input:
      Unicast:            11,657,620,879,   Multicast:                     695
      Broadcast:                    5,   Jumbo:                           0
      Discard:                      7,   Frames:                          0
      Pause:                        0

      Total Error:                  0
      CRC:                          2,   Giants:                          3

    Output:
      Unicast:              536390526,   Multicast:                     695
      Broadcast:                    0,   Jumbo:                           0
      Discard:                      9,   Buffers Purged:                  0
      Pause:                 18913700
MEth0/0/0 current state : UP
    Input:
      Unicast:                    1,   Multicast:                     2
"""
QUEUES = """\
 Queue   CIR/PIR              Passed     Pass Rate             Dropped     Drop Rate  Drop Time
        (% or kbps)   (Packets/Bytes)    (pps/bps)      (Packets/Bytes)    (pps/bps)
 ----------------------------------------------------------------------------------------------
     3         0                   6             0                   4             0          -
       100000000                1092             0                 400             0
 ----------------------------------------------------------------------------------------------
     6         0               1,200             0                   0             0          -
       100000000              84,000             0                   0             0
 ----------------------------------------------------------------------------------------------
"""


def test_counters():
    port = target("cloudengine", "25GE1/0/1")
    outputs = {"display interface": INTERFACE, queue_command("25GE1/0/1"): QUEUES}
    shown = MODULE.read_counters(port, outputs, 2.0)
    assert {(c.name, c.priority): c.value for c in shown.counters} == {
        ("rx_packets", None): 11_657_621_579,
        ("tx_packets", None): 536_391_221,
        ("rx_discards", None): 7,
        ("rx_crc_errors", None): 2,
        ("rx_mtu_drops", None): 3,
        ("tx_discards", None): 9,
        ("tx_queue_packets", 3): 6,
        ("tx_queue_bytes", 3): 1092,
        ("queue_drops", 3): 4,
        ("tx_queue_packets", 6): 1200,
        ("tx_queue_bytes", 6): 84_000,
        ("queue_drops", 6): 0,
    }
    assert {c.port for c in shown.counters} == {"25GE1/0/1"}
    assert any(reason.startswith("rx_pause_frames: no sample") for reason in shown.missing)
    assert len(MODULE.read_counters(port, {}, 2.0).missing) > len(shown.missing)


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        ("          ^\nError: Unrecognized command found at '^' position.", True),
        ("Error: The drop profile does not exist.", True),
        ("Info: Please save the configuration.", False),
        ("", False),
        ("#\nsysname a\n#\nheader login information Error: none\n#\nreturn", False),
    ],
)
def test_refusals(answer, refused):
    assert MODULE.is_error(answer) is refused


def test_the_safety_net_is_a_trial():
    net = MODULE.safety_net("run-1")
    assert net.edit.apply == ("commit trial 600",)
    assert "commit" in net.confirm


def test_names_and_lists():
    assert is_physical("100GE1/0/1")
    assert is_physical("25GE1/0/1:3")
    assert not is_physical("Eth-Trunk7")
    assert to_list((0, 1, 2, 7)) == "0 to 2 7"
    assert tuple(of_list("0 to 2 7")) == (0, 1, 2, 7)


def test_a_configuration_without_a_port_of_this_vendor_is_none():
    with pytest.raises(ReadError, match="shows no port"):
        read("#\ninterface Vlan7\n mtu 1500\n#\n")


def test_thresholds_that_ai_ecn_works_out_are_not_known():
    """Huawei, CloudEngine configuration guide, "Configuring AI ECN"."""
    assert "assign queue 4" in FIXTURE
    assert "AI ECN" in unseen(read(FIXTURE).unread, "25GE1/0/1", Fact.ECN)
    without = read(FIXTURE.replace("assign queue 4", "assign queue 5"))
    assert not unseen(without.unread, "25GE1/0/1", f"{Fact.ECN} queue 4")


@pytest.mark.parametrize("line", ["qos lr cir 1000 kbps outbound", "qos queue 3 shaping 10 gbps"])
def test_shapers_are_said(line):
    found = read(f"#\ninterface 25GE1/0/1\n {line}\n")
    assert line in unseen(found.unread, "25GE1/0/1", Fact.RATE)
