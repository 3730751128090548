from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from fabric.devices.base import ReadError
from fabric.devices.os10 import MODULE
from fabric.devices.os10.lines import interface_name, is_physical, numbers, ranges
from fabric.devices.registry import SWITCHES, load
from fabric.errors import DeviceError, InputError
from fabric.qos import Ecn, IngressBuffer, Neighbor, Queue, Scheduler
from fabric.unread import Fact, unseen
from tests.fabric.devices.intents import roce_port, state, switches, target
from tests.fabric.devices.typed import Typed

RUNNING = "show running-configuration"
PORTS = ("ethernet1/1/1", "ethernet1/1/49:2")
FIXTURE = (Path(__file__).parent / "fixtures" / "running-configuration.txt").read_text()
VERSION = """\
Dell SmartFabric OS10 Enterprise
Copyright (c) 1999-2023 by Dell Inc. All Rights Reserved.
OS Version: 10.5.4.2
Build Version: 10.5.4.2.187
System Type: S5248F-ON
Architecture: x86_64
Up Time: 3 days 04:12:55
"""
LLDP = """\
Loc PortID          Rem Host Name        Rem Port Id                    Rem Chassis Id
-----------------------------------------------------------------------------------------
ethernet1/1/1       gpu-17               ens1f0np0                      0c:42:a1:00:11:22
ethernet1/1/49:2    spine-1              ethernet1/1/3                  68:4f:64:00:33:44
mgmt1/1/1           oob                  Gi1/0/9                        00:11:22:33:44:55
"""


def test_the_entry_point_finds_the_module():
    assert load(SWITCHES, "os10") is MODULE
    assert (MODULE.os, MODULE.netmiko_type) == ("os10", "dell_os10")


def read(text: str, **outputs: str):
    return MODULE.read(target("os10", *PORTS), {RUNNING: text, **outputs})


def change(text: str, intended):
    return MODULE.change(target("os10", *PORTS), {RUNNING: text}, intended)


@settings(max_examples=30, deadline=None)
@given(switches("os10", PORTS))
def test_what_is_rendered_reads_back_as_the_same_on_every_port(intended):
    text = MODULE.render(intended)
    assert read(text).ports == MODULE.normalise(intended).ports
    assert MODULE.normalise(MODULE.normalise(intended)) == MODULE.normalise(intended)
    assert change(text, intended).empty


@settings(max_examples=25, deadline=None)
@given(switches("os10", PORTS), switches("os10", PORTS))
def test_a_change_reaches_what_is_intended_and_is_taken_back_exactly(first, second):
    switch = Typed(FIXTURE)
    untouched = switch.lines()
    there = change(switch.text(), first)
    switch.enter(there.commands)
    assert read(switch.text()).ports[:2] == MODULE.normalise(first).ports
    reached = switch.lines()
    again = change(switch.text(), second)
    switch.enter(again.commands)
    assert read(switch.text()).ports[:2] == MODULE.normalise(second).ports
    switch.enter(again.rollback)
    assert switch.lines() == reached
    switch.enter(there.rollback)
    assert switch.lines() == untouched


def test_what_is_not_ours_stays():
    made = change(FIXTURE, state("os10", roce_port("ethernet1/1/1")))
    switch = Typed(FIXTURE)
    switch.enter(made.commands)
    kept = switch.lines()
    for line in Typed(FIXTURE).lines():
        ours = line[0] == "interface ethernet1/1/1" and line[-1].startswith(
            ("mtu", "service-policy", "trust-map", "flowcontrol", "qos-map", "priority-flow")
        )
        assert line in kept or ours, line
    assert ("interface ethernet1/1/1", "description gpu-17") in kept
    assert "interface ethernet1/1/2" not in made.diff


