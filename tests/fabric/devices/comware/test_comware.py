from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from fabric.devices.base import ReadError
from fabric.devices.comware import MODULE
from fabric.devices.comware.counters import QUEUES
from fabric.devices.comware.lines import is_physical, of_list, port_number
from fabric.devices.comware.read import PFC
from fabric.devices.comware.shown import parse_neighbors, parse_pfc
from fabric.devices.hashes import lines_of
from fabric.devices.registry import SWITCHES, load
from fabric.errors import DeviceError, InputError
from fabric.qos import Ecn, IngressBuffer, Neighbor, Queue, Scheduler
from fabric.unread import Fact, unseen
from tests.fabric.devices.intents import roce_port, state, switches, target
from tests.fabric.devices.typed import Typed

RUNNING = "display current-configuration"
PORTS = ("HundredGigE1/0/1", "HundredGigE1/0/49:2")
FIXTURE = (Path(__file__).parent / "fixtures" / "display-current-configuration.txt").read_text()
ONE_VALUE = (
    "jumboframe enable ",
    "qos trust ",
    "priority-flow-control no-drop dot1p ",
    "qos wred apply ",
    *(f"import {n} " for n in range(64)),
    *(
        f"priority-flow-control dot1p {n} {what} "
        for n in range(8)
        for what in ("headroom", "ingress-buffer", "ingress-threshold-offset")
    ),
    *(f"qos wred queue {n} drop-level {level} " for n in range(8) for level in range(3)),
    *(f"qos wfq {name} " for name in ("be", "af1", "af2", "af3", "af4", "ef", "cs6", "cs7")),
)
# What these take away on a switch, as far as the configuration's own lines go.
REMOVES = {
    "priority-flow-control": r"priority-flow-control (?:enable|auto)",
    "qos wfq": r"qos wfq (?:byte-count|weight)",
    "qos wrr": r"qos wrr (?:byte-count|weight)",
}


def switch() -> Typed:
    text = "\n".join(line for line in lines_of(FIXTURE) if not line.startswith(" version "))
    return Typed(text, negation="undo", one_value=ONE_VALUE, removes=REMOVES)


def read(text: str, **outputs: str):
    return MODULE.read(target("comware", *PORTS), {RUNNING: text, **outputs})


def change(text: str, intended):
    return MODULE.change(target("comware", *PORTS), {RUNNING: text}, intended)


def test_the_entry_point_finds_the_module():
    assert load(SWITCHES, "comware") is MODULE
    assert (MODULE.os, MODULE.netmiko_type) == ("comware", "hp_comware")


@settings(max_examples=30, deadline=None)
@given(switches("comware", PORTS))
def test_what_is_rendered_reads_back_as_the_same_on_every_port(intended):
    text = MODULE.render(intended)
    assert read(text).ports == MODULE.normalise(intended).ports
    assert MODULE.normalise(MODULE.normalise(intended)) == MODULE.normalise(intended)
    assert change(text, intended).empty


@settings(max_examples=25, deadline=None)
@given(switches("comware", PORTS), switches("comware", PORTS))
def test_a_change_reaches_what_is_intended_and_is_taken_back_exactly(first, second):
    held = switch()
    # A line for several values is one line a value once it is put back.
    held.enter(["qos map-table dscp-dot1p", "  undo import 30 to 31 export 1"])
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


@pytest.mark.parametrize("asked", [0.5, 0.3, 1 / 128, 100.0])
def test_a_share_of_the_buffer(asked):
    (buffer,) = roce_port(PORTS[0]).ingress_buffers
    port = replace(roce_port(PORTS[0]), ingress_buffers=(replace(buffer, alpha=asked),))
    intended = state("comware", port)
    assert "ingress-buffer dynamic " in MODULE.render(intended)
    assert read(MODULE.render(intended)).ports == MODULE.normalise(intended).ports
    assert MODULE.normalise(MODULE.normalise(intended)) == MODULE.normalise(intended)


def test_what_is_not_ours_stays():
    held = switch()
    before = held.lines()
    held.enter(change(FIXTURE, state("comware", roce_port(PORTS[0]))).commands)
    gone = before - held.lines()
    tables = {"qos map-table dscp-dot1p", "qos map-table dot1p-lp"}
    assert {line[0] for line in gone} <= {f"interface {PORTS[0]}", *tables}
    kept = (f"interface {PORTS[0]}", "priority-flow-control deadlock enable")
    assert kept in held.lines()
    assert (f"interface {PORTS[1]}", "qos wrr byte-count") in held.lines()


