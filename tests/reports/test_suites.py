"""Frames of suites: the values that were judged, and nothing where there was no result."""

from dataclasses import replace

import pandas as pd
import pytest

from fabric.devices.registry import expected_qos
from fabric.errors import InputError
from reports.content import suites
from reports.content.forecast import MODELS, forecast
from reports.content.gather import gather
from reports.figures.traffic import bandwidth_matrix
from reports.page.panels import run_groups
from reports.page.render import render_page
from tests.sites import make_site
from validation.results import frames


def judged(run, check_id):
    return [check for check in run.all_checks if check.id == check_id]


def without_values(run):
    """The run as it is where no pair of any suite answered."""
    return replace(
        run,
        suites=tuple(
            replace(suite, checks=tuple(replace(c, value=None, limit=None) for c in suite.checks))
            for suite in run.suites
        ),
    )


def test_shares_have_class_receiver_and_limit(runs):
    frame = suites.mixed_frame(runs[0])
    checks = judged(runs[0], "mixed.share")
    assert list(frame["share"]) == [check.value for check in checks]
    assert set(frame["limit"]) == {0.9}
    assert set(zip(frame["pressed"], frame["role"], strict=True)) == {
        (pressed, role) for pressed in ("RDMA", "TCP") for role in ("RDMA", "TCP")
    }
    assert set(frame["receiver"]) <= {f"host{n}:ens1f0" for n in range(1, 5)}


def test_bursts_have_size_senders_and_receiver(runs):
    frame = suites.burst_frame(runs[0])
    assert len(frame) == len(judged(runs[0], "burst.fraction"))
    assert set(frame["size"]) == {"micro", "large"}
    assert set(frame["senders"]) == {2, 3}


def test_what_brought_no_result_is_not_drawn(runs):
    bare = without_values(runs[0])
    assert suites.mixed_frame(bare).empty
    assert suites.burst_frame(bare).empty
    assert suites.collective_frame(bare).empty


def test_every_pair_has_its_verdict(runs):
    frame = pd.DataFrame(
        {"source": ["host1:ens1f0", "host3:ens1f0"], "target": ["host2:ens1f0", "nobody:e"]}
    )
    assert list(suites.with_verdicts(frame, runs[1])["verdict"]) == ["FAIL", ""]


def test_marks_and_notifications_are_summed_over_suites_and_priorities():
    counters = pd.DataFrame(
        [
            ("incast", "leaf1", "1", 3, "ecn_marked_packets", 5),
            ("burst", "leaf1", "1", 3, "ecn_marked_packets", 7),
            ("incast", "host1", "e", None, "np_cnp_sent", 2),
            ("incast", "host2", "e", None, "rp_cnp_handled", 3),
            ("incast", "host2", "e", None, "rx_bytes", 999),
        ],
        columns=["suite", "device", "port", "priority", "counter", "delta"],
    )
    assert suites.ecn_frame(counters).to_dict("records") == [
        {"device": "leaf1", "port": "1", "ecn_marked": 12}
    ]
    cnps = {row["device"]: row for row in suites.cnp_frame(counters).to_dict("records")}
    assert (cnps["host1"]["cnp_sent"], cnps["host1"]["cnp_handled"]) == (2, 0)
    assert (cnps["host2"]["cnp_sent"], cnps["host2"]["cnp_handled"]) == (0, 3)
    assert suites.ecn_frame(counters.iloc[:0]).empty


def test_pauses_are_those_of_the_run(runs):
    counters = frames.counters_frame(runs[0]).assign(counter="tx_pause_frames")
    wanted = counters.groupby(["device", "port"])["delta"].sum().to_dict()
    found = suites.pause_frame(counters)
    assert wanted
    keys = zip(found["device"], found["port"], strict=True)
    assert dict(zip(keys, found["pause_frames"], strict=True)) == wanted


def test_pairs_that_bring_nothing_at_all_are_drawn():
    frame = pd.DataFrame({"source": ["a:0"], "target": ["b:0"], "goodput_gbps": [0.0]})
    assert "0.0" in bandwidth_matrix(frame, "simulated")


def test_what_is_missing_names_its_suite(content):
    (_, more, _) = run_groups(content)
    assert more.panels == ()
    assert set(more.missing.values()) == {"mixed", "burst", "collective", "soak"}


@pytest.mark.parametrize("environment", ["twin", "lab"])
def test_a_fabric_is_predicted_by_its_own_size(tmp_path, environment):
    site = make_site(tmp_path, environment=environment)
    found = forecast(site, {name: expected_qos(site, name) for name in site.devices})
    assert set(found.frame["model"]) == set(MODELS)
    assert set(found.frame["evidence"]) == {"predicted"}
    assert max(found.frame["gpus"]) == 2 * len(site.topology.hosts)


def test_a_fabric_that_cannot_be_predicted_is_said_to_be_so(twice, runs, monkeypatch):
    def refuse(*_):
        raise InputError("RDMA would lose packets at leaf1:Ethernet1/1")

    monkeypatch.setattr("reports.content.forecast.site_fabric", refuse)
    content = gather(twice, runs[0])
    assert content.forecast.frame.empty
    page = render_page(content)
    assert (
        "Nothing can be predicted for this fabric: RDMA would lose packets at leaf1:Ethernet1/1"
        in page
    )
