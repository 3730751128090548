from hypothesis import given
from hypothesis import strategies as st

from fabric.counters import Counter, CounterSnapshot
from validation.counters import Deltas


def snapshot(*counters, missing=()):
    return {"leaf1": CounterSnapshot("leaf1", 0.0, counters, missing)}


def counter(value, name="rx_packets", bits=64, priority=None, port="Ethernet1/1"):
    return Counter("leaf1", port, name, value, priority, bits)


def only(before, after):
    (delta,) = Deltas.between(snapshot(before), snapshot(after)).all()
    return delta


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**63))
def test_a_counter_that_went_up_moved_by_the_difference(start, moved):
    end = min(start + moved, 2**64 - 1)
    delta = only(counter(start), counter(end))
    assert (delta.status, delta.value) == ("counted", end - start)


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**32 - 1))
def test_a_narrow_counter_wraps(moved, start):
    delta = only(counter(start, bits=32), counter((start + moved) % 2**32, bits=32))
    assert delta.known
    assert delta.value == moved


def test_a_wide_counter_that_went_down_was_reset_and_has_no_value():
    delta = only(counter(1000), counter(5))
    assert (delta.status, delta.known, delta.value) == ("reset", False, 0)


def test_a_narrow_counter_that_fell_far_is_a_reset_not_a_wrap():
    assert only(counter(2000, bits=32), counter(1000, bits=32)).status == "reset"


def test_a_reset_port_takes_its_other_counters_along_but_not_other_ports():
    deltas = Deltas.between(
        snapshot(
            counter(900),
            counter(7, "tx_packets"),
            counter(2**32 - 5, "out_of_sequence", bits=32),
            counter(0, "rx_discards"),
            counter(5, port="Ethernet1/2"),
        ),
        snapshot(
            counter(10),
            counter(9, "tx_packets"),
            counter(3, "out_of_sequence", bits=32),
            counter(0, "rx_discards"),
            counter(6, port="Ethernet1/2"),
        ),
    )
    assert deltas.get("leaf1", "Ethernet1/1", "tx_packets").status == "reset"
    assert deltas.get("leaf1", "Ethernet1/1", "out_of_sequence").status == "reset"
    assert deltas.get("leaf1", "Ethernet1/1", "rx_discards").value == 0
    assert deltas.get("leaf1", "Ethernet1/1", "rx_discards").known
    assert deltas.get("leaf1", "Ethernet1/2", "rx_packets").value == 1
    assert len(deltas.resets("leaf1")) == 3


def test_absence_is_never_zero():
    appeared = Deltas.between(snapshot(), snapshot(counter(5))).all()[0]
    vanished = Deltas.between(snapshot(counter(5)), snapshot()).all()[0]
    assert (appeared.status, vanished.status) == ("appeared", "vanished")
    assert not appeared.known
    assert not vanished.known
    assert Deltas.between(snapshot(), snapshot()).get("leaf1", "x", "rx_packets") is None


def test_what_the_module_says_about_a_missing_counter_is_found_by_its_whole_name():
    said = "rx_prio_discards: this platform counts by port only"
    deltas = Deltas.between(snapshot(missing=(said,)), snapshot(missing=(said,)))
    assert deltas.why_missing("leaf1", "rx_prio_discards") == said
    assert deltas.why_missing("leaf1", "rx_discards") == ""


def test_what_is_said_of_another_port_or_priority_is_no_answer():
    deltas = Deltas.between(
        snapshot(
            missing=(
                "p1: rx_pause_us, tx_pause_us of priority 0: not counted, because PFC is off",
                "p1: rx_discards: ethtool has no rx_discards_phy",
                "queue_drops: 'show queuing interface' does not show it for Ethernet1/2",
            )
        ),
        {},
    )
    assert deltas.why_missing("leaf1", "tx_pause_us", "p1", 0)
    assert not deltas.why_missing("leaf1", "tx_pause_us", "p1", 3)
    assert not deltas.why_missing("leaf1", "tx_pause_us", "p2", 0)
    assert deltas.why_missing("leaf1", "rx_discards", "p1")
    assert not deltas.why_missing("leaf1", "rx_discards", "p2")
    assert deltas.why_missing("leaf1", "queue_drops", "Ethernet1/2", 3)
    assert not deltas.why_missing("leaf1", "queue_drops", "Ethernet1/1", 3)


def test_moved_lists_what_moved_and_what_cannot_be_known():
    deltas = Deltas.between(
        snapshot(counter(1), counter(1, "tx_packets"), counter(9, "rx_bytes", port="p2")),
        snapshot(counter(1), counter(4, "tx_packets"), counter(1, "rx_bytes", port="p2")),
    )
    assert {delta.name for delta in deltas.moved()} == {"tx_packets", "rx_bytes"}
    assert deltas.get("leaf1", "Ethernet1/1", "tx_packets").label == "leaf1 Ethernet1/1 tx_packets"
