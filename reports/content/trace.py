"""A training's trace, as ``paisoar train --timeline`` writes it, as a frame to draw."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fabric.errors import InputError

# So many steps in a row are drawn, none of the first: those compile.
STEPS = 5
MAX_RANKS = 8
_COLUMNS = ["rank", "kind", "name", "start_ms", "spent_ms"]


@dataclass(frozen=True)
class Trace:
    """``frame``: rank, kind (step, wait, network), name, start_ms, spent_ms.

    Times count from the first step that is drawn, and are cut at the last. ``ranks`` is how
    many there were, of which the first MAX_RANKS are in the frame.
    """

    name: str
    ranks: int
    first: str
    last: str
    frame: pd.DataFrame


def read_trace(path: Path) -> Trace:
    """Some typical steps of a trace. InputError where the file is none, or has no whole step."""
    advice = "Write one with `paisoar train --timeline FILE`."
    try:
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
        rows = [_row(event) for event in events if event["ph"] == "X"]
    except OSError as error:
        raise InputError(str(error.strerror or error), file=path, advice=advice) from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"no trace of a training: {error!r}", file=path, advice=advice) from error
    frame = pd.DataFrame([row for row in rows if row[1]], columns=_COLUMNS)
    steps = frame[(frame["kind"] == "step") & (frame["rank"] == frame["rank"].min())]
    if steps.empty:
        raise InputError("the trace has no step of training", file=path, advice=advice)
    shown = _typical(steps.sort_values("start_ms"))
    start = float(shown["start_ms"].iloc[0])
    end = float((shown["start_ms"] + shown["spent_ms"]).max())
    ends = frame["start_ms"] + frame["spent_ms"]
    inside = frame[(frame["start_ms"] < end) & (ends > start) & (frame["rank"] < MAX_RANKS)]
    starts = inside["start_ms"].clip(lower=start)
    stops = (inside["start_ms"] + inside["spent_ms"]).clip(upper=end)
    return Trace(
        name=path.name,
        ranks=int(frame["rank"].nunique()),
        first=str(shown["name"].iloc[0]),
        last=str(shown["name"].iloc[-1]),
        frame=inside.assign(start_ms=starts - start, spent_ms=stops - starts).reset_index(
            drop=True
        ),
    )


def _typical(steps: pd.DataFrame) -> pd.DataFrame:
    """Steps in a row, of the second half, that took as long as most do."""
    ends = steps["start_ms"] + steps["spent_ms"]
    last = max(1, len(steps) - STEPS + 1)
    spans = [
        (float(ends.iloc[min(at + STEPS, len(steps)) - 1] - steps["start_ms"].iloc[at]), at)
        for at in range(last // 2, last)
    ]
    _, begin = sorted(spans)[len(spans) // 2]
    return steps.iloc[begin : begin + STEPS]


def _row(event: dict[str, Any]) -> tuple[int, str, str, float, float]:
    name = str(event["name"])
    start_ms, spent_ms = float(event["ts"]) / 1000, float(event["dur"]) / 1000
    return int(event["pid"]), _kind(str(event["cat"]), name), name, start_ms, spent_ms


def _kind(thread: str, name: str) -> str:
    """What is drawn of a span; empty for the small ones within a step."""
    if thread == "communication":
        return "network"
    if name.startswith("wait for"):
        return "wait"
    return "step" if name.startswith("step ") else ""