def test_an_object_of_ours_that_somebody_else_uses_is_left():
    text = MODULE.render(state("os10", roce_port(PORTS[0]), roce_port(PORTS[1])))
    other = state("os10", roce_port(PORTS[0], kmin=200_000))
    made = change(text, other)
    assert not any("no wred" in line for line in made.commands)
    both = state("os10", *(roce_port(port, kmin=200_000) for port in PORTS))
    assert any(line.startswith("no wred") for line in change(text, both).commands)


def test_objects_come_before_their_users_and_go_after_them():
    text = MODULE.render(state("os10", roce_port(PORTS[0])))
    lines = change(text, state("os10", roce_port(PORTS[0], kmin=200_000))).commands
    first = [i for i, line in enumerate(lines) if line.startswith(("wred ", "policy-map "))]
    port = lines.index("interface ethernet1/1/1")
    last = [i for i, line in enumerate(lines) if line.startswith("no ")]
    assert max(first) < port < min(last)
    assert lines[last[0]].startswith("no policy-map type queuing paisoar-SCHED-")


def test_a_published_configuration():
    """Shapes of a Z9332F configuration and of the user guide; names and numbers are our own."""
    found = read(FIXTURE, **{"show version": VERSION, "show lldp neighbors": LLDP})
    port = found.port("ethernet1/1/1")
    assert port.mtu_bytes == 9184
    assert port.pfc_priorities == (3,)
    assert port.ingress_buffers == (IngressBuffer(3, 300_000, 200_000, 100_000),)
    assert port.trust == "dscp"
    assert port.priority_of_dscp(26) == 3
    assert port.queue(3) == Queue(3, Scheduler("ets", 60), Ecn(500_000, 1_500_000, 20))
    assert port.queue(6).scheduler == Scheduler("strict")
    bare = found.port("ethernet1/1/2")
    assert (bare.mtu_bytes, bare.trust, bare.pfc_priorities) == (1500, "none", ())
    assert found.port("ethernet1/1/49:2") is not None
    assert found.port("mgmt1/1/1") is None
    assert (found.model, found.firmware) == ("S5248F-ON", "10.5.4.2")
    assert found.neighbors == (
        Neighbor("ethernet1/1/1", "gpu-17", "ens1f0np0"),
        Neighbor("ethernet1/1/49:2", "spine-1", "ethernet1/1/3"),
    )
    assert any("live PFC" in reason for reason in found.unread)


def test_whether_it_is_saved():
    assert read(FIXTURE, **{"show startup-configuration": FIXTURE}).saved is True
    assert read(FIXTURE, **{"show startup-configuration": FIXTURE + "wred x\n"}).saved is False
    assert read(FIXTURE).saved is None


def test_policies_that_are_not_there_are_said():
    text = "interface ethernet1/1/1\n trust-map dscp lost\n"
    found = read(text)
    assert found.ports[0].trust == "dscp"
    said = "ethernet1/1/1: priority of DSCPs: trust dscp-map lost is not shown"
    assert said in found.unread
    for line in ("mtu many", "mtu 9,216"):
        with pytest.raises(ReadError, match="no number in 'mtu"):
            read(f"interface ethernet1/1/1\n {line}\n")
    with pytest.raises(ReadError, match="showed no configuration"):
        read("")


def test_what_os10_makes_of_an_intent():
    port = replace(roce_port("ethernet1/1/1"), mtu_bytes=9216)
    (held,) = MODULE.normalise(state("os10", port)).ports
    assert (held.mtu_bytes, held.watchdog) == (9184, None)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"trust": "pcp"}, "classifies by DSCP"),
        ({"link_pause": True}, "pause the link"),
        ({"ingress_buffers": ()}, "size buffers of other priorities"),
    ],
)
def test_what_os10_cannot_do_is_refused(changed, said):
    with pytest.raises(InputError, match=said):
        MODULE.render(state("os10", replace(roce_port("ethernet1/1/1"), **changed)))


def test_a_port_that_is_not_there():
    with pytest.raises(DeviceError, match="shows no ethernet1/1/9"):
        change(FIXTURE, state("os10", roce_port("ethernet1/1/9")))


