import re

import pytest

from fabric.devices.base import ReadError
from fabric.devices.nxos import MODULE
from tests.fabric.devices.nxos.listings import listing, target

INTERFACE = "show interface"
PFC = "show interface priority-flow-control"
QUEUING = "show queuing interface"
WATCHDOG = "show queuing pfc-queue detail"


def snapshot(outputs: dict[str, str], *ports: str):
    return MODULE.read_counters(target(*ports), outputs, 12.5)


def values(outputs: dict[str, str], *ports: str):
    return {
        (counter.port, counter.name, counter.priority): counter.value
        for counter in snapshot(outputs, *ports).counters
    }


def test_a_port_s_own_counters():
    found = values({INTERFACE: listing("interface")})
    assert {name: value for (port, name, _), value in found.items() if port == "Ethernet1/1"} == {
        "rx_packets": 1234567,
        "tx_packets": 2352,
        "rx_bytes": 9876543210,
        "tx_bytes": 345678,
        "rx_crc_errors": 4,
        "rx_mtu_drops": 3,
        "rx_discards": 9,
        "tx_discards": 5,
    }
    assert found["Ethernet1/2", "rx_crc_errors", None] == 0
    assert not any(port == "mgmt0" for port, _, _ in found)


def test_queues_and_pause_with_an_oobfc_column_and_a_pg_column():
    found = values({QUEUING: listing("queuing-oobfc")})
    port = "Ethernet1/1"
    assert found == {
        (port, "tx_queue_packets", 0): 12 + 22 + 34,
        (port, "tx_queue_bytes", 0): 6800,
        (port, "queue_drops", 0): 3,
        (port, "tx_queue_packets", 3): 1_000_050,
        (port, "queue_drops", 3): 6,
        (port, "rx_discards", None): 10,
        (port, "tx_pause_frames", 0): 0,
        (port, "rx_pause_frames", 0): 0,
        (port, "tx_pause_frames", 3): 7,
        (port, "rx_pause_frames", 3): 8,
    }


def test_queues_and_pause_with_the_header_of_later_releases():
    found = values({QUEUING: listing("queuing-new")})
    port = "Ethernet1/51"
    assert found[port, "tx_queue_packets", 5] == 202328436
    assert found[port, "ecn_marked_packets", 5] == 321
    # Two rows that both count tail drops are not added up.
    assert found[port, "queue_drops", 5] == 4
    # The port's own drops, not those of its whole slice.
    assert found[port, "rx_discards", None] == 19490
    assert found[port, "tx_pause_frames", 5] == 150
    assert found[port, "rx_pause_frames", 5] == 3
    assert (port, "tx_pause_frames", 3) not in found


def test_the_larger_of_two_counts_of_the_same_drops_is_kept():
    found = values({INTERFACE: listing("interface"), QUEUING: listing("queuing-oobfc")})
    assert found["Ethernet1/1", "rx_discards", None] == 10


def test_pause_totals_stand_in_where_no_priorities_are_shown():
    found = values({PFC: listing("pfc")})
    assert found["Ethernet1/1", "rx_pause_frames", None] == 4088353
    assert found["Ethernet1/1", "tx_pause_frames", None] == 1890
    assert found["Br-Ethernet1/17/1", "rx_pause_frames", None] == 373112640
    assert found["Ethernet1/50/1", "tx_pause_frames", None] == 0
    assert ("Ethernet1/3", "rx_pause_frames", None) not in found
    both = values({PFC: listing("pfc"), QUEUING: listing("queuing-oobfc")})
    assert ("Ethernet1/1", "rx_pause_frames", None) not in both
    assert both["Ethernet1/1", "rx_pause_frames", 3] == 8


def test_storms_that_the_watchdog_acted_on():
    assert values({WATCHDOG: listing("pfc-queue")}) == {("Ethernet1/1", "watchdog_storms", 3): 1001}


def test_what_is_not_shown_is_missing_with_its_reason():
    shown = snapshot({INTERFACE: listing("interface"), PFC: listing("pfc")}, "Ethernet1/1")
    assert shown.taken_at_s == 12.5
    assert "tx_queue_packets: 'show queuing interface' was not answered" in shown.missing
    assert any(reason.startswith("rx_pause_us: ") for reason in shown.missing)
    assert not any(reason.startswith("rx_bytes") for reason in shown.missing)
    assert not any(reason.startswith("rx_pause_frames") for reason in shown.missing)
    absent = snapshot({INTERFACE: listing("interface"), PFC: listing("pfc")}, "Ethernet1/3")
    assert "rx_bytes: 'show interface' does not show it for Ethernet1/3" in absent.missing
    assert (
        f"rx_pause_frames: '{PFC}' does not show it for Ethernet1/3" in absent.missing
    )  # '-' and N/A are no zeros


def test_a_banner_before_the_table_is_no_counter():
    text = "WARNING: 5 giants  7 CRC are expected here\n\n" + listing("interface")
    assert values({INTERFACE: text}) == values({INTERFACE: listing("interface")})


@pytest.mark.parametrize("command", [INTERFACE, PFC, QUEUING])
def test_an_output_of_another_command_is_an_error(command):
    with pytest.raises(ReadError, match=command):
        snapshot({command: "Software\n  BIOS: version 05.47\n"})


def test_commands_only_show():
    for command in (*MODULE.read_commands(target()), *MODULE.counter_commands(target())):
        assert command.startswith("show ")


@pytest.mark.parametrize(
    ("high", "low", "overflow", "dropped"),
    [(0, 41, 0, 41), (5, 36, 0, 41), (5, 36, 19490, 19490), (0, 0, 0, 0)],
)
def test_ingress_drops_of_high_and_low_priority_are_discards(high, low, overflow, dropped):
    text = listing("queuing-new")
    for label, value in (("Hi Priority", high), ("Low Priority", low), ("Overflow", overflow)):
        text, count = re.subn(rf"({label} Drop Pkts +)\d+", rf"\g<1>{value}", text, count=1)
        assert count
    assert values({QUEUING: text})["Ethernet1/51", "rx_discards", None] == dropped
