"""From a report to a figure that can be believed, or to the reason why it cannot.

Averages count; perftest's peak is one lucky stretch (and 0.00 with ``-D``), its
t_stdev overflows and its t_max leaves out the two worst samples, so that latency
comes from the samples (``-U``) alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from validation.criteria import payload_bps
from validation.probes.hosts.instrument import Expected, Figures, ReportError
from validation.probes.hosts.pairtest import PairTest
from validation.probes.perftest.jsonreport import figure
from validation.probes.perftest.text import UNITS_BPS, Report, column

# Two clocks and two roundings apart.
_TOLERANCE = 0.02
# perftest falls back to the port's MTU and says so on stdout only.
_HINTS = {"Mtu": ": raise the MTU of both interfaces and of every port between"}
_LAT_TYPICAL = "t_typical[usec]"
_NONE: NDArray[np.float64] = np.empty(0)


def figures(test: PairTest, report: Report, expected: Expected, json_text: str) -> Figures:
    """The client's report as numbers. Raises ReportError where they cannot be right."""
    _right_test(test, report, expected)
    row = _row(test, report)
    count = int(row["#iterations"])
    if count < 1:
        raise ReportError(f"it reports {count} iterations")
    if test.tool.kind == "ping":
        return Figures(count, 0.0, _latency(test, report, row, expected, json_text))
    return Figures(count, _goodput(test, report, row, expected, json_text), _NONE)


def _right_test(test: PairTest, report: Report, expected: Expected) -> None:
    """That the report is of this test, on the device, MTU and GIDs that were asked for."""
    if report.title != test.tool.title:
        bidirectional = "Bidirectional" in report.title
        more = ", whose figure is the sum of both directions" if bidirectional else ""
        raise ReportError(f"it reports {report.title or 'no title'!r}{more}")
    for key, wanted in (
        ("Device", expected.rdma),
        ("Mtu", f"{expected.mtu}[B]"),
        ("Link type", "Ethernet"),
        ("GID index", str(expected.gid_index)),
    ):
        seen = report.info.get(key)
        # An index is not printed where queue pairs are made by rdma_cm.
        if seen != wanted and not (seen is None and key == "GID index"):
            hint = _HINTS.get(key, "")
            raise ReportError(f"it ran with {key} {seen or 'unknown'}, not with {wanted}{hint}")
    for side, address in (("local", expected.local), ("remote", expected.remote)):
        seen = report.gids.get(side)
        if seen and seen != address:
            raise ReportError(f"its {side} GID is of {seen}, not of {address}")


def _row(test: PairTest, report: Report) -> Mapping[str, float]:
    if len(report.rows) != 1:
        raise ReportError(f"its report has {len(report.rows)} rows of results, not one")
    row = report.rows[0]
    bad = [name for name, value in row.items() if not math.isfinite(value) or value < 0]
    if bad:
        raise ReportError(f"its report says {row[bad[0]]:g} for {bad[0]}")
    if row["#bytes"] != test.stream.message_bytes:
        raise ReportError(f"it sent messages of {row['#bytes']:g} bytes")
    return row


def _goodput(
    test: PairTest,
    report: Report,
    row: Mapping[str, float],
    expected: Expected,
    json_text: str,
) -> float:
    name, unit = column(report, "BW average")
    if unit not in UNITS_BPS:
        raise ReportError(f"its bandwidth is in {unit}")
    shown, peak = row[name], row[column(report, "BW peak")[0]]
    rate = shown * UNITS_BPS[unit]
    if not rate:
        raise ReportError("it reports a bandwidth of zero")
    if peak and peak < shown * (1 - _TOLERANCE):
        raise ReportError(f"its average of {shown:g} {unit} is above its peak of {peak:g}")
    rate, off = _finest(test, row, rate, shown)
    wire = payload_bps(expected.speed_bps, expected.mtu)
    if rate > wire * (1 + _TOLERANCE) + off:
        raise ReportError(
            f"it reports {rate / 1e9:.4g} Gbit/s on a wire that carries {wire / 1e9:.4g}"
        )
    _same_as_json(json_text, "BW_average", shown, unit)
    return rate


def _finest(
    test: PairTest, row: Mapping[str, float], rate: float, shown: float
) -> tuple[float, float]:
    """The bandwidth by whichever column rounds less, and how far off that may be, in bit/s.

    Messages a second must give the same bandwidth: a wrong unit shows here.
    """
    message_bits = test.stream.message_bytes * 8
    by_count = row.get("MsgRate[Mpps]", 0.0) * 1e6 * message_bits
    # Printed with two decimals of a unit, and six of a million.
    off, off_by_count = rate * min(1.0, 0.005 / shown), 0.5 * message_bits
    if not by_count:
        return rate, off
    if abs(by_count - rate) > rate * _TOLERANCE + off + off_by_count:
        raise ReportError(
            f"it reports {rate / 1e9:.4g} Gbit/s, and messages that make {by_count / 1e9:.4g}"
        )
    return (by_count, off_by_count) if off_by_count < off else (rate, off)


def _latency(
    test: PairTest,
    report: Report,
    row: Mapping[str, float],
    expected: Expected,
    json_text: str,
) -> NDArray[np.float64]:
    samples = report.samples_us
    # Between n messages lie n - 1 times.
    if len(samples) < int(row["#iterations"]) - 1:
        raise ReportError(f"it shows {len(samples)} samples of {row['#iterations']:g}")
    if not np.all(np.isfinite(samples)) or float(samples.min()) <= 0:
        raise ReportError(f"it shows a sample of {float(samples.min()):g} us")
    typical = row.get(_LAT_TYPICAL)
    if typical is None:
        raise ReportError("its report has no t_typical")
    # t_typical is in the middle of the samples, less the two worst; it has two decimals.
    ordered, middle = np.sort(samples), len(samples) // 2
    around = ordered[max(0, middle - 2) : middle + 1]
    if not around[0] - 0.01 <= typical <= around[-1] + 0.01:
        median = float(np.median(samples))
        raise ReportError(f"its samples have a median of {median:g} us, it says {typical:g}")
    round_trips_s = float(samples.sum()) * 2 / test.tool.trips / 1e6
    if round_trips_s > expected.elapsed_s * (1 + _TOLERANCE):
        raise ReportError(
            f"its samples add up to {round_trips_s:.3g} s, it ran for {expected.elapsed_s:.3g}: "
            "its clock is wrong"
        )
    _same_as_json(json_text, "t_typical", typical, "us")
    return samples / test.tool.trips


def _same_as_json(text: str, name: str, shown: float, unit: str) -> None:
    """The report in JSON, where there is one, tells the same number."""
    other = figure(text, name)
    if other is not None and abs(other - shown) > shown * _TOLERANCE + 0.01:
        raise ReportError(f"its text says {shown:g} {unit}, its JSON {other:g}")
