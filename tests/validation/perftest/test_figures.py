"""Impossible figures and reports of another test are refused, each with its reason."""

import dataclasses

import numpy as np
import pytest

from fabric.topology import PortRef
from tests.validation.perftest import formats
from validation.probes.hosts.instrument import Expected, ReportError
from validation.probes.hosts.options import BANDWIDTH, LATENCY
from validation.probes.hosts.pairtest import PairTest, iterations_of
from validation.probes.perftest.figures import figures
from validation.probes.perftest.text import parse_report
from validation.traffic import Stream

A, B = PortRef("host1", "ens1f0"), PortRef("host2", "ens1f0")
EXPECTED = Expected("mlx5_0", 4096, 3, "10.0.0.1", "10.0.0.2", 100_000_000_000, 10.0)


def pair(kind="stream", verb="write"):
    stream = Stream(((A, B),), 65536 if kind == "stream" else 64, kind=kind, qps=4)
    tool = (BANDWIDTH if kind == "stream" else LATENCY)[verb]
    return PairTest("0", A, B, stream, tool, iterations_of(stream), 8)


def bandwidth(average=92.0, *, json_text="", settings=None, expected=EXPECTED, **table):
    settings = {"program": "ib_write_bw", **(settings or {})}
    lines = formats.head(**settings) + formats.ends("10.0.0.1", "10.0.0.2")
    lines += formats.bandwidth(table.pop("size", 65536), 1000, average, **table)
    return figures(pair(), parse_report("\n".join(lines)), expected, json_text)


def latency(samples, *, verb="send", expected=EXPECTED, **table):
    lines = formats.head(f"ib_{verb}_lat") + formats.latency(64, samples, **table)
    return figures(pair("ping", verb), parse_report("\n".join(lines)), expected, "")


def test_the_average_counts_and_not_the_peak():
    assert bandwidth(92.0, peak=97.0).goodput_bps == pytest.approx(92e9, 1e-5)
    assert bandwidth(92.0, peak=0.0).completed == 1000  # -D measures no peak


def test_a_slow_wire_is_judged_by_messages_where_two_decimals_say_too_little():
    """97.8 Mbit/s of payload on 100: shown as 0.10, which would be more than the wire carries."""
    slow = dataclasses.replace(EXPECTED, speed_bps=100_000_000)
    assert bandwidth(0.0978, expected=slow).goodput_bps == pytest.approx(97.8e6, 0.003)
    assert bandwidth(0.0978, rate=0.0, expected=slow).goodput_bps == 100e6
    with pytest.raises(ReportError, match=r"0\.1049 Gbit/s on a wire that carries 0\.09804"):
        bandwidth(0.1049, expected=slow)


@pytest.mark.parametrize("unit", ["MB/sec", "MiB/sec"])
def test_mebibytes_are_what_both_names_mean(unit):
    assert bandwidth(10000.0, unit=unit).goodput_bps == 10000 * 2**20 * 8


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"average": -3.1}, "-3.1 for BW"),
        ({"average": float("nan"), "rate": 0.1}, "nan for BW"),
        ({"average": 0.0}, "bandwidth of zero"),
        ({"average": 104.0}, "104 Gbit/s on a wire that carries 98"),
        ({"average": 92.0, "peak": 80.0}, "average of 92 Gb/sec is above its peak of 80"),
        ({"average": 92.0, "rate": 0.021}, "and messages that make 11.01"),
        ({"average": 92.0, "size": 4096}, "messages of 4096 bytes"),
    ],
)
def test_impossible_bandwidths_are_refused(table, why):
    with pytest.raises(ReportError, match=why):
        bandwidth(**table)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"title": "RDMA_Write Bidirectional BW"}, "sum of both directions"),
        ({"program": "ib_send_bw"}, "reports 'Send BW'"),
        ({"device": "mlx5_1"}, "with Device mlx5_1, not with mlx5_0"),
        ({"mtu": 1024}, r"with Mtu 1024\[B\], not with 4096.*: raise the MTU"),
        ({"gid": 0}, "with GID index 0, not with 3"),
        ({"link": "IB"}, "with Link type IB"),
    ],
)
def test_a_report_of_another_test_is_refused(settings, why):
    with pytest.raises(ReportError, match=why):
        bandwidth(settings=settings)


def test_the_gid_of_either_end_is_checked():
    lines = formats.head("ib_write_bw") + formats.ends("10.0.0.1", "10.9.9.9")
    lines += formats.bandwidth(65536, 1000, 92.0)
    with pytest.raises(ReportError, match=r"remote GID is of 10\.9\.9\.9, not of 10\.0\.0\.2"):
        figures(pair(), parse_report("\n".join(lines)), EXPECTED, "")


def test_text_and_json_must_agree():
    for release in ("4.5", "24.01"):
        same = formats.json_report("ib_write_bw", {"BW_average": 92.0}, release=release)
        assert bandwidth(92.0, json_text=same).goodput_bps == pytest.approx(92e9, 1e-5)
        other = formats.json_report("ib_write_bw", {"BW_average": 11.5}, release=release)
        with pytest.raises(ReportError, match=r"text says 92 Gb/sec, its JSON 11\.5"):
            bandwidth(92.0, json_text=other)


def test_latency_is_of_the_samples_and_a_read_counts_half():
    samples = [2.0, 3.0, 4.0, 50.0, 3.0]
    np.testing.assert_allclose(latency(samples).latency_us, samples)
    halves = latency(samples, verb="read").latency_us
    np.testing.assert_allclose(halves, np.array(samples) / 2)


@pytest.mark.parametrize(
    ("samples", "table", "why"),
    [
        ([2.0, -1.0, 3.0], {}, "-1 for t_min"),
        ([2.0, 0.0, 3.0], {}, "sample of 0 us"),
        ([2.0, 3.0, 4.0], {"iterations": 5000}, "3 samples of 5000"),
        ([2.0, 3.0, 4.0], {"typical": 7.5}, r"median of 3 us, it says 7\.5"),
        ([3e6, 3e6, 3e6], {}, "add up to 18 s, it ran for 10: its clock is wrong"),
    ],
)
def test_impossible_latencies_are_refused(samples, table, why):
    with pytest.raises(ReportError, match=why):
        latency(samples, **table)


def test_without_samples_there_is_no_latency():
    lines = [*formats.head("ib_send_lat"), formats.LAT_COLUMNS_D, " 64  81234  2.53  395256.92"]
    with pytest.raises(ReportError, match="0 samples of 81234"):
        figures(pair("ping", "send"), parse_report("\n".join(lines)), EXPECTED, "")
