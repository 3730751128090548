import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.devices.base import ReadError
from fabric.devices.nxos import MODULE
from fabric.devices.nxos.names import format_dscps, interface_name, is_physical, parse_dscps
from fabric.devices.nxos.state import parse_neighbors, parse_pfc, parse_version
from fabric.qos import Ecn, IngressBuffer, Neighbor, Scheduler, Watchdog
from fabric.unread import Fact, unseen
from tests.fabric.devices.nxos.listings import listing, target


def outputs(**changed: str | None) -> dict[str, str]:
    found: dict[str, str | None] = {
        "running-config": listing("running-config"),
        "startup-config": listing("running-config"),
        "interface priority-flow-control": listing("pfc"),
        "version": listing("version"),
        "lldp neighbors": listing("lldp"),
    }
    found |= {name.replace("_", "-"): text for name, text in changed.items()}
    return {f"show {name}": text for name, text in found.items() if text is not None}


def read(**changed: str | None):
    return MODULE.read(target("Ethernet1/1"), outputs(**changed))


def test_every_physical_port_of_the_configuration_is_read():
    assert [port.name for port in read().ports] == [
        *(f"Ethernet1/{number}" for number in range(1, 7)),
        "Ethernet1/50/1",
    ]


def test_a_port_is_composed_from_its_own_policies_and_those_of_the_system():
    port = read().port("Ethernet1/1")
    assert (port.mtu_bytes, port.trust, port.link_pause) == (9216, "dscp", False)
    assert [port.priority_of_dscp(dscp) for dscp in (0, 23, 24, 26, 31, 32, 48)] == [
        0,
        0,
        3,
        3,
        3,
        0,
        7,
    ]
    assert port.class_mtu_bytes == (9216, 1500, 1500, 9216, 1500, 1500, 1500, 1500)
    assert port.queue(3).ecn == Ecn(950_000, 3_000_000, 7)
    assert port.queue(3).scheduler == Scheduler("ets", 50)
    assert port.queue(7).scheduler == Scheduler("strict")
    assert port.queue(2).scheduler == Scheduler("ets", 0)
    assert port.ingress_buffers == (IngressBuffer(3, 27456, 12480, 12480),)
    assert port.watchdog == Watchdog(100, None, "drop")


def test_pfc_is_what_the_port_does_now_not_what_is_configured():
    state = read()
    assert state.port("Ethernet1/1").pfc_priorities == (3,)
    assert state.port("Ethernet1/2").pfc_priorities == ()  # auto, and the peer does not agree
    assert state.port("Ethernet1/3").pfc_priorities == ()
    assert state.port("Ethernet1/4").pfc_priorities == (0, 3)  # bit map 9
    assert state.port("Ethernet1/5").pfc_priorities == (5,)  # bit map 20, hexadecimal


def test_a_port_that_the_live_table_lacks_is_judged_by_its_configuration_and_named():
    table = listing("pfc").replace("Ethernet1/1 ", "Ethernet1/9 ")
    state = MODULE.read(target(), {**outputs(), "show interface priority-flow-control": table})
    assert state.port("Ethernet1/1").pfc_priorities == (3,)
    assert any(fact.startswith("live PFC state of Ethernet1/1") for fact in state.unread)


def test_a_port_without_classification_has_everything_in_group_0():
    port = read().port("Ethernet1/3")
    assert port.trust == "none"
    assert set(port.dscp_to_priority) == {0}
    assert port.link_pause
    assert port.mtu_bytes == 1500
    assert port.watchdog is None


def test_classification_by_cos_trusts_pcp():
    assert read().port("Ethernet1/4").trust == "pcp"


def test_what_cannot_be_told_from_the_configuration_is_named():
    state = read()
    assert state.port("Ethernet1/5").priority_of_dscp(46) == 5
    fact = "class STORAGE of MIXED: match access-group name ISCSI"
    assert f"Ethernet1/5: priority of DSCPs: {fact}" in state.unread
    burst = state.port("Ethernet1/4")
    assert burst.queue(3).ecn is None
    assert any("burst-optimized" in fact for fact in state.unread)
    # WRED without ecn drops instead of marking.
    assert burst.queue(2).ecn is None
    assert burst.queue(2).scheduler == Scheduler("ets", 10)


