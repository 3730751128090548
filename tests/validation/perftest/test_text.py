"""Reports of every release are read for what they say, and nothing else is believed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.validation.perftest import formats
from validation.probes.hosts.instrument import ReportError
from validation.probes.perftest.jsonreport import figure, parse_json_report
from validation.probes.perftest.text import column, parse_report, without_samples


def text(*parts):
    return "\n".join(line for part in parts for line in part) + "\n"


@pytest.mark.parametrize("release", ["4.5", "24.01", "24.04"])
@pytest.mark.parametrize("unit", ["Gb/sec", "MB/sec", "MiB/sec"])
def test_a_bandwidth_report_of_each_release_and_unit(release, unit):
    report = parse_report(
        text(
            formats.head("ib_write_bw", release=release, qps=4, gid=5),
            formats.ends("10.0.0.1", "10.0.0.2"),
            formats.bandwidth(65536, 48000, 92.41, unit=unit, peak=0.0),
        )
    )
    assert report.title == "RDMA_Write BW"
    assert report.info["Device"] == "mlx5_0"
    assert report.info["Number of qps"] == "4"
    assert report.info["Transport type"] == "IB"
    assert (report.info["Mtu"], report.info["GID index"]) == ("4096[B]", "5")
    assert report.info["rdma_cm QPs"] == "OFF"
    assert report.gids == {"local": "10.0.0.1", "remote": "10.0.0.2"}
    name, found = column(report, "BW average")
    assert (found, report.rows[0][name]) == (unit, 92.41)
    assert report.rows[0]["#iterations"] == 48000


def test_a_cpu_column_and_an_option_of_rdma_cm_are_no_obstacle():
    report = parse_report(
        text(
            formats.head("ib_send_bw", rdma_cm=True, tos=106, gid=None),
            formats.bandwidth(65536, 100, 92.4, cpu=3.5),
        )
    )
    assert report.rows[0]["CPU_Util[%]"] == 3.5
    assert report.info["TOS"] == "106"
    assert report.info["Data ex. method"] == "rdma_cm"
    assert "GID index" not in report.info


@pytest.mark.parametrize("sorted_too", [False, True])
def test_latency_samples_come_in_their_order_and_once(sorted_too):
    samples = [3.5, 2.25, 9.0, 2.5]
    report = parse_report(
        text(
            formats.head("ib_send_lat"),
            formats.latency(64, samples, sorted_too=sorted_too),
        )
    )
    assert report.samples_us.tolist() == samples
    # The two worst are left out of the table.
    assert report.rows[0]["99.9% percentile[usec]"] == 2.5
    assert report.rows[0]["t_max[usec]"] == 2.5
    assert len(report.rows) == 1


def test_samples_are_not_kept_twice():
    whole = text(formats.head("ib_send_lat"), formats.latency(64, [2.0, 3.0]))
    short = without_samples(whole)
    assert "1, 2" not in short
    assert "t_typical" in short
    assert parse_report(short).rows == parse_report(whole).rows


def test_duration_mode_of_latency_has_its_own_columns():
    report = parse_report(
        text(
            formats.head("ib_send_lat"),
            [formats.LAT_COLUMNS_D, " 64            81234            2.53           395256.92"],
        )
    )
    assert report.rows[0] == {
        "#bytes": 64,
        "#iterations": 81234,
        "t_avg[usec]": 2.53,
        "tps average": 395256.92,
    }
    assert len(report.samples_us) == 0


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ([], "no row of results"),
        ([formats.BW_COLUMNS.format(u="Gb/sec")], "no row of results"),
        ([formats.BW_COLUMNS.format(u="Gb/sec"), " 65536 100 9.1"], "3 values under 5 columns"),
        ([formats.LAT_COLUMNS, "#, cycles", "1, 7000"], "no row of results"),
    ],
)
def test_a_report_without_its_table_is_refused(table, why):
    with pytest.raises(ReportError, match=why):
        parse_report(text(formats.head("ib_write_bw"), table))


def test_samples_in_cycles_are_refused():
    whole = text(formats.head("ib_send_lat"), formats.latency(64, [2.0, 3.0]))
    with pytest.raises(ReportError, match="cycles"):
        parse_report(whole.replace("#, usec", "#, cycles"))


@settings(max_examples=200)
@given(st.text())
def test_any_text_is_a_report_or_is_refused(words):
    try:
        report = parse_report(words)
    except ReportError:
        return
    assert report.rows


@settings(max_examples=50)
@given(st.lists(st.floats(0.1, 1e5), min_size=2, max_size=30))
def test_every_sample_is_read_as_it_was_printed(samples):
    report = parse_report(text(formats.head("ib_send_lat"), formats.latency(64, samples)))
    np.testing.assert_allclose(report.samples_us, samples, rtol=1e-5)


@pytest.mark.parametrize("release", ["4.5", "24.01"])
def test_json_of_either_dialect(release):
    results = {"MsgSize": 65536, "n_iterations": 100, "BW_peak": 92.9, "BW_average": 92.41}
    written = formats.json_report("ib_write_bw", results, release=release)
    assert figure(written, "BW_average") == 92.41
    assert figure(written, "t_avg") is None
    assert parse_json_report(written)["test_info"]["Device"] == "mlx5_0"
    assert parse_json_report(written)["test_info"]["TX_depth"] == "128"


def test_no_json_is_no_figure():
    assert figure("", "BW_average") is None
    assert figure("results: {\nBW_average: much,\n}", "BW_average") is None
