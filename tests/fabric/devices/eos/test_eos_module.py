from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings

from fabric.devices.base import ReadError
from fabric.devices.eos import MODULE
from fabric.devices.eos.lines import interface_name, is_physical
from fabric.devices.eos.shown import parse_pfc
from fabric.devices.registry import SWITCHES, load
from fabric.errors import DeviceError, InputError
from fabric.qos import Ecn, IngressBuffer, Neighbor, PortFacts, Queue, Scheduler, Watchdog
from fabric.unread import Fact, unseen
from tests.fabric.devices.eos.listings import RUNNING, outputs
from tests.fabric.devices.intents import roce_port, state, switches, target

PORTS = ("Ethernet1", "Ethernet49/1")


def read(**changed: str | None):
    return MODULE.read(target("eos", "Ethernet1"), outputs(**changed))


def test_the_entry_point_finds_the_module():
    assert load(SWITCHES, "eos") is MODULE
    assert (MODULE.os, MODULE.netmiko_type) == ("eos", "arista_eos")


@settings(max_examples=40, deadline=None)
@given(switches("eos", PORTS))
def test_what_is_rendered_reads_back_as_the_same_on_every_port(intended):
    text = MODULE.render(intended)
    held = MODULE.read(target("eos"), {"show running-config": text})
    assert held.ports == MODULE.normalise(intended).ports
    assert MODULE.normalise(MODULE.normalise(intended)) == MODULE.normalise(intended)
    assert MODULE.change(target("eos", *PORTS), {"show running-config": text}, intended).empty


@pytest.mark.parametrize(
    ("asked", "line"), [(None, "1/8"), (0.5, "1/2"), (0.3, "1/4"), (100.0, "8"), (2.0, "2")]
)
def test_the_threshold_is_the_nearest_share_that_eos_has(asked, line):
    (buffer,) = roce_port("Ethernet1").ingress_buffers
    port = replace(roce_port("Ethernet1"), ingress_buffers=(replace(buffer, alpha=asked),))
    assert f"ingress threshold {line}\n" in MODULE.render(state("eos", port))


def test_what_eos_makes_of_an_intent():
    port = replace(roce_port("Ethernet1"), mtu_bytes=9216, watchdog=Watchdog(205, None, "drop"))
    (held,) = MODULE.normalise(state("eos", port)).ports
    assert (held.mtu_bytes, held.class_mtu_bytes) == (9214, (9214,) * 8)
    assert held.queue(7).scheduler == Scheduler("strict")
    assert held.queue(5).scheduler == Scheduler("ets", 0)
    assert held.ingress_buffers == (IngressBuffer(3, 33_000, 10_000, 0, 0.125),)
    assert held.watchdog == Watchdog(210, 210, "drop")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"trust": "pcp"}, "trust pcp"),
        ({"priority_to_class": (0, 1, 2, 4, 3, 5, 6, 7)}, "leaves by another queue"),
        ({"link_pause": True}, "pause the link and single priorities"),
        (
            {"queues": (Queue(3, Scheduler("strict")), Queue(5, Scheduler("ets", 40)))},
            "serve a strict queue before a shared one above it",
        ),
    ],
)
def test_what_eos_cannot_express_is_an_error(change, says):
    with pytest.raises(InputError, match=says):
        MODULE.render(state("eos", replace(roce_port("Ethernet1"), **change)))


def test_ports_that_map_otherwise_are_an_error():
    other = replace(roce_port("Ethernet2"), dscp_to_priority=(1,) * 64)
    with pytest.raises(InputError, match="map DSCPs otherwise on other ports"):
        MODULE.render(state("eos", roce_port("Ethernet1"), other))


def test_a_port_that_the_switch_lacks_is_named():
    intended = state("eos", roce_port("Ethernet17"))
    with pytest.raises(DeviceError, match="shows no Ethernet17"):
        MODULE.change(target("eos", "Ethernet17"), outputs(), intended)


def test_every_physical_port_is_read_banners_subinterfaces_and_channels_are_not():
    names = [port.name for port in read().ports]
    assert names == ["Ethernet1", "Ethernet2", "Ethernet3/1", "Ethernet3/2", "Ethernet5/2/1"]


def test_a_port_is_composed_from_its_profile_and_its_own_lines():
    port = read().port("Ethernet1")
    assert (port.mtu_bytes, port.trust, port.link_pause) == (9000, "dscp", False)
    assert [port.priority_of_dscp(d) for d in (0, 8, 16, 26, 46, 48, 63)] == [1, 0, 4, 3, 5, 6, 7]
    assert port.pfc_priorities == (3,)
    assert port.queue(3).ecn == Ecn(256_000, 512_000, 100)
    assert port.queue(3).scheduler == Scheduler("ets", 95)
    # Below a queue that shares, all share; its own line goes before the profile's.
    assert port.queue(2).scheduler == Scheduler("ets", 0)
    assert port.queue(1).scheduler == Scheduler("ets", 7)
    assert port.queue(6).scheduler == Scheduler("strict")
    assert port.watchdog == Watchdog(50, 1110, "drop")
    assert port.ingress_buffers == (IngressBuffer(3, 165_100, 0, 0, 1.0),)