def test_tables_may_show_what_goes_without_saying():
    eighths = tuple(dscp // 8 for dscp in range(64))
    port = replace(roce_port(PORTS[0]), dscp_to_priority=eighths)
    intended = state("comware", port)
    text = MODULE.render(intended)
    assert "import" not in text.partition("dot1p-lp")[0]
    shown = text.replace("dscp-dot1p\n", "dscp-dot1p\n import 63 export 7\n")
    assert shown != text
    assert change(shown, intended).empty
    wrong = text.replace("dscp-dot1p\n", "dscp-dot1p\n import 63 export 6\n")
    assert change(wrong, intended).commands == ("qos map-table dscp-dot1p", "  undo import 63")


def test_a_published_configuration():
    """Shapes of published FourHundredGigE ports; names and numbers are our own."""
    found = read(FIXTURE)
    port = found.port("HundredGigE1/0/1")
    assert (port.mtu_bytes, port.trust, port.pfc_priorities) == (9198, "dscp", (5,))
    assert (port.priority_of_dscp(26), port.priority_of_dscp(31)) == (5, 1)
    assert port.priority_of_dscp(24) == 3
    assert port.priority_to_class == tuple(range(8))
    assert port.queue(5) == Queue(5, Scheduler("ets", 96), Ecn(6000 * 256, 12_000 * 256, 40))
    assert port.queue(6).scheduler == Scheduler("strict")
    assert port.ingress_buffers == (IngressBuffer(5, 2048 * 256, 48 * 256, 0, 0.5),)
    bare = found.port("HundredGigE1/0/2")
    assert (bare.trust, bare.link_pause) == ("pcp", True)
    assert "HundredGigE1/0/2: MTU: it has the model's default" in found.unread
    assert any("400G-WRED-Template" in reason for reason in found.unread)
    assert any("HundredGigE1/0/49:2: scheduling of" in reason for reason in found.unread)
    assert {p.name for p in found.ports} == {*PORTS, "HundredGigE1/0/2"}


LIVE = """\
Interface                        AdminMode  OperMode  Dot1pList   Prio  Recv
   Send       Inpps      Outpps
-------------------------------------------------------------------------------
HGE1/0/1                         Enabled    Enabled   0,3-4       0     5          6  3  3
                                                                  3     70         80 0  0
HGE1/0/2                         Enabled    Enabled               0     1          2  3  3
HGE1/0/49:2                      Auto       Disabled
"""


def test_the_live_pfc_state_goes_before_the_configured_one():
    found = read(FIXTURE, **{PFC: LIVE})
    assert found.port("HundredGigE1/0/1").pfc_priorities == (0, 3, 4)
    assert found.port("HundredGigE1/0/49:2").pfc_priorities == ()
    shown = parse_pfc(LIVE)
    assert shown["HGE1/0/1"].frames == {0: (5, 6), 3: (70, 80)}
    assert shown["HGE1/0/2"].priorities is None
    absent = read(FIXTURE, **{PFC: "Interface AdminMode\n"})
    assert absent.port("HundredGigE1/0/1").pfc_priorities == (5,)
    assert any("live PFC state of HundredGigE1/0/1" in reason for reason in absent.unread)


@pytest.mark.parametrize("at", ["interface HundredGigE1/0/49:2", "return"])
def test_a_configuration_that_was_cut_off_is_no_configuration(at):
    """``return`` comes last: H3C, command references, ``display current-configuration``."""
    cut = FIXTURE[: FIXTURE.index(at)]
    with pytest.raises(ReadError, match="seems cut off.*does not end with 'return'"):
        read(cut)
    with pytest.raises(ReadError, match="seems cut off"):
        change(cut, state("comware", roce_port(PORTS[0])))
    saved = read(FIXTURE, **{"display saved-configuration": cut})
    assert saved.saved is None
    assert any("does not end with 'return'" in reason for reason in saved.unread)


def test_a_frame_size_or_a_table_that_cannot_be_read_is_no_default():
    with pytest.raises(ReadError, match="no number in 'jumboframe enable many'"):
        read("#\ninterface HundredGigE1/0/1\n jumboframe enable many\n")
    text = "#\nqos map-table dscp-dot1p\n import all export 3\n#\ninterface HundredGigE1/0/1\n"
    assert any("HundredGigE1/0/1: priority of DSCPs: " in reason for reason in read(text).unread)


def test_facts_of_the_switch():
    version = (
        "H3C Comware Software, Version 7.1.070, Release 6635P07\n"
        "H3C S6850-56HF uptime is 3 weeks, 2 days\n"
    )
    found = read(FIXTURE, **{"display version": version})
    assert (found.model, found.firmware) == ("S6850-56HF", "7.1.070, Release 6635P07")
    saved = "#" + FIXTURE.partition("#")[2].replace("<leaf-1>\n", "")
    assert read(FIXTURE, **{"display saved-configuration": saved}).saved is True
    with pytest.raises(ReadError, match="showed no configuration"):
        read("")


@pytest.mark.parametrize(
    "text",
    [
        "System Name          Local Interface Chassis ID      Port ID\n"
        "spine-1              HGE1/0/1        70c6-dd00-1122  HundredGigE1/0/3\n"
        "oob                  M-GE0/0/0       70c6-dd00-1123  Gi1\n",
        "Local Interface Chassis ID      Port ID                    System Name\n"
        "HGE1/0/1        70c6-dd00-1122  HundredGigE1/0/3           spine-1\n"
        "HGE1/0/2        70c6-dd00-1124  ens1f0np0\n",
    ],
)
def test_neighbours_by_the_header_of_the_release(text):
    names = {"1/0/1": "HundredGigE1/0/1", "1/0/2": "HundredGigE1/0/2"}
    assert parse_neighbors(text, names) == (
        Neighbor("HundredGigE1/0/1", "spine-1", "HundredGigE1/0/3"),
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"trust": "pcp"}, "classifies by DSCP"),
        ({"link_pause": True}, "pause the link"),
        ({"ingress_buffers": ()}, "size buffers of other priorities"),
    ],
)
def test_what_comware_cannot_do_is_refused(changed, said):
    with pytest.raises(InputError, match=said):
        MODULE.render(state("comware", replace(roce_port(PORTS[0]), **changed)))