def test_the_watchdog_needs_the_switch_and_the_port():
    text = listing("running-config")
    off = text.replace("\npriority-flow-control watch-dog-interval on", "")
    assert read(running_config=off).port("Ethernet1/1").watchdog is None
    slow = text.replace(
        "\npriority-flow-control watch-dog-interval on",
        "\npriority-flow-control watch-dog-interval on"
        "\npriority-flow-control watch-dog shutdown-multiplier 3",
    )
    assert read(running_config=slow).port("Ethernet1/1").watchdog == Watchdog(300, None, "drop")
    careful = text.replace(
        "  priority-flow-control watch-dog-interval on",
        "  priority-flow-control watch-dog-interval on disable-action",
    )
    assert read(running_config=careful).port("Ethernet1/1").watchdog.action == "forward"


def test_identity_comes_from_show_version():
    state = read()
    assert (state.model, state.firmware, state.serial) == (
        "N9K-C93180YC-FX",
        "10.3(3)",
        "FDO21120U8N",
    )
    older = parse_version(listing("version-7"))
    assert (older.model, older.firmware) == ("N9K-C9336C-FX2", "7.0(3)I7(5)")


def test_saved_ignores_times_and_sees_every_other_line():
    later = listing("running-config").replace("10:20:00", "11:00:00")
    assert read(startup_config=later).saved is True
    assert read(startup_config=later.replace("mtu 9216", "mtu 9000")).saved is False
    assert read(startup_config=None).saved is None


def test_the_hash_covers_all_but_comments():
    state = read()
    lines = [line.rstrip() for line in listing("running-config").splitlines() if line.rstrip()]
    text = "\n".join(line for line in lines if not line.startswith("!"))
    assert state.config_sha256 == hashlib.sha256(text.encode()).hexdigest()
    other = listing("running-config").replace("10.0.0.1/31", "10.0.0.3/31")
    assert read(running_config=other).config_sha256 != state.config_sha256


def test_neighbours_are_read_wrapped_spaced_and_without_capability():
    assert read().neighbors == (
        Neighbor("Ethernet1/49", "spine-1", "Ethernet1/1"),
        Neighbor("Ethernet1/1", "host-1-with-a-long-na", "ens1f0np0"),
        Neighbor("Ethernet1/5", "Office Access Point", "wlan0"),
        Neighbor("Ethernet1/50/1", "spine-2", "Ethernet1/2"),
    )


def test_refused_commands_are_unread_facts():
    state = MODULE.read(target(), {"show running-config": listing("running-config")})
    assert state.neighbors is None
    assert state.saved is None
    for fact in ("live PFC state", "model", "firmware", "serial", "startup", "neighbours"):
        assert any(unread.startswith(fact) for unread in state.unread)


def test_without_a_running_configuration_nothing_is_known():
    with pytest.raises(ReadError, match="leaf-1: 'show running-config'"):
        MODULE.read(target(), {"show version": listing("version")})


@pytest.mark.parametrize("parse", [parse_pfc, parse_neighbors])
def test_an_output_of_another_command_is_an_error(parse):
    with pytest.raises(ReadError, match="no table in 'something else'"):
        parse("\nsomething else\n")


@pytest.mark.parametrize(
    ("row", "priorities"),
    [
        ("Ethernet1/1        Auto Off            0          0", ()),
        ("Ethernet1/1        On   On  (8)        0          0", (3,)),
        ("Ethernet1/1        On   On   (9)       1          0", (0, 3)),
        ("Ethernet1/1        On   On(20)         0          0", (5,)),
        ("Eth1/1             Auto On  (0)        0          0", ()),
        ("Ethernet1/1        On   On  (c8)       0          0", (3, 6, 7)),
        ("Ethernet1/1        on   on             1,234      -", None),
        ("Ethernet1/1        On   Off (8)        N/A        N/A", ()),
    ],
)
def test_bit_maps_are_hexadecimal_and_may_be_absent(row, priorities):
    table = f"Port               Mode Oper(VL bmap)  RxPPP      TxPPP\n=====\n{row}\n"
    assert parse_pfc(table)["Ethernet1/1"].priorities == priorities