def test_other_forms_are_read_or_named():
    held = read()
    breakout = held.port("Ethernet3/1")
    assert breakout.trust == "none"
    assert breakout.queue(4).ecn is None
    assert breakout.queue(2).ecn == Ecn(320_000, 320_000, 90)
    assert breakout.watchdog == Watchdog(200, 300, "shutdown")
    assert any("Ethernet3/1: ECN of queue 4: random-detect ecn" in fact for fact in held.unread)
    assert any("there is no qos profile" in fact for fact in held.unread)
    assert any(f.startswith("Ethernet2: priority of DSCPs: it has a serv") for f in held.unread)
    switched = held.port("Ethernet2")
    assert (switched.trust, switched.link_pause, switched.mtu_bytes) == ("pcp", True, 1500)
    assert switched.priority_to_class == (0, 1, 2, 3, 2, 5, 2, 7)


def test_pfc_is_what_the_port_does_now():
    held = read()
    assert held.port("Ethernet3/1").pfc_priorities == ()  # enabled, and not active
    assert held.port("Ethernet5/2/1").pfc_priorities == (3, 4)
    configured = read(pfc=None).port("Ethernet3/1").pfc_priorities
    assert configured == (5,)
    assert any(fact.startswith("live PFC state") for fact in read(pfc=None).unread)


@pytest.mark.parametrize(
    ("row", "priorities"),
    [
        ("Ethernet1       Yes      3           Yes     DCBX disabled", (3,)),
        ("Et1             Yes      3 4         Yes     DCBX disabled", (3, 4)),
        ("Et1             Yes                  No      Cannot apply", ()),
        ("Et1             No                   No", ()),
        ("Et1             yes      7,0         yes", (0, 7)),
    ],
)
def test_rows_of_the_pfc_table(row, priorities):
    table = f"Port       Enabled  Priorities  Active  Note\n---------  ---\n{row}\nleaf1#\n"
    assert parse_pfc("show priority-flow-control", table) == {"Ethernet1": priorities}


def test_identity_neighbours_and_what_is_saved():
    held = read()
    assert (held.model, held.firmware, held.serial) == (
        "DCS-7050CX3-32S",
        "4.30.1F",
        "JPE21263009",
    )
    assert held.neighbors == (
        Neighbor("Ethernet1", "spine-1", "Ethernet3/1"),
        Neighbor("Ethernet3/1", "gpu-17", "ens1f0np0"),
    )
    assert held.saved is True
    assert read(startup=RUNNING.replace("mtu 9000", "mtu 9100")).saved is False
    assert read(startup=None).saved is None
    assert read(running=RUNNING.replace("! Command", "! command")).config_sha256 == (
        held.config_sha256
    )


def test_links_are_facts():
    interfaces = {
        "Ethernet1": {
            "lineProtocolStatus": "up",
            "bandwidth": 25 * 10**9,
            "physicalAddress": "2c:dd:e9:0A:0b:0c",
        },
        "Ethernet2": {
            "lineProtocolStatus": "down",
            "interfaceStatus": "disabled",
            "bandwidth": 0,
        },
        "Ethernet3": {"lineProtocolStatus": "down", "interfaceStatus": "notconnect"},
        "Management1": {"lineProtocolStatus": "up"},
    }
    fec = {"Ethernet1": {"errCorrEncodingStatus": "reedSolomon"}, "Ethernet2": {}}
    texts = outputs() | {
        "show interfaces | json": json.dumps({"interfaces": interfaces}),
        "show interfaces error-correction | json": json.dumps({"interfaceErrCorrStatuses": fec}),
    }
    held = MODULE.read(target("eos"), texts)
    assert held.facts == (
        PortFacts("Ethernet1", up=True, speed_bps=25 * 10**9, fec="rs", mac="2cdde90a0b0c"),
        PortFacts("Ethernet2", up=False, admin_up=False),
        PortFacts("Ethernet3", up=False, admin_up=True),
    )
    assert read().facts == ()