def test_ports_that_classify_otherwise_are_refused():
    other = replace(roce_port(PORTS[1]), dscp_to_priority=(1,) * 64)
    with pytest.raises(InputError, match="otherwise on other ports"):
        MODULE.render(state("comware", roce_port(PORTS[0]), other))


def test_a_port_that_is_not_there():
    with pytest.raises(DeviceError, match="shows no HundredGigE1/0/9"):
        change(FIXTURE, state("comware", roce_port("HundredGigE1/0/9")))


INTERFACE = """\
HundredGigE1/0/1
Current state: UP
Input (total):  1,117 packets, 140000 bytes
         5 unicasts, 0 broadcasts, 0 multicasts, 0 pauses
Input (normal):  1117 packets, - bytes
Input:  0 input errors, 0 runts, 3 giants, 0 throttles
         2 CRC, 0 frame, - overruns, 0 aborts
Output (total): 100 packets, 6400 bytes
Output: 0 output errors, - underruns, - buffer failures

Vlan-interface20
Input (total):  9 packets, 9 bytes
"""
QUEUE_TEXT = """\
Interface: HundredGigE1/0/1
 Direction: outbound
 Forwarded: 9 packets, 99 bytes
 Queue 3
  Forwarded: 100 packets, 8,000 bytes, 0 pps, 0 bps
  Dropped: 4 packets, 400 bytes
Interface: Vlan-interface20
 Queue 3
  Forwarded: 1 packets, 1 bytes, 0 pps, 0 bps
"""


