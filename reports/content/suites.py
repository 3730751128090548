"""What suites found as frames to draw: the very values that were judged.

An empty frame means that the suite was not run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from validation.criteria import Check
from validation.results.result import ValidationRun

SUITE_COLUMNS = ("suite", "verdict", "passed", "failed", "not run", "skipped", "covered", "seconds")
_PRESSED = {"tcp-presses": "RDMA", "rdma-presses": "TCP"}


def suites_frame(run: ValidationRun) -> pd.DataFrame:
    """One row a suite: its verdict, its checks by verdict, what it had to visit and has seen."""
    rows = []
    for suite in run.suites:
        counts = Counter(check.verdict for check in suite.checks)
        covered = ", ".join(
            f"{suite.seen.get(what, 0):,}/{count:,} {what}"
            for what, count in suite.expected.items()
        )
        rows.append(
            (
                suite.name,
                suite.verdict,
                *(counts[word] for word in ("PASS", "FAIL", "NOT_RUN", "SKIP")),
                covered,
                round(suite.wall_s, 1),
            )
        )
    return pd.DataFrame(rows, columns=list(SUITE_COLUMNS))


def mixed_frame(run: ValidationRun) -> pd.DataFrame:
    """pressed, receiver, role, share, limit: of its guarantee, by class and receiver."""
    rows = []
    for check in _checks(run, "mixed.share"):
        step, _, role = check.subject.rpartition(" ")
        for prefix, pressed in _PRESSED.items():
            if step.startswith(f"{prefix}-"):
                receiver = step.removeprefix(f"{prefix}-")
                rows.append((pressed, receiver, role, check.value, check.limit))
    return _numbers(rows, ["pressed", "receiver", "role", "share", "limit"])


def burst_frame(run: ValidationRun) -> pd.DataFrame:
    """size, senders, receiver, fraction, limit: what came through of each step's bursts."""
    rows = []
    for check in _checks(run, "burst.fraction"):
        shape, _, receiver = check.subject.partition("-to-")
        size, _, senders = shape.partition("-")
        rows.append((size, int(senders), receiver, check.value, check.limit))
    return _numbers(rows, ["size", "senders", "receiver", "fraction", "limit"])


def collective_frame(run: ValidationRun) -> pd.DataFrame:
    """step, busbw, limit: of what the wires carry."""
    rows = [(c.subject, c.value, c.limit) for c in _checks(run, "collective.busbw")]
    return _numbers(rows, ["step", "busbw", "limit"])


def with_verdicts(bandwidth: pd.DataFrame, run: ValidationRun) -> pd.DataFrame:
    """The frame of bandwidth with each pair's verdict; empty where a pair was not judged."""
    said = {check.subject: check.verdict for check in _checks(run, "bandwidth.fraction")}
    pairs = zip(bandwidth["source"], bandwidth["target"], strict=True)
    return bandwidth.assign(verdict=[said.get(f"{a} -> {b}", "") for a, b in pairs])


def pause_frame(counters: pd.DataFrame) -> pd.DataFrame:
    """device, port, pause_frames: PFC frames sent by each port over the whole run."""
    return _by_port(counters, {"tx_pause_frames": "pause_frames"})


def ecn_frame(counters: pd.DataFrame) -> pd.DataFrame:
    """device, port, ecn_marked: packets marked CE by each egress port over the whole run."""
    return _by_port(counters, {"ecn_marked_packets": "ecn_marked"})


def cnp_frame(counters: pd.DataFrame) -> pd.DataFrame:
    """device, port, cnp_sent, cnp_handled: congestion notifications over the whole run."""
    return _by_port(counters, {"np_cnp_sent": "cnp_sent", "rp_cnp_handled": "cnp_handled"})


def _by_port(counters: pd.DataFrame, names: dict[str, str]) -> pd.DataFrame:
    ours = counters[counters["counter"].isin(names)]
    if ours.empty:
        return pd.DataFrame(columns=["device", "port", *names.values()])
    wide = ours.pivot_table(
        index=["device", "port"], columns="counter", values="delta", aggfunc="sum", sort=False
    )
    columns = wide.reindex(columns=list(names)).rename(columns=names).rename_axis(columns=None)
    return columns.fillna(0).astype("int64").reset_index()


def _checks(run: ValidationRun, check_id: str) -> list[Check]:
    return [check for check in run.all_checks if check.id == check_id]


def _numbers(rows: Sequence[tuple[object, ...]], columns: list[str]) -> pd.DataFrame:
    """Checks without a value brought no result: the page lists them among the failures."""
    frame = pd.DataFrame(rows, columns=columns)
    valued = [name for name in ("share", "fraction", "busbw", "limit") if name in columns]
    return frame.astype(dict.fromkeys(valued, "float64")).dropna(ignore_index=True)
