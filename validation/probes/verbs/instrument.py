"""Our own program over pyverbs, as the probe of real hosts uses it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from validation.criteria import payload_bps
from validation.probes.hosts.gids import plain_address
from validation.probes.hosts.instrument import (
    Complaint,
    Expected,
    Figures,
    Installed,
    ReportError,
)
from validation.probes.hosts.options import Options
from validation.probes.hosts.pairtest import End, PairTest
from validation.probes.perftest.complaints import complaints as perftest_complaints

_FILE = "verbs.py"
_TOLERANCE = 0.02
_INSTALL = (
    "install python3 and pyverbs there (Debian, Ubuntu, RHEL: python3-pyverbs; "
    "with ibverbs-providers or libibverbs)"
)
_MODULES = "device, pyverbs.qp, pyverbs.wr, pyverbs.cq, pyverbs.mr, pyverbs.addr, pyverbs.pd"
_LOADS = (
    "python3 -c 'import sys; assert sys.version_info >= (3, 8), sys.version; "
    f'import pyverbs.{_MODULES}; print("loaded")\' 2>&1 | tail -n 1; true'
)
# What the packages of distributions say; pyverbs itself has no version.
_RELEASE = (
    "dpkg-query -W -f '${Version}' python3-pyverbs 2>/dev/null || "
    "rpm -q --qf '%{VERSION}-%{RELEASE}' python3-pyverbs 2>/dev/null; true"
)
_OWN: tuple[tuple[str, str], ...] = (
    (r"pyverbs cannot be loaded|No module named", _INSTALL),
    (r"port 1 is not ACTIVE", "look at the cable and at `ip link` there"),
    (r"Couldn't create queue pairs", "look at what else uses the NIC (`rdma resource show`)"),
    (r"Traceback|Error: ", "run the command of the transcript by hand there"),
)
_TABLE = tuple((re.compile(pattern), advice) for pattern, advice in _OWN)
# The other end's trouble: it is there to be read, and comes last.
_CONSEQUENCE = re.compile(r"the other end (?:broke off|says nothing)")
_NOTHING: NDArray[np.float64] = np.empty(0)


class Verbs:
    """See :class:`~validation.probes.hosts.instrument.Instrument`."""

    name = "verbs"

    @property
    def files(self) -> Mapping[str, str]:
        """See Instrument: the program, which needs nothing of ours beside it."""
        return {_FILE: (Path(__file__).parent / "program.py").read_text()}

    def programs(self, options: Options) -> tuple[str, ...]:
        """See Instrument."""
        del options
        return ("python3",)

    def questions(self, options: Options) -> tuple[str, ...]:
        """See Instrument: whether pyverbs loads, and its package's release."""
        del options
        return (_LOADS, _RELEASE)

    def installed(
        self, options: Options, here: frozenset[str], outputs: Mapping[str, str]
    ) -> Installed:
        """See Instrument."""
        del options
        release = outputs.get(_RELEASE, "").strip()
        said = outputs.get(_LOADS, "").strip()
        if "python3" not in here:
            return Installed("unknown", problem=f"python3 not found: {_INSTALL}")
        if said != "loaded":
            return Installed("unknown", problem=f"pyverbs does not load ({said}): {_INSTALL}")
        return Installed(f"pyverbs {release}" if release else "pyverbs of unknown release")

    def words(
        self, test: PairTest, end: End, options: Options, *, mtu: int, port: int,
        folder: str, peer: str = "", json_file: str = "",
    ) -> tuple[str, ...]:  # fmt: skip
        """See Instrument."""
        del json_file
        stream = test.stream
        words = ["python3", f"{folder}/{_FILE}", _verb(test, options), test.tool.kind]
        words += ["-d", end.rdma, "-x", end.gid_index, "-m", str(mtu), "-p", str(port)]
        words += ["-s", str(stream.message_bytes), "-q", str(stream.qps)]
        if test.seconds is not None:
            words += ["-D", str(test.seconds), "-f", str(options.margin_s)]
        else:
            words += ["-n", str(test.iterations)]
        if peer and stream.messages_per_s:
            words += ["-r", str(stream.messages_per_s)]
        if end.tos is not None:
            words.append(f"--tclass={end.tos}")
        return (*words, "--peer", peer) if peer else tuple(words)

    def figures(self, test: PairTest, out: str, expected: Expected, json_text: str) -> Figures:
        """See Instrument."""
        del json_text
        report = _report(out)
        _right_test(test, report, expected)
        completed = _number(report, "completed")
        wanted = None if test.iterations is None else test.iterations * test.stream.qps
        if completed < 1 or (wanted is not None and completed != wanted):
            raise ReportError(
                f"it reports {completed:g} messages" + f", not {wanted}" * bool(wanted)
            )
        if test.tool.kind == "ping":
            return Figures(int(completed), 0.0, _latency(test, report, expected))
        return Figures(int(completed), _goodput(report, expected), _NOTHING)

    def complaints(self, text: str) -> Iterator[Complaint]:
        """See Instrument; device errors are told in perftest's words, with its advice."""
        for line in text.splitlines():
            said = line.strip()
            if _CONSEQUENCE.search(said):
                yield Complaint(1000, said, "see what that one said")
                continue
            own = next((advice for pattern, advice in _TABLE if pattern.search(said)), "")
            if own:
                yield Complaint(0, said, own)
            elif said.startswith("verbs: "):
                known = next(perftest_complaints(said.removeprefix("verbs: ")), None)
                advice = known.advice if known else "see its transcript"
                yield Complaint(known.rank if known else 999, said, advice)

    def noise(self, text: str) -> tuple[str, ...]:
        """See Instrument: it warns of nothing."""
        del text
        return ()

    def without_samples(self, out: str) -> str:
        """See Instrument: percentiles stay."""
        return re.sub(r'"samples_us": \[[^\]]*\]', '"samples_us": []', out)


