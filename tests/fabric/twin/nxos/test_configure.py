"""What the emulated configuration modes take, refuse and print.

NX-OS 10.5(x) on Nexus 9000; sources in the modules under test and in the
reference of each case.
"""

from __future__ import annotations

import pytest

from fabric.twin.nxos import EmulatedSwitch
from tests.fabric.twin.consoles import Console


@pytest.fixture
def config(console: Console) -> Console:
    console.type("configure terminal")
    return console


def test_a_complete_lossless_configuration_is_printed_in_the_vendors_layout(console: Console):
    console.configure_roce()
    text = console.running()
    assert (
        """\
hostname leaf1
policy-map type network-qos NQ
  class type network-qos c-8q-nq3
    mtu 9216
    pause pfc-cos 3
  class type network-qos c-8q-nq-default
    mtu 9216
priority-flow-control watch-dog-interval on
priority-flow-control watch-dog shutdown-multiplier 2
"""
        in text
    )
    assert (
        """\
class-map type qos match-any ROCE
  match dscp 26
class-map type qos match-any CNP
  match dscp 48
policy-map type qos IN
  class ROCE
    set qos-group 3
  class CNP
    set qos-group 6
policy-map type queuing OUT
  class type queuing c-out-8q-q6
    priority level 1
  class type queuing c-out-8q-q3
    bandwidth remaining percent 50
    random-detect minimum-threshold 100 kbytes maximum-threshold 400 kbytes \
drop-probability 20 weight 0 ecn
  class type queuing c-out-8q-q-default
    bandwidth remaining percent 50
policy-map type queuing BUFFERS
  class type queuing c-in-q3
    pause buffer-size 174586 pause-threshold 150000 resume-threshold 140000
system qos
  service-policy type queuing output OUT
  service-policy type network-qos NQ
"""
        in text
    )
    assert (
        """\
interface Ethernet1/1
  description host1 ens1f0 25G
  no switchport
  priority-flow-control mode on
  priority-flow-control watch-dog-interval on
  mtu 9216
  service-policy type qos input IN
  service-policy type queuing input BUFFERS
  medium p2p
  ip unnumbered loopback0
  ip router ospf UNDERLAY area 0.0.0.0
  no shutdown
"""
        in text
    )


def test_a_new_switch_has_a_base_configuration_and_factory_qos(console: Console):
    text = console.running()
    for line in ("feature lldp", "router ospf UNDERLAY", "interface mgmt0", "boot nxos"):
        assert line in text
    for word in ("policy-map", "class-map", "priority-flow-control", "mtu", "system qos"):
        assert word not in text


# Commands that blogs give and a Nexus 9000 does not take.
@pytest.mark.parametrize(
    ("where", "line", "says"),
    [
        ((), "feature qos", "% Invalid command at '^' marker."),
        (
            ("policy-map type network-qos P",),
            "class type network-qos c-out-8q-q3",
            "ERROR: class-map type network-qos c-out-8q-q3 does not exist",
        ),
        (
            ("policy-map type queuing P", "class type queuing c-out-8q-q3"),
            "random-detect ecn",
            "% Invalid command at '^' marker.",
        ),
        (
            ("policy-map type queuing P", "class type queuing c-out-8q-q3"),
            "pause no-drop",
            "% Invalid command at '^' marker.",
        ),
        (
            ("policy-map type network-qos P", "class type network-qos c-8q-nq3"),
            "pause no-drop",
            "% Invalid command at '^' marker.",
        ),
        (
            ("policy-map type network-qos P",),
            "class type network-qos class-default",
            "ERROR: class-map type network-qos class-default does not exist",
        ),
        (
            ("policy-map type queuing P",),
            "class type queuing class-default",
            "ERROR: class-map type queuing class-default does not exist",
        ),
        (
            ("interface Ethernet1/1",),
            "priority-flow-control watch-dog-interval 200",
            "% Invalid command at '^' marker.",
        ),
        (("interface Ethernet1/1",), "qos trust dscp", "% Invalid command at '^' marker."),
        (
            ("interface Ethernet1/1",),
            "service-policy type network-qos input P",
            "% Invalid command at '^' marker.",
        ),
        ((), "dcb enable", "% Invalid command at '^' marker."),
        ((), "congestion-control random-detect forward-nonecn", "% Invalid command at '^' marker."),
    ],
)
def test_invalid_lines_that_are_common_in_blogs_are_refused(config: Console, where, line, says):
    config.type(*where)
    assert says in config.refused(line)