@given(st.sets(st.integers(0, 63), min_size=1))
def test_dscp_lists_read_back(dscps):
    assert parse_dscps(format_dscps(dscps)) == tuple(sorted(dscps))


def test_dscps_have_names():
    assert parse_dscps("cs6, af31,ef,default") == (0, 26, 46, 48)


@pytest.mark.parametrize(
    ("text", "name", "physical"),
    [
        ("Eth1/1", "Ethernet1/1", True),
        ("Ethernet1/1/4", "Ethernet1/1/4", True),
        ("Br-Ethernet1/17/1", "Br-Ethernet1/17/1", True),
        ("Ethernet1/1.100", "Ethernet1/1.100", False),
        ("Po10", "port-channel10", False),
        ("mgmt0", "mgmt0", False),
        ("ens1f0np0", "ens1f0np0", False),
    ],
)
def test_interface_names(text, name, physical):
    assert interface_name(text) == name
    assert is_physical(name) == physical


def test_show_interface_tells_state_speed_fec_and_address():
    text = listing("interface").replace(
        "  Input flow-control is off",
        "    admin fec state is auto, oper fec state is Rs-fec\n  Input",
    )
    state = read(interface=text)
    facts = state.facts_of("Ethernet1/1")
    assert (facts.up, facts.speed_bps, facts.fec) == (True, 25 * 10**9, "rs")
    assert facts.mac == "00be75919b38"
    down = state.facts_of("Ethernet1/2")
    assert (down.up, down.speed_bps, down.fec) == (False, None, None)
    assert state.facts_of("Ethernet1/1").pfc_mode == "on"


def test_without_show_interface_the_switch_is_read_and_its_links_are_not_known():
    state = read()
    assert state.facts_of("Ethernet1/1").up is None
    assert state.unread == read(interface=listing("interface")).unread


def test_a_policy_that_rewrites_dscp_and_a_hash_without_ports_are_remarks():
    text = listing("running-config").replace(
        "set qos-group 3", "set qos-group 3\n    set dscp 0", 1
    )
    text += "ip load-sharing address source-destination universal-id 7\n"
    remarks = {(remark.rule, remark.port) for remark in read(running_config=text).remarks}
    assert ("rewrite", "Ethernet1/1") in remarks
    assert ("ecmp", "") in remarks
    assert read().remarks == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("interface Ethernet1/1\n", "interface Ethernet1/1\n  mtu many\n"),
        ("    mtu 9216\n    pause", "    mtu jumbo\n    pause"),
        ("    set qos-group 7", "    set qos-group seven"),
    ],
)
def test_a_number_that_is_none_is_no_default(old, new):
    assert old in listing("running-config")
    with pytest.raises(ReadError, match="no number in"):
        read(**{"running-config": listing("running-config").replace(old, new)})


@pytest.mark.parametrize(
    ("old", "new", "fact"),
    [
        ("bandwidth remaining percent 50", "bandwidth remaining ratio 2", Fact.SCHEDULING),
        (
            "pause buffer-size 27456 pause-threshold 12480 resume-threshold 12480",
            "pause buffer-size 27456 pause-threshold dynamic 5",
            Fact.BUFFER,
        ),
        ("type queuing input ROCE-INQ", "type queuing input GONE", Fact.BUFFER),
        ("match dscp cs6", "match dscp gold", Fact.DSCPS),
        ("    pause pfc-cos 3", "    pause no-drop", Fact.CLASS_MTU),
    ],
)
def test_a_line_of_a_policy_that_cannot_be_read_hides_what_it_says(old, new, fact):
    assert old in listing("running-config")
    state = read(**{"running-config": listing("running-config").replace(old, new)})
    assert unseen(state.unread, "Ethernet1/1", fact)
    assert not unseen(read().unread, "Ethernet1/1", fact)


def test_a_startup_configuration_that_was_cut_off_is_not_another_one():
    text = listing("running-config")
    cut = text[: text.index("interface Ethernet1/4")]
    state = read(**{"startup-config": cut})
    assert state.saved is None
    assert any("'show startup-config' seems cut off" in fact for fact in state.unread)
    assert read(**{"startup-config": text.replace("9216", "9000")}).saved is False
