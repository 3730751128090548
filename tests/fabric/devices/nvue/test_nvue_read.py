"""Reading NVUE's JSON: configurations made by hand, neighbours, counters."""

from __future__ import annotations

import json

import pytest

from fabric.devices.base import ReadError
from fabric.devices.nvue import MODULE
from fabric.devices.nvue.counters import PORTS, qos_command, watchdog_command
from fabric.devices.nvue.read import APPLIED, HARDWARE, LLDP, STARTUP, SYSTEM
from fabric.devices.nvue.tree import expand, parse
from fabric.qos import Ecn, IngressBuffer, Neighbor, Scheduler, Watchdog
from fabric.unread import Fact, unseen
from tests.fabric.devices.nvue.samples import outputs, sample, target


def everything():
    return {
        APPLIED: sample("config.json"),
        STARTUP: sample("config.json"),
        SYSTEM: '{"build": "Cumulus Linux 5.9.1", "hostname": "leaf-a"}',
        HARDWARE: '{"model": "MSN3420", "serial-number": "MT2101X00077"}',
        LLDP: sample("lldp.json"),
    }


def test_a_configuration_made_by_hand_is_read():
    state = MODULE.read(target(), everything())
    assert [port.name for port in state.ports] == ["swp1", "swp2", "swp5s0", "swp5s1"]
    assert (state.model, state.firmware, state.serial) == (
        "MSN3420",
        "Cumulus Linux 5.9.1",
        "MT2101X00077",
    )
    assert state.saved is True
    one = state.port("swp1")
    assert one.mtu_bytes == 9000
    assert one.trust == "dscp"
    # What a profile does not name keeps the default: eight DSCPs to a priority.
    assert [one.priority_of_dscp(dscp) for dscp in (10, 21, 26, 0, 48)] == [3, 3, 3, 0, 6]
    assert one.priority_to_class == (0, 1, 7, 3, 4, 5, 6, 7)
    assert one.pfc_priorities == (3, 5)
    assert one.ingress_buffer(5) == IngressBuffer(5, 25000, 10000, 8000)
    assert one.watchdog == Watchdog(600, None, "drop")  # 200 ms, three polls by default
    # Without profiles of its own a port has the switch's defaults.
    assert one.queue(0).ecn == Ecn(150_000, 1_500_000, 100)
    assert [queue.scheduler.percent for queue in one.queues] == [12, 13, 12, 13, 12, 13, 12, 13]


def test_keys_that_stand_for_several_are_taken_apart():
    state = MODULE.read(target(), everything())
    broken_out = state.port("swp5s0")
    assert broken_out.queue(3).ecn == broken_out.queue(5).ecn == Ecn(40000, 200000, 10)
    assert broken_out.queue(4).ecn is None
    assert broken_out.queue(0).scheduler == Scheduler("strict")
    assert broken_out.queue(2).scheduler == Scheduler("ets", 30)
    assert broken_out.queue(7).scheduler == Scheduler("ets", 0)
    assert state.port("swp5s1").mtu_bytes == 9216


def test_what_others_do_to_a_port_is_seen():
    state = MODULE.read(target(), everything())
    assert state.port("swp2").link_pause
    assert state.port("swp2").trust == "pcp"
    assert state.port("swp5s0").watchdog is None  # state disable
    assert state.unread == ("swp5s0: receive buffer of priority 3: switchd computes it",)


def test_neighbours_are_front_ports_with_a_name():
    state = MODULE.read(target(), everything())
    assert state.neighbors == (
        Neighbor("swp1", "gpu-1", "ens1f0np0"),
        Neighbor("swp5s0", "spine-2", "swp3"),
    )
    alone = {"lldp": {"interface": json.loads(sample("lldp.json"))["lldp"]["interface"][1]}}
    one = MODULE.read(target(), {**everything(), LLDP: json.dumps(alone)})
    assert one.neighbors == (Neighbor("swp5s0", "spine-2", "swp3"),)


def test_missing_outputs_and_roce_mode_are_named():
    data = json.loads(sample("config.json"))
    data[1]["set"]["qos"]["roce"] = {"mode": "lossless"}
    state = MODULE.read(target(), outputs(json.dumps(data)))
    said = {line.partition(":")[0] for line in state.unread}
    assert said >= {"model", "firmware", "serial", "startup configuration", "neighbours"}
    # RoCE mode sets what the tree does not show, of all ports.
    facts = ("trust", "priority of DSCPs", "PFC of", "ECN of", "receive buffer of")
    for fact in facts:
        entry = unseen(state.unread, "swp1", fact)
        assert "nv set qos roce" in entry, fact
    assert state.saved is None