@pytest.mark.parametrize(
    ("where", "line", "says"),
    [
        (("interface e1/1",), "service-policy type qos input NONE", "does not exist"),
        (("interface e1/1",), "service-policy type queuing output NONE", "does not exist"),
        (("interface e1/1",), "service-policy type queuing output BUFFERS", "cannot be attached"),
        (("interface e1/1",), "service-policy type qos input IN2", "already attached"),
        (("interface e1/2",), "no service-policy type qos input IN", "not attached"),
        (("interface e1/1",), "mtu 9999", "Invalid range at '^' marker."),
        ((), "interface e1/99", "does not exist"),
        (("system qos",), "service-policy type network-qos NONE", "does not exist"),
        (("system qos",), "service-policy type network-qos NQ2", "already attached"),
        (("system qos",), "service-policy type queuing output OUT2", "already attached"),
        ((), "no policy-map type network-qos NQ", "in use by system qos"),
        ((), "no policy-map type queuing OUT", "in use by system qos"),
        ((), "no policy-map type qos IN", "in use by Ethernet1/1"),
        ((), "no class-map type qos match-any ROCE", "in use by policy-map type qos IN"),
        ((), "policy-map type queuing default-8q-out-policy", "system defined"),
        ((), "class-map type qos match-all ROCE", "exists as match-any"),
        (("policy-map type qos IN",), "class NONE", "does not exist"),
        (("policy-map type qos IN", "class ROCE"), "set qos-group 8", "Invalid range"),
        (("class-map type qos ROCE",), "match dscp 64", "Invalid range"),
        (("policy-map type network-qos NQ", "class type network-qos c-8q-nq4"), "pause pfc-cos 3",
         "used by class c-8q-nq3"),
        (("policy-map type queuing OUT",), "class type queuing c-in-q3", "go different ways"),
        (("policy-map type queuing OUT", "class type queuing c-out-8q-q6"),
         "bandwidth remaining percent 10", "exclude each other"),
        (("policy-map type queuing OUT", "class type queuing c-out-8q-q3"),
         "bandwidth remaining percent 60", "would be 110 percent"),
        (("policy-map type queuing OUT", "class type queuing c-out-8q-q3"), "priority level 1",
         "exclude each other"),
        (("policy-map type queuing OUT", "class type queuing c-out-8q-q3"),
         "random-detect minimum-threshold 5 mbytes maximum-threshold 400 kbytes "
         "drop-probability 20 weight 0 ecn", "must not be greater"),
        (("policy-map type queuing BUFFERS", "class type queuing c-in-q3"),
         "pause buffer-size 20000 pause-threshold 15000 resume-threshold 14000", "at least 27456"),
        (("policy-map type queuing BUFFERS", "class type queuing c-in-q3"),
         "pause buffer-size 30000 pause-threshold 15000 resume-threshold 16000", "must hold"),
        (("policy-map type queuing BUFFERS", "class type queuing c-in-q3"),
         "bandwidth remaining percent 5", "not supported in class c-in-q3"),
        (("interface e1/1",), "flowcontrol receive on", "priority-flow-control is on"),
        ((), "no interface Ethernet1/2", "cannot be removed"),
        ((), "interface Vlan10", "feature interface-vlan is not enabled"),
        (("interface e1/1",), "switchport access vlan 5", "needs a switched port"),
    ],
)  # fmt: skip
def test_what_parses_and_still_cannot_be_is_an_error(console: Console, where, line, says):
    console.configure_roce()
    console.type("configure terminal", "policy-map type qos IN2", "policy-map type network-qos NQ2")
    console.type("policy-map type queuing OUT2")
    console.type("configure terminal", *where)
    before = console.running()
    text = console.refused(line)
    assert says in text
    assert text.startswith("ERROR:") or "at '^' marker." in text
    assert console.running() == before


def test_the_caret_stands_under_the_wrong_word_behind_the_prompt(config: Console):
    config.type("interface Ethernet1/1")
    answer = config.cli.execute("mtu big", interactive=True)
    assert (
        answer.text == f"{' ' * len('leaf1(config-if)# mtu ')}^\n% Invalid command at '^' marker.\n"
    )


def test_prompts_follow_the_modes(config: Console):
    prompts = {
        "interface e1/1": "config-if",
        "interface e1/1-4": "config-if-range",
        "class-map type qos match-any A": "config-cmap-qos",
        "policy-map type qos B": "config-pmap-qos",
        "class A": "config-pmap-c-qos",
        "policy-map type network-qos C": "config-pmap-nqos",
        "class type network-qos c-8q-nq3": "config-pmap-nqos-c",
        "policy-map type queuing D": "config-pmap-que",
        "class type queuing c-out-8q-q3": "config-pmap-c-que",
        "system qos": "config-sys-qos",
    }
    for line, mode in prompts.items():
        config.type(line)
        assert config.cli.prompt == f"leaf1({mode})# "
    config.type("exit")
    assert config.cli.prompt == "leaf1(config)# "
    config.type("hostname other")
    assert config.cli.prompt == "other(config)# "
    config.type("end")
    assert config.cli.prompt == "other# "


def test_a_range_configures_each_of_its_ports_or_none(config: Console, leaf: EmulatedSwitch):
    config.type("interface Ethernet1/1-2", "mtu 9216", "priority-flow-control mode on")
    assert [leaf.config.interfaces[f"Ethernet1/{n}"].mtu for n in (1, 2, 3)] == [9216, 9216, 1500]
    config.type("interface Ethernet1/2-3")
    assert "MTU on L2 interfaces" in config.refused("mtu 4000")
    assert leaf.config.interfaces["Ethernet1/2"].mtu == 9216


