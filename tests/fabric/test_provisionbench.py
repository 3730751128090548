"""The bench of provisioning: both ways end as intended, and are judged by their medians."""

import pytest

from fabric.errors import ToolError
from fabric.provisionbench import Case, Compared, compare
from fabric.topology import ClosShape

SMALL = Case("a leaf and a host", ClosShape(1, 1, 0))


@pytest.mark.slow
def test_both_ways_do_all_that_is_intended():
    told = []
    row = compare(SMALL, 1, lambda what, done, of: told.append((what, done, of)))
    assert row.devices == 2
    assert row.commands > 50
    assert len(row.ours_s) == len(row.loop_s) == 1
    assert told == [
        ("a leaf and a host: playbooks", 0, 2),
        ("a leaf and a host: netmiko loop", 1, 2),
    ]


@pytest.mark.slow
def test_a_way_that_leaves_something_out_is_no_result(monkeypatch):
    monkeypatch.setattr("fabric.provisionbench._by_playbooks", lambda _site, _plan: None)
    with pytest.raises(ToolError, match="leaf1 is not as intended after the playbooks"):
        compare(SMALL, 1)


def test_the_verdict_is_that_of_the_medians():
    row = Compared("x", 24, 1, ours_s=(10.0, 11.0, 30.0), loop_s=(54.0, 56.0, 55.0))
    assert row.ratio == 5.0
    assert row.to_json()["verdict"] == "PASS"
    assert Compared("x", 24, 1, (11.1,), (55.0,)).to_json()["verdict"] == "FAIL"