def test_a_configuration_without_its_end_is_not_judged():
    whole = "! Command: show running-config\n" + RUNNING
    for cut in (whole.removesuffix("end\n"), whole[: len(whole) * 3 // 4]):
        with pytest.raises(ReadError, match="seems cut off"):
            read(running=cut)
        held = read(startup=cut)
        assert held.saved is None
        assert any(entry.startswith("startup configuration: ") for entry in held.unread)


def test_json_survives_a_banner_and_a_prompt_and_anything_else_is_not_known():
    noisy = 'Authorized access only\n{"modelName": "DCS-7060CX2-32S"}\nleaf-1#'
    assert read(version=noisy).model == "DCS-7060CX2-32S"
    for name, fact in (("version", "version: show version"), ("lldp", "neighbours: show lldp")):
        held = read(**{name: "Arista vEOS\n"})
        assert any(entry.startswith(fact) for entry in held.unread)
        assert len(held.ports) == len(read().ports)
    assert read(lldp="Arista vEOS\n").neighbors is None
    assert any("no table in 'nothing'" in entry for entry in read(pfc="nothing").unread)
    with pytest.raises(ReadError, match="showed no configuration"):
        read(running="")


@pytest.mark.parametrize(
    "answer",
    [
        "% Invalid input (at token 1: 'foo')",
        "% Incomplete command",
        "% Ambiguous command",
        "\n% Unavailable command (not supported on this hardware platform)\n",
        "% Session paisoar-1 does not exist",
        '{"errors": ["This is an unconverted command"]}',
    ],
)
def test_refusals_are_seen(answer):
    assert MODULE.is_error(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Copy completed successfully.\n",
        "! Warning: portfast should only be enabled on ports to a single host\n",
        "! Command: show running-config\nbanner login\n% Invalid input is what you get\nEOF\n",
        "Mar  4 10:00:00 leaf-1 ConfigAgent: %SYS-5-CONFIG_I: Configured from console\n",
        RUNNING,
    ],
)
def test_other_answers_are_no_refusals(answer):
    assert not MODULE.is_error(answer)


def test_the_safety_net_is_a_session_with_a_commit_timer():
    net = MODULE.safety_net("2025-03-04 a/b")
    name = "paisoar-2025-03-04-a-b"
    assert net.edit.enter == f"configure session {name}"
    assert net.edit.apply == ("commit timer 00:10:00",)
    assert net.edit.discard == ("abort",)
    assert net.undo == (f"configure session {name} abort",)
    assert (*net.confirm, *net.save) == (
        f"configure session {name} commit",
        "copy running-config startup-config",
    )


def test_jericho_is_told_apart():
    notes = MODULE.capabilities(target("eos", model="DCS-7280CR3-32P4")).notes
    assert "read, not rendered" in notes[0]
    assert "share of the free buffer" in MODULE.capabilities(target("eos")).notes[0]


@pytest.mark.parametrize(
    ("text", "name", "physical"),
    [
        ("Et1", "Ethernet1", True),
        ("Et49/1", "Ethernet49/1", True),
        ("Ethernet3/1/4", "Ethernet3/1/4", True),
        ("Ethernet1.100", "Ethernet1.100", False),
        ("Po10", "Port-Channel10", False),
        ("Ma1", "Management1", False),
        ("ens1f0np0", "ens1f0np0", False),
    ],
)
def test_interface_names(text, name, physical):
    assert interface_name(text) == name
    assert is_physical(name) == physical


STATUS_TABLE = """\
The hardware supports PFC on priorities 0 1 2 3 4 5 6 7
The PFC watchdog timeout is 0.1 second(s)

E: PFC Enabled, D: PFC Disabled, A: PFC Active, W: PFC Watchdog Enabled
Port    Status  Priorities  Action      Timeout  Recovery        Polling        Note
                                                 Interval/Mode   Config/Oper
------- ------- ----------- ----------- -------- --------------- -------------- -------------
Et1     E A W   3           drop        0.1      0.2 / auto      auto / 0.05    DCBX disabled
Et2     D - -               -           -        - / -           - / -          DCBX disabled
Et3/1   E - W   3           errdisable  1.0      0.0 / auto      0.1 / 0.1      Not negotiated
Et3/2   EA      3 4         -           -        - / -           - / -
Et4/1   E A -   34          -           -        - / -           - / -          DCBX disabled
"""


def test_the_pfc_table_of_later_releases_is_read_too():
    """Columns as later releases name them; how their cells lie is unverified."""
    held = parse_pfc("show priority-flow-control", STATUS_TABLE)
    assert held == {
        "Ethernet1": (3,),
        "Ethernet2": (),
        "Ethernet3/1": (),
        "Ethernet3/2": (3, 4),
        "Ethernet4/1": (3, 4),
    }


@pytest.mark.parametrize(
    ("line", "port", "fact"),
    [
        ("qos map dscp gold to traffic-class 3", "Ethernet1", Fact.DSCPS),
        ("qos map traffic-class 3 to tx-queue high", "Ethernet1", Fact.CLASSES),
        (
            "interface Ethernet1\n   uc-tx-queue 3\n      random-detect ecn delay threshold 5 usec",
            "Ethernet1",
            Fact.ECN,
        ),
        (
            "interface Ethernet1\n   priority-flow-control pause watchdog port timer timeout long",
            "Ethernet1",
            Fact.WATCHDOG,
        ),
    ],
)
def test_a_line_that_cannot_be_read_hides_what_it_says(line, port, fact):
    state = MODULE.read(target("eos", port), {"show running-config": f"interface {port}\n{line}\n"})
    assert unseen(state.unread, port, fact)


@pytest.mark.parametrize("line", ["mtu many", "uc-tx-queue 3\n      bandwidth percent some"])
def test_a_number_that_is_none_is_no_default(line):
    text = f"interface Ethernet1\n   uc-tx-queue 7\n      no priority\n   {line}\n"
    with pytest.raises(ReadError, match="no number in"):
        MODULE.read(target("eos", "Ethernet1"), {"show running-config": text})
