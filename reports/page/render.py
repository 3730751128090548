"""The page of one run: one self-contained HTML file, no script, nothing from elsewhere."""

from __future__ import annotations

import pandas as pd

from reports.content.counters import grouped
from reports.content.model import ReportContent
from reports.page.html import render
from reports.page.panels import forecast_panel, run_groups, training_panels

_CARRIERS = {
    "shm": "through shared memory, so that no packet crossed the fabric",
    "tcp": "over TCP",
    "verbs": "over RDMA verbs",
}


def render_page(content: ReportContent) -> str:
    """The page's whole text."""
    transport = content.training.transport if content.training else ""
    return render(
        "page.html.j2",
        content=content,
        groups=run_groups(content),
        training_panels=training_panels(content),
        forecast_panel=forecast_panel(content),
        wrong=_wrong(content.checks),
        coverage=_with_verdict(content.coverage),
        counters=() if content.counters.empty else grouped(content.counters),
        carrier=_CARRIERS.get(transport, f"over {transport}"),
    )


def _wrong(checks: pd.DataFrame) -> pd.DataFrame:
    """Checks that did not pass, failures before what did not run before what was skipped."""
    if checks.empty:
        return checks
    order = {"FAIL": 0, "NOT_RUN": 1, "SKIP": 2}
    bad = checks[checks["verdict"] != "PASS"]
    return bad.sort_values("verdict", key=lambda verdicts: verdicts.map(order), kind="stable")


def _with_verdict(coverage: pd.DataFrame) -> pd.DataFrame:
    if coverage.empty:
        return coverage
    short = coverage["run"] < coverage["expected"]
    return coverage.assign(verdict=short.map({True: "NOT_RUN", False: ""}))