def test_no_forms_take_back_what_was_set(console: Console):
    before = console.running()
    console.configure_roce()
    console.type(
        "configure terminal",
        "interface e1/1",
        "no mtu 9216",
        "no priority-flow-control mode on",
        "no priority-flow-control watch-dog-interval on",
        "no service-policy type qos input IN",
        "no service-policy type queuing input BUFFERS",
        "system qos",
        "no service-policy type network-qos NQ",
        "no service-policy type queuing output OUT",
        "no priority-flow-control watch-dog-interval",
        "no priority-flow-control watch-dog shutdown-multiplier 2",
        "no policy-map type network-qos NQ",
        "no policy-map type queuing OUT",
        "no policy-map type queuing BUFFERS",
        "no policy-map type qos IN",
        "no class-map ROCE",
        "no class-map type qos match-any CNP",
    )
    assert console.running() == before


def test_several_commands_in_one_line_are_parted_by_a_blank_semicolon(console: Console):
    text = console.type("conf t ; int e1/1 ; mtu 9216 ; show run int e1/1 | inc mtu")
    assert text.splitlines()[-1] == "  mtu 9216"


def test_exec_commands_work_in_configuration_modes(config: Console):
    config.type("interface e1/1")
    assert "NXOS: version" in config.type("sh ver | inc NXOS")
    assert config.cli.prompt == "leaf1(config-if)# "


def test_configuring_what_another_session_removed_goes_nowhere(leaf: EmulatedSwitch):
    mine, other = Console(leaf), Console(leaf)
    mine.type("conf t", "policy-map type queuing Q", "class type queuing c-out-8q-q3")
    other.type("conf t", "no policy-map type queuing Q")
    assert "Invalid command" in mine.refused("bandwidth remaining percent 5")
    assert mine.cli.prompt == "leaf1(config)# "


def test_match_lines_add_up_and_no_takes_away(config: Console):
    config.type("class-map type qos match-any A", "match dscp 26", "match dscp 24-25,af33")
    assert "match dscp 24-26,30" in config.running()
    config.type("no match dscp 25")
    assert "match dscp 24,26,30" in config.running()


def test_class_default_stays_last_in_a_policy(config: Console):
    config.type("class-map type qos match-any A", "policy-map type qos P")
    config.type("class class-default", "set qos-group 0", "class A", "set qos-group 3")
    text = config.running()
    assert text.index("class A") < text.index("class class-default")


def test_vlans_and_their_names_are_kept(config: Console):
    config.type("vlan 10-12", "vlan 10", "name STORAGE", "exit", "no vlan 12")
    text = config.running()
    assert "vlan 1,10-11\nvlan 10\n  name STORAGE\n" in text


def test_question_mark_lists_what_may_follow(config: Console):
    config.type("interface e1/1")
    assert config.cli.help("priority-flow-control mode ") == ["auto", "off", "on"]
    assert "show" in config.cli.help("sh")
    assert config.cli.help("mtu ") == ["<576-9216>"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("snmp-server location row 1", "snmp-server location row 2"),
        ("snmp-server contact a", "snmp-server contact b c"),
        ("ip domain-name a.example", "ip domain-name b.example"),
        ("ntp server 192.0.2.1", "ntp server 192.0.2.1 use-vrf management"),
        ("logging console 3", "logging console 5"),
        ("clock timezone CET 1 0", "clock timezone UTC 0 0"),
        ("system jumbomtu 9000", "system jumbomtu 9216"),
        ("copp profile strict", "copp profile dense"),
        ("cli alias name wr write", "cli alias name wr copy run start"),
        (
            "username a password 5 $5$x role network-admin",
            "username a password 5 $5$y role network-operator",
        ),
        ("hostname a", "hostname b"),
    ],
)
def test_what_has_one_value_keeps_the_last_one(config: Console, first: str, second: str):
    config.type(first)
    config.type("ntp server 192.0.2.9")
    config.type(second)
    config.type("end")
    lines = config.running().splitlines()
    assert lines.count(second) == 1
    assert first not in lines
    assert "ntp server 192.0.2.9" in lines


def test_what_may_be_there_many_times_is(config: Console):
    many = ("ip name-server 192.0.2.1", "ip name-server 192.0.2.2", "ip route 0.0.0.0/0 192.0.2.1")
    for line in (*many, *many):
        config.type(line)
    config.type("end")
    lines = config.running().splitlines()
    assert all(lines.count(line) == 1 for line in many)


def test_a_line_of_a_mode_is_replaced_too(config: Console):
    for line in ("line vty", "exec-timeout 5", "session-limit 3", "exec-timeout 0", "end"):
        config.type(line)
    text = config.running()
    assert "  exec-timeout 0\n" in text
    assert "exec-timeout 5" not in text
    assert "  session-limit 3\n" in text