def test_counters():
    outputs = {"display interface": INTERFACE, PFC: LIVE, QUEUES: QUEUE_TEXT}
    shown = MODULE.read_counters(target("comware", "HundredGigE1/0/1"), outputs, 2.0)
    assert {(c.name, c.priority): c.value for c in shown.counters} == {
        ("rx_packets", None): 1117,
        ("rx_bytes", None): 140_000,
        ("tx_packets", None): 100,
        ("tx_bytes", None): 6400,
        ("rx_crc_errors", None): 2,
        ("rx_mtu_drops", None): 3,
        ("rx_pause_frames", 0): 5,
        ("tx_pause_frames", 0): 6,
        ("rx_pause_frames", 3): 70,
        ("tx_pause_frames", 3): 80,
        ("tx_queue_packets", 3): 100,
        ("tx_queue_bytes", 3): 8000,
        ("queue_drops", 3): 4,
    }
    assert not any("does not show" in reason for reason in shown.missing)
    absent = MODULE.read_counters(target("comware", "HundredGigE1/0/2"), outputs, 2.0)
    assert f"queue_drops: '{QUEUES}' does not show it for HundredGigE1/0/2" in absent.missing
    none = MODULE.read_counters(target("comware", "HundredGigE1/0/1"), {}, 2.0)
    assert f"rx_pause_frames: '{PFC}' was not answered" in none.missing


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        ("              ^\n % Unrecognized command found at '^' position.", True),
        ("Error: The feature is not supported.", True),
        ("The operation failed due to insufficient resources.", True),
        ("", False),
        ("#\n header shell % Wrong parameter found\n#\nreturn", False),
    ],
)
def test_refusals(answer, refused):
    assert MODULE.is_error(answer) is refused


def test_the_safety_net_is_a_commit_delay():
    net = MODULE.safety_net("run-1")
    assert "configuration commit delay 10" in net.prepare
    assert net.confirm[1] == "configuration commit"


def test_names_and_lists():
    assert is_physical("HundredGigE1/0/49:2")
    assert is_physical("Ten-GigabitEthernet1/0/1")
    assert not any(
        map(is_physical, ("Vlan-interface20", "M-GigabitEthernet0/0/0", "HundredGigE1/0/1.10"))
    )
    assert port_number("HGE1/0/1") == port_number("HundredGigE1/0/1") == "1/0/1"
    assert tuple(of_list("0,3-5")) == (0, 3, 4, 5)
    assert tuple(of_list("30 to 31")) == (30, 31)


def test_a_configuration_without_a_port_of_this_vendor_is_none():
    with pytest.raises(ReadError, match="shows no port"):
        read("#\ninterface Vlan7\n mtu 1500\n#\n")


def test_pfc_of_system_view_holds_for_ports_that_say_nothing_of_it():
    """H3C, "Configuring PFC on interfaces": system view enables all Ethernet interfaces."""
    text = (
        "#\n priority-flow-control enable\n priority-flow-control no-drop dot1p 3\n"
        "#\ninterface HundredGigE1/0/1\n"
        "#\ninterface HundredGigE1/0/2\n priority-flow-control no-drop dot1p 5\n"
    )
    found = read(text)
    assert found.port("HundredGigE1/0/1").pfc_priorities == (3,)
    assert found.port("HundredGigE1/0/2").pfc_priorities == (5,)
    assert read(text.replace(" priority-flow-control enable\n", "")).ports[0].pfc_priorities == ()


def test_shapers_are_seen():
    """H3C, ACL and QoS command references: ``qos gts queue``, ``qos lr``; rates in kbit/s."""
    port = "#\ninterface HundredGigE1/0/1\n qos gts queue 6 cir 1000000 cbs 512000\n"
    assert read(port).ports[0].queue(6).max_rate_bps == 10**9
    found = read(port + " qos lr outbound cir 500000\n")
    assert unseen(found.unread, "HundredGigE1/0/1", Fact.RATE)


TABLE = """\
#
qos wred queue table T
 queue 5 drop-level 0 low-limit 6000 high-limit 12000 discard-probability 40
 queue 5 ecn
 queue 6 low-limit 100 high-limit 1000 discard-probability 10
#
interface HundredGigE1/0/1
 qos wred apply T
"""


def test_a_wred_table_is_followed():
    """Shape: HPE FlexFabric 11900, ACL and QoS Configuration Guide, WRED tables."""
    port = read(TABLE).ports[0]
    assert port.queue(5).ecn == Ecn(6000 * 256, 12_000 * 256, 40)
    assert port.queue(6).ecn is None
    all_levels = TABLE.replace("5 drop-level 0 ", "5 ")
    assert read(all_levels).ports[0].queue(5).ecn == port.queue(5).ecn


@pytest.mark.parametrize(
    ("line", "why"), [("queue 5 low", "thresholds"), ("table T", "WRED table")]
)
def test_what_a_wred_table_does_not_show_is_not_known(line, why):
    text = TABLE.replace("drop-level 0 ", "").replace(line, "x")
    unread = read(text).unread
    assert why in unseen(unread, "HundredGigE1/0/1", f"{Fact.ECN} queue 5")
