"""What figures show are the numbers that they were given: pictures are read back."""

import pandas as pd
import pytest

from reports.figures import ports, scaling, suites, traffic, training
from tests.reports.svgread import bar, clipped, names, points, words

CORNER = "simulated"


def close(found, wanted):
    assert len(found) == len(wanted)
    for (x, y), (a, b) in zip(found, wanted, strict=True):
        assert x == pytest.approx(a, rel=2e-3, abs=2e-3)
        assert y == pytest.approx(b, rel=2e-3, abs=2e-3)


def test_every_sender_over_time():
    frame = pd.DataFrame(
        {
            "time_us": [1000.0, 2000.0, 3000.0] * 2,
            "sender": ["host1:e"] * 3 + ["host2:e"] * 3,
            "goodput_gbps": [11.0, 12.5, 9.0, 13.0, 12.0, 14.25],
            "receiver": "host3:e",
        }
    )
    svg = traffic.sender_stability(frame, CORNER)
    assert names(svg) == {"host1:e", "host2:e"}
    close(points(svg, "host1:e"), [(1, 11), (2, 12.5), (3, 9)])
    close(points(svg, "host2:e"), [(1, 13), (2, 12), (3, 14.25)])


def test_the_worst_incast_of_each_size():
    frame = pd.DataFrame(
        {
            "senders": [2, 2, 4],
            "receiver": ["host1:e", "host2:e", "host1:e"],
            "fraction": [0.99, 0.91, 0.75],
            "jain": [0.99, 0.98, 0.6],
        }
    )
    svg = traffic.incast_growth(frame, 0.9, CORNER)
    wire = [y for _, y in points(svg, "fraction")]
    assert wire == pytest.approx([91, 75], rel=2e-3)
    assert [y for _, y in points(svg, "jain")] == pytest.approx([98, 60], rel=2e-3)


def test_latency_by_rdma_and_by_tcp():
    rdma = pd.DataFrame({"p50_us": [2.0, 3.0], "p99_us": [2.5, 4.0]})
    tcp = pd.DataFrame({"p50_us": [11.0, 12.0], "p99_us": [13.0, 15.0]})
    svg = traffic.latency_distribution(rdma, 9.0, CORNER, tcp)
    assert {"RDMA median", "TCP median", "TCP 99th percentile"} <= set(words(svg))
    across = [x for x, _ in points(svg, "RDMA p99_us")]
    assert (min(across), max(across)) == pytest.approx((2.5, 4.0), rel=5e-3)
    across = [x for x, _ in points(svg, "TCP p50_us")]
    assert (min(across), max(across)) == pytest.approx((11.0, 12.0), rel=5e-3)


def test_tcp_alone_is_drawn_as_tcp():
    tcp = pd.DataFrame({"p50_us": [11.0], "p99_us": [13.0]})
    svg = traffic.latency_distribution(pd.DataFrame(), None, CORNER, tcp)
    assert names(svg) == {"TCP p50_us", "TCP p99_us"}


def test_the_heat_map_has_its_numbers_and_frames_what_failed():
    frame = pd.DataFrame(
        [("a:0", "b:0", 24.44, "PASS"), ("b:0", "a:0", 3.21, "FAIL")],
        columns=["source", "target", "goodput_gbps", "verdict"],
    )
    svg = traffic.bandwidth_matrix(frame, CORNER)
    assert {"24.4", "3.2"} <= set(words(svg))
    good = traffic.bandwidth_matrix(frame.assign(verdict="PASS"), CORNER)
    assert svg.count("stroke-width: 2.5") == good.count("stroke-width: 2.5") + 1


def test_queues_pauses_marks_and_notifications():
    queues = pd.DataFrame({"time_us": [0.0, 1000.0], "port": "leaf1:1", "queue_bytes": [5e4, 9e4]})
    close(points(traffic.queue_depth(queues, CORNER), "leaf1:1"), [(0, 50), (1, 90)])
    at = {"device": ["leaf1", "leaf2"], "port": ["1", "2"]}
    svg = ports.pauses(pd.DataFrame({**at, "pause_frames": [30, 7]}), CORNER)
    assert bar(svg, "leaf1 1") == pytest.approx(30, rel=2e-3)
    assert bar(svg, "leaf2 2") == pytest.approx(7, rel=5e-3)
    svg = ports.ecn_marks(pd.DataFrame({**at, "ecn_marked": [120, 0]}), CORNER)
    assert names(svg) == {"leaf1 1"}
    assert bar(svg, "leaf1 1") == pytest.approx(120, rel=2e-3)
    cnps = pd.DataFrame({**at, "cnp_sent": [40, 2], "cnp_handled": [9, 33]})
    svg = ports.notifications(cnps, CORNER)
    assert bar(svg, "cnp_sent leaf1 1", along="y") == pytest.approx(40, rel=5e-3)
    assert bar(svg, "cnp_handled leaf2 2", along="y") == pytest.approx(33, rel=5e-3)


