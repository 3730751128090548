"""Whether a device rebooted between two snapshots."""

import io

import pyarrow.parquet as pq
import pytest

from fabric.counters import Counter, CounterSnapshot
from validation.boots import boot_known, rebooted
from validation.results.evidence import counter_file
from validation.results.kept import snapshots_from

COUNTER = Counter("leaf1", "Ethernet1/1", "rx_packets", 5)


def at(taken_at_s, up_s=None, boot_id=""):
    return CounterSnapshot("leaf1", taken_at_s, (COUNTER,), (), up_s, boot_id)


@pytest.mark.parametrize(
    ("before", "after", "elapsed_s", "rebooted_"),
    [
        (at(0, 1000), at(30, 1030), None, False),
        (at(0, 1000), at(30, 12), None, True),
        # A system that shows whole minutes.
        (at(0, 120), at(59, 120), None, False),
        # Up for a minute, then read again an hour later, of which it was up for half.
        (at(0, 60), at(3600, 1800), None, True),
        (at(0, 60), at(3600, 3660), None, False),
        # The clock went forward between both: only 30 s passed.
        (at(0, 60), at(3600, 90), 30.0, False),
        # And so it did where nobody knows how long it was: the device was up before.
        (at(0, 5000), at(3600, 5030), None, False),
        (at(0, boot_id="a"), at(30, boot_id="b"), None, True),
        (at(0, boot_id="a"), at(30, boot_id="a"), None, False),
        (at(0, 1000), at(30), None, False),
        (at(0), at(30), None, False),
    ],
)
def test_rebooted(before, after, elapsed_s, rebooted_):
    assert bool(rebooted(before, after, elapsed_s)) is rebooted_


def test_it_is_known_only_where_both_show_the_same():
    assert boot_known(at(0, 1), at(1, 2))
    assert boot_known(at(0, boot_id="a"), at(1, boot_id="a"))
    assert not boot_known(at(0, 1), at(1))
    assert not boot_known(at(0, 1), at(1, boot_id="a"))


def test_evidence_keeps_it_and_that_of_earlier_releases_is_still_read(tmp_path):
    before, after = {"leaf1": at(1.0, 10.5)}, {"leaf1": at(2.0, None, "abc")}
    data = counter_file(before, after)
    assert snapshots_from(data, tmp_path) == (before, after)
    table = pq.read_table(io.BytesIO(data)).drop_columns(["up_s", "boot_id"])
    older = io.BytesIO()
    pq.write_table(table, older)
    assert snapshots_from(older.getvalue(), tmp_path) == (
        {"leaf1": at(1.0)},
        {"leaf1": at(2.0)},
    )
