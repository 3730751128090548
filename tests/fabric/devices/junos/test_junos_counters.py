from __future__ import annotations

import pytest

from fabric.devices.base import ReadError
from fabric.devices.junos import MODULE
from fabric.devices.junos.counters import EXTENSIVE, QUEUES
from tests.fabric.devices.intents import target

PORT = """\
Physical interface: et-0/0/0, Enabled, Physical link is Up
  Interface index: 652, SNMP ifIndex: 515, Generation: 155
  Traffic statistics:
   Input  bytes  :              1000                  984 bps
   Output bytes  :              2000                    0 bps
   Input  packets:                10                    1 pps
   Output packets:                20                    0 pps
  Input errors:
    Errors: 0, Drops: 3, Framing errors: 0, Runts: 0, Policed discards: 0,
    L3 incompletes: 0, FIFO errors: 0, Resource errors: 4
  Output errors:
    Carrier transitions: 5, Errors: 0, Drops: 6, Collisions: 0, MTU errors: 0, Resource errors: 0
  MAC statistics:                      Receive         Transmit
    Total octets                          1000             2000
    CRC/Align errors                         7                0
    Oversized frames                         8
  MAC Priority Flow Control Statistics:
    Priority :  0                            0                0
    Priority :  3                        1,234                9

  Logical interface et-0/0/0.0 (Index 552) (SNMP ifIndex 520)
    Traffic statistics:
     Input  bytes  :                 99

Physical interface: irb, Enabled, Physical link is Up
   Input  bytes  :                 5                    0 bps
"""
QUEUE = """\
Physical interface: et-0/0/0, Enabled, Physical link is Up
  Interface index: 652, SNMP ifIndex: 515
Forwarding classes: 12 supported, 2 in use
Egress queues: 12 supported, 2 in use
Queue: 3, Forwarding classes: PAISOAR-Q3
  Queued:
    Packets              :                   110                     0 pps
    Bytes                :                  9999                     0 bps
  Transmitted:
    Packets              :                   100                     0 pps
    Bytes                :                  8000                     0 bps
    Tail-dropped packets :                     5                     0 pps
    RED-dropped packets  :                     6                     0 pps
    RED-dropped bytes    :                   600                     0 bps
    ECN-CE packets       :                    12                     0 pps
Queue: 7, Forwarding classes: network-control
  Queued:
    Packets              :                     1                     0 pps
"""


def values(outputs, *ports: str):
    shown = MODULE.read_counters(target("junos", *ports), outputs, 12.5)
    return {(c.port, c.name, c.priority): c.value for c in shown.counters}


def test_counters_of_ports():
    found = values({EXTENSIVE: PORT})
    assert {where for where, _, _ in found} == {"et-0/0/0"}
    assert {(name, priority): value for (_, name, priority), value in found.items()} == {
        ("rx_bytes", None): 1000,
        ("tx_bytes", None): 2000,
        ("rx_packets", None): 10,
        ("tx_packets", None): 20,
        ("rx_mtu_drops", None): 8,
        ("rx_crc_errors", None): 7,
        ("rx_discards", None): 7,
        ("tx_discards", None): 6,
        ("link_down_events", None): 2,
        ("rx_pause_frames", 0): 0,
        ("tx_pause_frames", 0): 0,
        ("rx_pause_frames", 3): 1234,
        ("tx_pause_frames", 3): 9,
    }


def test_counters_of_queues_are_those_of_what_was_sent():
    assert values({QUEUES: QUEUE}) == {
        ("et-0/0/0", "tx_queue_packets", 3): 100,
        ("et-0/0/0", "tx_queue_bytes", 3): 8000,
        ("et-0/0/0", "queue_drops", 3): 11,
        ("et-0/0/0", "ecn_marked_packets", 3): 12,
    }


def test_what_is_not_shown_is_missing_with_its_reason():
    where = target("junos", "et-0/0/0", "et-0/0/1")
    shown = MODULE.read_counters(where, {EXTENSIVE: PORT}, 12.5)
    assert shown.taken_at_s == 12.5
    assert f"ecn_marked_packets: '{QUEUES}' was not answered" in shown.missing
    assert f"rx_packets: '{EXTENSIVE}' does not show it for et-0/0/1" in shown.missing
    assert any(reason.startswith("watchdog_storms: ") for reason in shown.missing)
    assert not any("for et-0/0/0" in reason for reason in shown.missing)


def test_nonsense_is_an_error():
    with pytest.raises(ReadError, match="no interface in 'odd'"):
        values({QUEUES: "odd"})
    assert values({EXTENSIVE: ""}) == {}