def test_shares_bursts_collectives():
    mixed = pd.DataFrame(
        [("RDMA", "h1:e", "RDMA", 0.5, 0.9), ("TCP", "h1:e", "TCP", 1.2, 0.9)],
        columns=["pressed", "receiver", "role", "share", "limit"],
    )
    svg = suites.mixed_shares(mixed, CORNER)
    assert points(svg, "RDMA pressed, RDMA")[0][0] == pytest.approx(50, rel=2e-3)
    assert points(svg, "TCP pressed, TCP")[0][0] == pytest.approx(120, rel=2e-3)
    assert "at least 90 %" in words(svg)
    burst = pd.DataFrame(
        [("micro", 2, "a", 1.5, 0.9), ("micro", 4, "a", 1.1, 0.9), ("micro", 4, "b", 0.7, 0.9)],
        columns=["size", "senders", "receiver", "fraction", "limit"],
    )
    close(points(suites.burst_fractions(burst, CORNER), "micro"), [(2, 150), (4, 70)])
    steps = pd.DataFrame({"step": ["ring", "shift-2"], "busbw": [0.95, 0.4], "limit": 0.9})
    svg = suites.collective_busbw(steps, CORNER)
    assert bar(svg, "ring") == pytest.approx(95, rel=2e-3)
    assert bar(svg, "shift-2") == pytest.approx(40, rel=2e-3)


def soak(hosts, cycles):
    rows = [
        (cycle, "ring" if cycle % 2 else "shift-2", f"host{host}:e", 24.0 - host / 10 - cycle / 100)
        for cycle in range(1, cycles + 1)
        for host in range(1, hosts + 1)
    ]
    return pd.DataFrame(rows, columns=["cycle", "pattern", "host", "goodput_gbps"])


def test_a_soak_has_rings_and_exchanges_apart():
    svg = suites.soak_stability(soak(3, 6), CORNER)
    close(points(svg, "ring host2:e"), [(1, 23.79), (3, 23.77), (5, 23.75)])
    found = points(svg, "exchange host1:e", panel=1, up_of=0)
    close(found, [(2, 23.88), (4, 23.86), (6, 23.84)])
    assert {"host1", "host2", "host3"} <= set(words(svg))


def test_of_a_soak_of_32_hosts_the_slowest_and_the_fastest_are_named():
    svg = suites.soak_stability(soak(32, 4), CORNER)
    assert {"host32, the slowest on average", "host1, the fastest on average"} <= set(words(svg))
    even = suites.soak_stability(soak(32, 4).assign(goodput_gbps=24.0), CORNER)
    assert not any("slowest" in word for word in words(even))


def test_training_and_its_speed():
    frame = pd.DataFrame(
        {
            "epoch": [1, 2, 3],
            "loss": [2.0, 1.0, 0.25],
            "accuracy": [0.1, 0.5, 0.9],
            "seconds": [2.0, 1.0, 0.5],
            "images_per_s": [100.0, 200.0, 400.0],
        }
    )
    svg = training.training_curve(frame, "test", CORNER)
    close(points(svg, "loss"), [(1, 2), (2, 1), (3, 0.25)])
    assert not clipped(svg, "loss")  # the highest point is whole
    svg = training.training_speed(frame, CORNER)
    assert bar(svg, "epoch 1") == pytest.approx(2, rel=5e-3)
    assert bar(svg, "epoch 3", along="y") == pytest.approx(400, rel=5e-3)


def test_predictions_on_their_axes():
    frame = pd.DataFrame(
        {
            "model": "resnet50",
            "mode": "ring",
            "gpus": [1, 2, 8],
            "images_per_s": [200.0, 390.0, 1500.0],
            "efficiency": [1.0, 0.975, 0.9375],
            "speedup": [1.0, 1.95, 7.5],
            "evidence": "predicted",
        }
    )
    svg = scaling.scaling(frame, "predicted")
    wanted = [(1, 200), (2, 390), (8, 1500)]
    found = points(svg, "resnet50 ring images_per_s", log=("x", "y"))
    for (x, y), (a, b) in zip(found, wanted, strict=True):
        assert (x, y) == pytest.approx((a, b), rel=1e-2)
    found = points(svg, "resnet50 ring efficiency", panel=1, log=("x",))
    assert [y for _, y in found] == pytest.approx([100, 97.5, 93.75], rel=2e-3)
    svg = scaling.images(frame, "predicted")
    found = points(svg, "resnet50 ring", log=("x",))
    assert [y for _, y in found] == pytest.approx([200, 390, 1500], rel=5e-3)
    svg = scaling.speedup(frame, (8, 6.0), "predicted")
    close(points(svg, "speedup"), [(1, 1), (2, 1.95), (8, 7.5)])
    close(points(svg, "published"), [(8, 6.0)])


def test_names_of_devices_are_neither_formulas_nor_markup():
    name = 'h<1>&"$a$_b:e'
    frame = pd.DataFrame({"device": [name], "port": ["1"], "pause_frames": [3]})
    svg = ports.pauses(frame, "a<b")
    assert f"{name} 1" in words(svg)
    assert names(svg) == {f"{name} 1"}
    assert "<1>" not in svg