@pytest.mark.parametrize("text", ["", "{", "[5]", '[{"set": {}}]', "Invalid Command: config"])
def test_what_is_no_configuration_is_said(text):
    with pytest.raises(ReadError):
        MODULE.read(target(), {APPLIED: text})


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("swp1-3,swp5", ("swp1", "swp2", "swp3", "swp5")),
        ("swp1s0-1", ("swp1s0", "swp1s1")),
        ("2,6", ("2", "6")),
        ("peerlink.4094", ("peerlink.4094",)),
        ("br_default", ("br_default",)),
    ],
)
def test_names_in_a_key(key, names):
    assert expand(key) == names


def test_vlans_and_addresses_are_no_lists():
    tree = parse(sample("config.json"), "sample")
    assert list(tree["bridge"]["domain"]["br_default"]["vlan"]) == ["10-12"]
    assert list(tree["interface"]["lo"]["ip"]["address"]) == ["10.10.10.1/32"]


def counters():
    answers = {
        PORTS: sample("counters.json"),
        qos_command("swp1"): sample("qos.json"),
        watchdog_command("swp1"): sample("watchdog.json"),
    }
    return MODULE.read_counters(target(), answers, 5.0)


def test_counters_are_in_the_common_schema():
    values = {(c.port, c.name, c.priority): c.value for c in counters().counters}
    expected = {
        ("swp1", "rx_packets", None): 1_234_567,
        ("swp1", "rx_discards", None): 5,
        ("swp1", "rx_crc_errors", None): 1,
        ("swp1", "tx_discards", None): 2,
        ("swp1", "tx_queue_packets", 3): 1000,
        ("swp1", "queue_drops", 3): 7,
        ("swp1", "tx_bytes", None): 4_001_000,
        ("swp1", "ecn_marked_packets", 3): 19,
        ("swp1", "rx_pause_frames", 3): 11,
        ("swp1", "rx_pause_us", 3): 1500,
        ("swp1", "tx_pause_frames", 3): 2400,
        ("swp1", "rx_prio_discards", 3): 12,
        ("swp1", "watchdog_storms", 3): 3,
    }
    assert {key: values.get(key) for key in expected} == expected
    assert ("swp1", "ecn_marked_packets", 0) not in values


def test_what_is_not_counted_is_named():
    missing = counters().missing
    assert "rx_packets: 'nv show interface counters -o json' does not show it for swp49" in missing
    assert f"rx_pause_frames: '{qos_command('swp49')}' does not show it" in missing
    assert any(line.startswith("rx_mtu_drops: ") for line in missing)
    with pytest.raises(ReadError, match="counters qos"):
        MODULE.read_counters(target(), {qos_command("swp1"): "Invalid Command"}, 1.0)


@pytest.mark.parametrize(
    "answer",
    [
        "-bash: nv: command not found",
        "Invalid Command: set qos nonsense",
        "Error: 'on' is not one of ['enable', 'disable']",
        "Invalid config [rev_id: 4]\n  there is no profile",
        "sudo: a password is required",
    ],
)
def test_refusals_are_seen(answer):
    assert MODULE.is_error(answer)


@pytest.mark.parametrize("answer", ["", "applied [rev_id: 5]", "saved [rev_id: 5]", '[{"a": 1}]'])
def test_answers_are_no_refusals(answer):
    assert not MODULE.is_error(answer)
    assert not any(MODULE.is_error(text) for text in everything().values())


def test_fec_is_what_is_configured_or_negotiated():
    data = json.loads(sample("config.json"))
    data[1]["set"]["interface"]["swp1"]["link"]["fec"] = "baser"
    facts = MODULE.read(target(), outputs(json.dumps(data))).facts
    assert [(f.port, f.fec, f.pfc_mode) for f in facts] == [
        ("swp1", "fc", "on"),
        ("swp2", "auto", "off"),
        ("swp5s0", "auto", "on"),
        ("swp5s1", "auto", "off"),
    ]


def test_a_number_that_is_none_is_no_default():
    data = json.loads(sample("config.json"))
    data[1]["set"]["interface"]["swp1"]["link"]["mtu"] = "many"
    with pytest.raises(ReadError, match="link mtu is 'many', no number"):
        MODULE.read(target(), outputs(json.dumps(data)))


def test_an_egress_shaper_is_said():
    """Cumulus Linux, "Quality of Service", Traffic Shaping."""
    data = json.loads(sample("config.json"))
    data[1]["set"]["interface"]["swp1"]["qos"]["egress-shaper"] = {"profile": "slow"}
    shaper = {"slow": {"traffic-class": {"3": {"max-rate": 5000}}}}
    data[1]["set"]["qos"]["egress-shaper"] = shaper
    state = MODULE.read(target(), outputs(json.dumps(data)))
    assert unseen(state.unread, "swp1", Fact.RATE)
    assert not unseen(state.unread, "swp2", Fact.RATE)
