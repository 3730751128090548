"""What the emulated ``show`` commands print: the vendor's columns, our state in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabric.counters import Counter
from fabric.site import Site
from fabric.twin.nxos import EmulatedSwitch
from tests.fabric.twin.consoles import Console


def row(text: str, start: str) -> list[str]:
    """The words of the only line that starts this way."""
    (line,) = [line for line in text.splitlines() if line.split()[:1] == [start]]
    return line.split()


def count(switch: EmulatedSwitch, port: str = "Ethernet1/1", **values: int) -> None:
    """Add counters; a name like ``queue_drops_3`` counts in priority 3."""
    deltas = []
    for name, value in values.items():
        stem, _, last = name.rpartition("_")
        priority = int(last) if last.isdigit() else None
        deltas.append(Counter(switch.name, port, stem if last.isdigit() else name, value, priority))
    switch.add_counters(deltas)


def test_version_and_inventory_name_model_serial_and_release(
    console: Console, leaf: EmulatedSwitch
):
    text = console.type("show version")
    assert "  NXOS: version 10.5(2)\n" in text
    assert "  cisco Nexus9000 C93180YC-FX Chassis\n" in text
    assert f"  Processor Board ID {leaf.serial}\n" in text
    assert f"PID: N9K-C93180YC-FX     ,  VID: V01 ,  SN: {leaf.serial}" in console.type("show inv")


def test_running_and_startup_have_the_vendors_header(console: Console):
    lines = console.type("show running-config").splitlines()
    assert lines[0] == ""
    assert lines[1] == "!Command: show running-config"
    assert lines[2].startswith("!Running configuration last done at: ")
    assert lines[3].startswith("!Time: ")
    assert lines[5] == "version 10.5(2) Bios:version 05.53 "
    startup = console.type("show startup-config").splitlines()
    assert startup[1] == "!Command: show startup-config"
    assert startup[3].startswith("!Startup config saved at: ")


def test_saving_makes_startup_the_running_configuration(console: Console):
    console.type("conf t", "interface e1/1", "mtu 9216", "end")
    assert "mtu 9216" not in console.type("show startup-config")
    assert "Copy complete." in console.type("copy running-config startup-config")
    assert "mtu 9216" in console.type("show startup-config")


def test_running_config_of_an_interface_and_of_ipqos(console: Console):
    console.configure_roce()
    text = console.type("show running-config interface e1/1")
    assert text.startswith("\n!Command: show running-config interface Ethernet1/1\n")
    assert "interface Ethernet1/2" not in text
    qos = console.type("show running-config ipqos")
    assert "policy-map type network-qos NQ" in qos
    assert "  priority-flow-control mode on" in qos
    assert "ospf" not in qos


def test_pfc_table_shows_mode_bitmap_and_frames(console: Console, leaf: EmulatedSwitch):
    console.configure_roce()
    count(leaf, rx_pause_frames_3=7, tx_pause_frames_3=11)
    text = console.type("show interface priority-flow-control")
    assert text.splitlines()[1] == "Port               Mode Oper(VL bmap)  RxPPP      TxPPP     "
    assert row(text, "Ethernet1/1") == ["Ethernet1/1", "On", "On", "(8)", "7", "11"]
    assert row(text, "Ethernet1/2") == ["Ethernet1/2", "Auto", "Off", "0", "0"]
    one = console.type("show interface e1/1 priority-flow-control")
    assert "Ethernet1/2" not in one


def test_auto_operates_between_switches_that_agree_and_not_with_a_plain_nic(
    switches: dict[str, EmulatedSwitch],
):
    leaf, spine = Console(switches["leaf1"]), Console(switches["spine1"])
    nq = ("policy-map type network-qos NQ", "class type network-qos c-8q-nq3", "pause pfc-cos 3")
    leaf.type("conf t", *nq, "system qos", "service-policy type network-qos NQ", "end")

    def oper(port: str) -> str:
        return row(leaf.type("show interface priority-flow-control"), port)[2]

    assert oper("Ethernet1/49") == "Off"
    spine.type("conf t", *nq, "system qos", "service-policy type network-qos NQ", "end")
    assert oper("Ethernet1/49") == "On"
    assert oper("Ethernet1/1") == "Off"
    spine.type("conf t", "interface e1/1", "priority-flow-control mode on")
    assert oper("Ethernet1/49") == "Off", "mode on without send-tlv does not negotiate"
    spine.type("priority-flow-control mode on send-tlv")
    assert oper("Ethernet1/49") == "On"
    spine.type("no feature lldp")
    assert oper("Ethernet1/49") == "Off"
    spine.type("feature lldp")
    leaf.type("conf t", "interface e1/49", "priority-flow-control mode off")
    assert oper("Ethernet1/49") == "Off"


def test_queuing_shows_each_groups_counters(console: Console, leaf: EmulatedSwitch):
    console.configure_roce()
    count(
        leaf, tx_queue_packets_3=5, tx_queue_bytes_3=5000, queue_drops_3=2, ecn_marked_packets_3=1
    )
    count(leaf, rx_discards=9, tx_pause_frames_3=4, rx_pause_frames_3=6)
    text = console.type("show queuing interface ethernet 1/1")
    group = text.split("QOS GROUP 3")[1].split("QOS GROUP 4")[0]
    assert "|                   Tx Pkts |               5|               0|" in group
    assert "|                   Tx Byts |            5000|               0|" in group
    assert "| WRED/AFD & Tail Drop Pkts |               2|               0|" in group
    assert "|                  ECN Pkts |               1|               0|" in group
    assert "Egress Queuing for Ethernet1/1 [System]" in text
    assert "      3            50         -" in text
    assert "      6             -         1" in text
    assert "      3         174586       150000       140000" in text
    assert "Ingress MMU Drop Pkts" in text
    assert row(text, "TxPPP:") == ["TxPPP:", "4,", "RxPPP:", "6"]
    (cos,) = [x for x in text.split("PFC_COS")[1].splitlines() if x.split()[:1] == ["3"]]
    assert cos.split() == ["3", "3", "Inactive", "4", "Inactive", "6"]


def test_watchdog_shows_storms_of_no_drop_queues(console: Console, leaf: EmulatedSwitch):
    console.configure_roce()
    count(leaf, watchdog_storms_3=2)
    text = console.type("show queuing pfc-queue interface e1/1 detail")
    assert "Ethernet1/1 Interface PFC watchdog: [Enabled]" in text
    assert "| QOS GROUP 3 [Active] PFC [YES] PFC-COS [3]" in text
    assert "|                       Shutdown|                   2|" in text
    console.type("conf t", "no priority-flow-control watch-dog-interval")
    console.type("interface e1/1", "no priority-flow-control watch-dog-interval")
    assert "PFC watchdog: [Disabled]" in console.type("show queuing pfc-queue interface e1/1")


def test_interface_shows_state_mtu_and_counters(console: Console, leaf: EmulatedSwitch):
    count(leaf, rx_packets=10, rx_bytes=1000, tx_packets=20, tx_bytes=2000, rx_discards=3)
    count(leaf, tx_discards=4, rx_mtu_drops=5, rx_crc_errors=6)
    text = console.type("show interface e1/1")
    assert text.startswith("Ethernet1/1 is up\nadmin state is up")
    for line in (
        "  Description: host1 ens1f0 25G",
        "  MTU 1500 bytes, BW 25000000 Kbit , DLY 10 usec",
        "    10 input packets  1000 bytes",
        "    20 output packets  2000 bytes",
        "    0 runts  5 giants  6 CRC  0 no buffer",
        "    0 input with dribble  3 input discard",
        "    0 lost carrier  0 no carrier  0 babble  4 output discard",
    ):
        assert line in text.splitlines()
    errors = console.type("show interface e1/1 counters errors")
    assert [line.split() for line in errors.splitlines() if line.startswith("Eth1/1")] == [
        ["Eth1/1", "0", "6", "0", "11", "0", "4"],
        ["Eth1/1", "0", "0", "0", "0", "0", "0"],
        ["Eth1/1", "5", "0", "0", "0", "0", "0"],
        ["Eth1/1", "3"],
    ]
    assert "1000" in console.type("show interface e1/1 counters")


def test_an_interface_is_up_when_cabled_and_shut_on_neither_end(
    switches: dict[str, EmulatedSwitch],
):
    leaf, spine = Console(switches["leaf1"]), Console(switches["spine1"])
    assert "Ethernet1/3 is down (Link not connected)" in leaf.type("show interface e1/3")
    spine.type("conf t", "interface e1/1", "shutdown")
    assert "Ethernet1/49 is down" in leaf.type("show interface e1/49")
    assert "is down (Administratively down)" in spine.type("show interface e1/1")
    assert row(leaf.type("show interface status"), "Eth1/1")[-4:-1] == ["routed", "full", "25G"]
    assert row(leaf.type("show interface brief"), "Eth1/49")[4] == "down"


def test_lldp_lists_the_other_ends_of_the_cables(console: Console):
    text = console.type("show lldp neighbors")
    assert row(text, "host1") == ["host1", "Eth1/1", "120", "S", "ens1f0"]
    assert row(text, "spine1") == ["spine1", "Eth1/49", "120", "BR", "Eth1/1"]
    assert text.rstrip().endswith("Total entries displayed: 3")
    assert "Total entries displayed: 1" in console.type("show lldp neighbors interface e1/1")


def test_flowcontrol_shows_link_pause(console: Console):
    console.type("conf t", "interface e1/2", "flowcontrol receive on")
    words = row(console.type("show interface flowcontrol"), "Eth1/2")
    assert words == ["Eth1/2", "off", "off", "on", "on", "0", "0"]


def test_policies_are_shown_by_type(console: Console):
    default = console.type("show policy-map system type network-qos")
    assert "policy-map type network-qos default-8q-nq-policy" in default
    console.configure_roce()
    text = console.type("show policy-map system type network-qos")
    assert "policy-map type network-qos NQ" in text
    assert "      pause pfc-cos 3" in text
    assert "policy-map type queuing OUT" in console.type("show policy-map type queuing OUT")
    assert "does not exist" in console.refused("show policy-map type qos NONE")
    assert "match dscp 26" in console.type("show class-map type qos ROCE")


@pytest.mark.parametrize(
    ("pipe", "lines"),
    [
        ("include 'feature l'", ["feature lldp"]),
        ("inc lldp | count", ["1"]),
        ("section ^router", ["router ospf UNDERLAY", "  router-id 10.254.0.1"]),
        ("no-more | include hostname", ["hostname leaf1"]),
        ("begin ^router", ["router ospf UNDERLAY", "  router-id 10.254.0.1"]),
        ("last 1", ["  router-id 10.254.0.1"]),
    ],
)
def test_output_filters(console: Console, pipe, lines):
    found = console.type(f"show running-config | {pipe}").splitlines()
    assert found == lines


@pytest.mark.parametrize("pipe", ["", "foo", "include", "no-more 3", "last x", "include ("])
def test_wrong_filters_are_refused(console: Console, pipe):
    assert "at '^' marker." in console.refused(f"show running-config | {pipe}")


def test_counters_survive_a_restart_and_are_cleared_on_request(
    console: Console, leaf: EmulatedSwitch, site: Site, tmp_path: Path
):
    count(leaf, rx_packets=3)
    count(leaf, rx_packets=4)
    count(leaf, "Ethernet1/2", rx_packets=1)
    again = EmulatedSwitch("leaf1", tmp_path / "devices/leaf1", site)
    assert again.counter("Ethernet1/1", "rx_packets") == 7
    Console(again).type("clear counters interface e1/1")
    assert again.counter("Ethernet1/1", "rx_packets") == 0
    assert again.counter("Ethernet1/2", "rx_packets") == 1