def _verb(test: PairTest, options: Options) -> str:
    return options.latency if test.tool.kind == "ping" else options.bandwidth


def _report(out: str) -> Mapping[str, Any]:
    lines = [line for line in out.splitlines() if line.startswith("{")]
    try:
        report = json.loads(lines[-1])
    except (IndexError, ValueError) as error:
        raise ReportError("it left no report") from error
    if not isinstance(report, dict):
        raise ReportError("its report is no JSON object")
    return report


def _number(report: Mapping[str, Any], key: str) -> float:
    value = report.get(key)
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ReportError(f"its report says {value!r} for {key}")
    return float(value)


def _right_test(test: PairTest, report: Mapping[str, Any], expected: Expected) -> None:
    """That the report is of this test, on the device, MTU and GIDs that were asked for."""
    for key, wanted in (
        ("verb", test.tool.title),
        ("kind", test.tool.kind),
        ("device", expected.rdma),
        ("mtu", expected.mtu),
        ("gid_index", expected.gid_index),
        ("bytes", test.stream.message_bytes),
        ("qps", test.stream.qps),
    ):
        if report.get(key) != wanted:
            raise ReportError(f"it ran with {key} {report.get(key)}, not with {wanted}")
    for side, address in (("local", expected.local), ("remote", expected.remote)):
        seen = plain_address(str(report.get(f"{side}_gid")))
        if seen != address:
            raise ReportError(f"its {side} GID is of {seen or 'nobody'}, not of {address}")


def _goodput(report: Mapping[str, Any], expected: Expected) -> float:
    rate, window_s = _number(report, "goodput_bps"), _number(report, "window_s")
    if rate <= 0:
        raise ReportError(f"it reports a bandwidth of {rate:g} bit/s")
    wire = payload_bps(expected.speed_bps, expected.mtu)
    if rate > wire * (1 + _TOLERANCE):
        raise ReportError(
            f"it reports {rate / 1e9:.4g} Gbit/s on a wire that carries {wire / 1e9:.4g}"
        )
    if window_s > expected.elapsed_s * (1 + _TOLERANCE):
        raise ReportError(
            f"it measured {window_s:.3g} s of {expected.elapsed_s:.3g}: its clock is wrong"
        )
    return rate


def _latency(test: PairTest, report: Mapping[str, Any], expected: Expected) -> NDArray[np.float64]:
    try:
        samples = np.asarray(report.get("samples_us"), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ReportError("its samples are no numbers") from error
    if samples.ndim != 1 or len(samples) != _number(report, "completed"):
        raise ReportError(f"it shows {samples.size} samples of {report.get('completed')}")
    if not np.all(np.isfinite(samples)) or float(samples.min()) <= 0:
        raise ReportError(f"it shows a sample of {float(samples.min()):g} us")
    round_trips_s = float(samples.sum()) * 2 / test.tool.trips / 1e6
    if round_trips_s > expected.elapsed_s * (1 + _TOLERANCE):
        raise ReportError(
            f"its samples add up to {round_trips_s:.3g} s, it ran for {expected.elapsed_s:.3g}: "
            "its clock is wrong"
        )
    return samples / test.tool.trips


VERBS = Verbs()
