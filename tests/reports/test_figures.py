"""Figures: what a reader must be able to tell from one without asking."""

import re

import pandas as pd
import pytest

from reports.figures import ports
from reports.figures import traffic as figures
from reports.figures.style import short_names


def texts(svg):
    """All words that are drawn, in order."""
    return [re.sub(r"<[^>]*>", "", found) for found in re.findall(r"<text.*?</text>", svg, re.S)]


def senders(count):
    rows = [
        (time_us, f"host{sender}:ens1f0", 10.0 + sender / 100, "host1:ens1f0")
        for sender in range(2, count + 2)
        for time_us in (0.0, 1000.0)
    ]
    return pd.DataFrame(rows, columns=["time_us", "sender", "goodput_gbps", "receiver"])


def test_the_incast_names_its_receiver_and_its_senders():
    words = texts(figures.sender_stability(senders(3), "simulated"))
    assert "3 senders to host1" in words
    assert {"host2", "host3", "host4"} <= set(words)


def test_of_many_senders_the_slowest_and_the_fastest_are_named():
    words = texts(figures.sender_stability(senders(40), "simulated"))
    assert "40 senders to host1" in words
    assert "host2, the slowest on average" in words
    assert "host41, the fastest on average" in words
    assert "host20" not in words


def test_the_growth_of_an_incast_names_its_limit_and_the_worst_receiver():
    frame = pd.DataFrame(
        {
            "senders": [2, 2, 4],
            "receiver": ["host1:e", "host2:e", "host1:e"],
            "fraction": [0.99, 0.91, 0.95],
            "jain": [0.99, 0.98, 0.97],
        }
    )
    words = texts(figures.incast_growth(frame, 0.9, "simulated"))
    assert "at least 90 % of the wire" in words
    assert [word for word in words if word.startswith("host")] == ["host2", "host1"]
    assert "%, worst of 2 receivers" in words


def test_a_median_that_equals_the_99th_percentile_is_still_seen():
    frame = pd.DataFrame({"p50_us": [1.0, 2.0], "p99_us": [1.0, 2.0]})
    svg = figures.latency_distribution(frame, 3.0, "simulated")
    assert {"median", "99th percentile", "limit of the 99th, 3 us"} <= set(texts(svg))
    # The lines in the axes: the legend's have no clip path.
    widths = {
        color: float(width)
        for color, width in re.findall(
            r'<path d="[^"]*" clip-path="[^"]*" style="fill: none; '
            r"stroke: var\(--(accent|bad)[^;]*; (?:stroke-opacity: [^;]*; )?stroke-width: ([\d.]+)",
            svg,
        )
    }
    assert widths["accent"] >= 3 * widths["bad"]


def test_a_limit_far_off_does_not_press_the_measured_together():
    frame = pd.DataFrame({"p50_us": [1.0, 2.0], "p99_us": [1.0, 2.0]})
    words = texts(figures.latency_distribution(frame, 500.0, "simulated"))
    assert "one-way latency, us (limit 500 us, far to the right)" in words
    assert "500" not in words


@pytest.mark.parametrize(("hosts", "named"), [(16, 16), (40, 14), (128, 16)])
def test_a_big_matrix_names_every_kth_port(hosts, named):
    ports = [f"host{number}:ens1f0" for number in range(1, hosts + 1)]
    frame = pd.DataFrame(
        [(a, b, 24.0) for a in ports for b in ports if a != b],
        columns=["source", "target", "goodput_gbps"],
    )
    words = texts(figures.bandwidth_matrix(frame, "simulated"))
    assert len([word for word in words if re.fullmatch(r"host\d+", word)]) == 2 * named
    assert ("every" in " ".join(words)) == (named < hosts)


def test_hosts_with_several_ports_are_named_with_them():
    assert short_names(["a:e0", "b:e0"]) == {"a:e0": "a", "b:e0": "b"}
    assert short_names(["a:e0", "a:e1"]) == {"a:e0": "a:e0", "a:e1": "a:e1"}


def test_queues_that_stay_empty_are_not_drawn():
    frame = pd.DataFrame(
        {"time_us": [0.0, 0.0], "port": ["leaf1:1", "leaf1:2"], "queue_bytes": [90_000, 10]}
    )
    words = texts(figures.queue_depth(frame, "simulated"))
    assert "leaf1:1, at most 90 KB" in words
    assert not any("leaf1:2" in word for word in words)


def test_figures_take_the_colours_of_the_page_and_say_what_they_show():
    svg = figures.sender_stability(senders(3), "simulated")
    assert 'role="img" aria-label="Goodput over time of 3 senders to host1."' in svg
    assert "var(--ink, #1f2933)" in svg
    assert "#ffffff" not in svg


def test_no_two_figures_of_a_page_share_an_id():
    pause = pd.DataFrame({"device": ["leaf1"], "port": ["1"], "pause_frames": [3]})
    both = figures.sender_stability(senders(3), "x") + ports.pauses(pause, "x")
    ids = re.findall(r'\bid="([^"]*)"', both)
    assert len(ids) == len(set(ids))