COUNTERS = """\
ethernet 1/1/1 is up, line protocol is up
Hardware is Eth, address is 68:4f:64:01:02:03
MTU 9216 bytes, IP MTU 9184 bytes
Input statistics:
     1,204 packets, 118022 octets
     3 64-byte pkts, 1 over 64-byte pkts
     0 runts, 0 giants, 0 throttles
     2 CRC, 0 overrun, 7 discarded
Output statistics:
     900 packets, 64000 octets
     0 throttles, 5 discarded, 0 Collisions,  wred drops
Rate Info(interval 30 seconds):
     Input 0 Mbits/sec, 11 packets/sec, 0% of line rate
mgmt 1/1/1 is up, line protocol is up
Input statistics:
     5 packets, 6 octets
"""


def test_counters():
    shown = MODULE.read_counters(target("os10", "ethernet1/1/1"), {"show interface": COUNTERS}, 2.0)
    assert {(c.port, c.name): c.value for c in shown.counters} == {
        ("ethernet1/1/1", "rx_packets"): 1204,
        ("ethernet1/1/1", "rx_bytes"): 118022,
        ("ethernet1/1/1", "rx_crc_errors"): 2,
        ("ethernet1/1/1", "rx_discards"): 7,
        ("ethernet1/1/1", "tx_packets"): 900,
        ("ethernet1/1/1", "tx_bytes"): 64000,
        ("ethernet1/1/1", "tx_discards"): 5,
    }
    assert any(reason.startswith("ecn_marked_packets: no sample") for reason in shown.missing)
    none = MODULE.read_counters(target("os10", "ethernet1/1/1"), {}, 2.0)
    assert "rx_packets: 'show interface' does not show it for ethernet1/1/1" in none.missing


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        ("% Error: Illegal parameter.", True),
        ("\n% Error: Unrecognized command.\n", True),
        ("%Error: QoS policy-map does not exist", True),
        ("", False),
        ("! Version 10.5.4.2\nbanner % Error: no\n", False),
    ],
)
def test_refusals(answer, refused):
    assert MODULE.is_error(answer) is refused


def test_the_safety_net_is_a_transaction():
    net = MODULE.safety_net("run-1")
    assert net.prepare == ("start transaction",)
    assert net.edit.apply == ("end", "commit")
    assert net.edit.discard == ("end", "discard")


def test_names_and_numbers():
    assert interface_name("Eth 1/1/5") == "ethernet1/1/5"
    assert is_physical("ethernet1/1/5:4")
    assert not is_physical("vlan20")
    assert numbers("0-2, 7") == (0, 1, 2, 7)
    assert ranges((0, 1, 2, 7)) == "0-2,7"


def test_a_configuration_without_a_port_of_this_vendor_is_none():
    with pytest.raises(ReadError, match="shows no port"):
        read("#\ninterface Vlan7\n mtu 1500\n#\n")


def test_a_trust_map_of_the_whole_system_holds_for_all_ports():
    """Dell, SmartFabric OS10 User Guide, "Trust-based classification": also in system-qos."""
    text = (
        "trust dscp-map ROCE\n qos-group 3 dscp 26\n!\n"
        "interface ethernet1/1/1\n!\nsystem qos\n trust-map dscp ROCE\n"
    )
    port = read(text).ports[0]
    assert (port.trust, port.dscp_to_priority[26]) == ("dscp", 3)
    by_pcp = text.replace("trust-map dscp ROCE", "trust-map dot1p trust_map")
    assert read(by_pcp).ports[0].trust == "pcp"


def test_shapers_are_said():
    text = (
        "class-map type queuing c3\n match queue 3\npolicy-map type queuing p\n class c3\n"
        "  shape min mbps 1 max mbps 5\ninterface ethernet1/1/1\n"
        " service-policy output type queuing p\n"
    )
    assert "shape min" in unseen(read(text).unread, "ethernet1/1/1", Fact.RATE)
