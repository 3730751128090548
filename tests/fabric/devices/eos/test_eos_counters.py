from __future__ import annotations

import json

import pytest

from fabric.devices.base import ReadError
from fabric.devices.eos import MODULE
from fabric.devices.eos.counters import ECN, INTERFACES, PFC, QUEUES, WATCHDOG
from tests.fabric.devices.intents import target

INTERFACES_JSON = {
    "interfaces": {
        "Ethernet1": {
            "interfaceCounters": {
                "inOctets": 1000,
                "inUcastPkts": 10,
                "inMulticastPkts": 2,
                "inBroadcastPkts": 1,
                "inDiscards": 3,
                "outOctets": 2000,
                "outUcastPkts": 20,
                "outMulticastPkts": 0,
                "outBroadcastPkts": 0,
                "outDiscards": 4,
                "linkStatusChanges": 5,
                "inputErrorsDetail": {"giantFrames": 6, "fcsErrors": 7},
            }
        },
        "Ethernet2": {"interfaceCounters": {"inOctets": 5}},
        "Port-Channel3": {"interfaceCounters": {"inOctets": 9}},
        "Management1": {},
    }
}
DROPPED = {"droppedPackets": 1}
QUEUES_JSON = {
    "egressQueueCounters": {
        "interfaces": {
            "Et1": {
                "ucastQueues": {
                    "trafficClasses": {
                        "TC3": {
                            "dropPrecedences": {
                                "DP0": {"enqueuedPackets": 5, "enqueuedBytes": 50, **DROPPED},
                                "DP1-DP2": {"enqueuedPackets": 1, **DROPPED},
                            }
                        },
                        "TC4-TC5": {"dropPrecedences": {"DP0": DROPPED}},
                    }
                },
                "mcastQueues": {
                    "trafficClasses": {"TC3": {"dropPrecedences": {"DP0": {"enqueuedPackets": 2}}}}
                },
            }
        }
    }
}


def snapshot(outputs, *ports: str):
    texts = {command: json.dumps(data) for command, data in outputs.items()}
    return MODULE.read_counters(target("eos", *ports), texts, 12.5)


def values(outputs, *ports: str):
    return {(c.port, c.name, c.priority): c.value for c in snapshot(outputs, *ports).counters}


def test_counters_of_ports():
    found = values({INTERFACES: INTERFACES_JSON})
    port = {name: value for (where, name, _), value in found.items() if where == "Ethernet1"}
    assert port == {
        "rx_bytes": 1000,
        "tx_bytes": 2000,
        "rx_packets": 13,
        "tx_packets": 20,
        "rx_discards": 3,
        "tx_discards": 4,
        "rx_mtu_drops": 6,
        "rx_crc_errors": 7,
        "link_down_events": 2,
    }
    assert ("Ethernet2", "rx_packets", None) not in found
    assert {where for where, _, _ in found} == {"Ethernet1", "Ethernet2"}


def test_queues_are_summed_and_ranges_belong_to_no_queue():
    assert values({QUEUES: QUEUES_JSON}) == {
        ("Ethernet1", "tx_queue_packets", 3): 8,
        ("Ethernet1", "tx_queue_bytes", 3): 50,
        ("Ethernet1", "queue_drops", 3): 2,
    }


def test_pause_frames_marks_and_storms():
    pfc = {"interfaceCounters": {"Ethernet1": {"rxFrames": 1, "txFrames": "1,234"}}}
    assert values({PFC: pfc}) == {
        ("Ethernet1", "rx_pause_frames", None): 1,
        ("Ethernet1", "tx_pause_frames", None): 1234,
    }
    ecn = {"intfQueueCounters": {"Ethernet1": {"queueCounters": {"0": "-", "3": "8", "5": "N/A"}}}}
    assert values({ECN: ecn}) == {("Ethernet1", "ecn_marked_packets", 3): 8}
    none = values({WATCHDOG: {"interfaces": {}}}, "Ethernet1")
    assert set(none.values()) == {0}
    assert len(none) == 8
    stuck = {"interfaces": {"Ethernet1": {"txQueues": {"3": {"stuckCount": 2}}}}}
    some = values({WATCHDOG: stuck}, "Ethernet1")
    assert some["Ethernet1", "watchdog_storms", 3] == 2
    assert some.keys() == none.keys()


def test_what_is_not_shown_is_missing_with_its_reason():
    shown = snapshot({INTERFACES: INTERFACES_JSON}, "Ethernet1", "Ethernet2")
    assert shown.taken_at_s == 12.5
    assert f"ecn_marked_packets: '{ECN}' was not answered" in shown.missing
    assert f"rx_packets: '{INTERFACES}' does not show it for Ethernet2" in shown.missing
    assert any(reason.startswith("rx_pause_us: ") for reason in shown.missing)
    assert not any("for Ethernet1" in reason for reason in shown.missing)
    uncounted = {"intfQueueCounters": {"Ethernet1": {"queueCounters": {"3": "-"}}}}
    absent = snapshot({ECN: uncounted}, "Ethernet1").missing
    assert f"ecn_marked_packets: '{ECN}' does not show it for Ethernet1" in absent


def test_what_is_no_json_is_an_error():
    with pytest.raises(ReadError, match="show interfaces"):
        MODULE.read_counters(target("eos"), {INTERFACES: "Ethernet1 is up"}, 0.0)
    assert values({INTERFACES: {"interfaces": ["odd"]}}) == {}


def test_commands_only_show():
    for command in (
        *MODULE.read_commands(target("eos")),
        *MODULE.counter_commands(target("eos")),
    ):
        assert command.startswith("show ")
