"""Runs as files for other programs: CSV, Parquet or JSON, several runs in one table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import pandas as pd

from fabric.site import Site
from validation.files import write_whole
from validation.results.frames import (
    checks_frame,
    counters_frame,
    coverage_frame,
    uplinks_frame,
)
from validation.results.result import ValidationRun
from validation.times import to_text

Format = Literal["csv", "parquet", "json"]
FORMATS: tuple[Format, ...] = ("csv", "parquet", "json")


def runs_frame(run: ValidationRun) -> pd.DataFrame:
    """One row: the run itself."""
    return pd.DataFrame(
        [
            {
                "site": run.site,
                "environment": run.environment,
                "evidence_class": run.evidence_class,
                "probe": run.probe,
                "status": run.status,
                "verdict": run.verdict,
                "started_at": to_text(run.started_at),
                "finished_at": to_text(run.finished_at) if run.finished_at else "",
                "fingerprint": run.after.sha256 if run.after else "",
            }
        ]
    )


_TABLES: Mapping[str, Callable[[Site, ValidationRun], pd.DataFrame]] = {
    "runs": lambda _, run: runs_frame(run),
    "checks": lambda _, run: checks_frame(run),
    "coverage": lambda _, run: coverage_frame(run),
    "counters": lambda _, run: counters_frame(run),
    "uplinks": uplinks_frame,
}


def export_runs(
    site: Site, runs: Sequence[ValidationRun], folder: Path, form: Format
) -> tuple[Path, ...]:
    """Write ``runs``, ``checks``, ``coverage``, ``counters`` and ``uplinks`` below this folder.

    Every row names its run (``run_id``). JSON is one document, ``runs.json``: a list of
    what `paisoar validate --json` prints, with ``counters`` and ``uplinks``. InputError where a
    file cannot be written or evidence cannot be read.
    """
    if form == "json":
        document = [
            {
                **run.to_json(),
                "counters": json.loads(counters_frame(run).to_json(orient="records")),
                "uplinks": json.loads(uplinks_frame(site, run).to_json(orient="records")),
            }
            for run in runs
        ]
        path = folder / "runs.json"
        write_whole(path, (json.dumps(document, indent=1) + "\n").encode())
        return (path,)
    written = []
    for name, frame_of in _TABLES.items():
        frames = [_of_run(run, frame_of(site, run)) for run in runs]
        table = pd.concat([frame for frame in frames if not frame.empty] or frames[:1])
        path = folder / f"{name}.{form}"
        data = (
            table.to_csv(index=False).encode() if form == "csv" else table.to_parquet(index=False)
        )
        write_whole(path, data)
        written.append(path)
    return tuple(written)


def _of_run(run: ValidationRun, frame: pd.DataFrame) -> pd.DataFrame:
    made = frame.copy()
    made.insert(0, "run_id", run.id)
    return made
