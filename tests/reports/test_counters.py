"""Counters by meaning: each has one, and what hurts comes before volumes."""

import pandas as pd

from fabric.counters import COUNTER_NAMES
from reports.content.counters import MEANINGS, grouped

MOVED = pd.DataFrame(
    [
        ("incast", "host1", "ens1f0", None, "rx_bytes", 0, 900, 900),
        ("incast", "leaf1", "Ethernet1/1", 3, "tx_pause_frames", 0, 5, 5),
        ("incast", "leaf1", "Ethernet1/2", 3, "tx_pause_frames", 0, 50, 50),
        ("incast", "host1", "ens1f0", None, "packet_seq_err", 0, 7, 7),
        ("incast", "leaf1", "Ethernet1/1", None, "rx_discards", 0, 3, 3),
    ],
    columns=["suite", "device", "port", "priority", "counter", "before", "after", "delta"],
)


def test_every_counter_has_one_meaning():
    names = [name for meaning in MEANINGS for name in meaning.names]
    assert len(names) == len(set(names))
    assert set(names) == set(COUNTER_NAMES)


def test_loss_is_first_and_volumes_are_last_and_folded():
    groups = grouped(MOVED)
    moved = [group.meaning.title for group in groups if not group.rows.empty]
    assert moved == ["Loss", "Retransmission", "Pause", "Traffic volumes"]
    assert [group.meaning.title for group in groups if group.meaning.folded] == ["Traffic volumes"]
    assert len(groups) == len(MEANINGS)


def test_the_most_moved_is_first_in_its_group():
    pause = next(group for group in grouped(MOVED) if group.meaning.title == "Pause")
    assert list(pause.rows["delta"]) == [50, 5]
    assert "before" not in pause.rows
