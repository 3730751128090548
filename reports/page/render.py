"""One self-contained HTML page: no script, no font, no image from elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from reports.content.counters import grouped
from reports.content.model import ReportContent, TrainingFacts
from reports.figures import traffic as figures

MAX_ROWS = 200
# More rows than this are shown in a box that scrolls, and says so.
TALL_ROWS = 14
_SENTENCES = {"message", "reason", "about"}
_MARKS = {"fail", "not_run", "skip", "error", "warning"}
_CARRIERS = {
    "shm": "through shared memory, so that no packet crossed the fabric",
    "tcp": "over TCP",
    "verbs": "over RDMA verbs",
}


def render_page(content: ReportContent) -> str:
    """The page's whole text."""
    environment = Environment(
        loader=PackageLoader("reports"),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["table"] = _table
    environment.filters["prose"] = _prose
    return environment.get_template("page.html.j2").render(
        content=content,
        figures=_figures(content),
        wrong=_wrong(content.checks),
        coverage=_with_verdict(content.coverage),
        counters=() if content.counters.empty else grouped(content.counters),
        carrier=_CARRIERS.get(content.training.transport, f"over {content.training.transport}")
        if content.training
        else "",
        tall_rows=TALL_ROWS,
        max_rows=MAX_ROWS,
    )


def write_page(content: ReportContent, path: Path) -> Path:
    """Write the page where nothing but a whole page is ever seen."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(render_page(content), encoding="utf-8")
    os.replace(partial, path)  # noqa: PTH105 - Path.replace does the same, this says atomic
    return path


def _figures(content: ReportContent) -> dict[str, Markup]:
    evidence = content.evidence_class

    def drawn(frame: pd.DataFrame, draw: Callable[[], str]) -> Markup:
        # Figures come from our own code; labels in them are escaped by matplotlib.
        return Markup(draw()) if not frame.empty else Markup("")  # noqa: S704

    training = content.training
    return {
        "bandwidth": drawn(
            content.bandwidth, lambda: figures.bandwidth_matrix(content.bandwidth, evidence)
        ),
        "latency": drawn(
            content.latency,
            lambda: figures.latency_distribution(
                content.latency, content.latency_limit_us, evidence
            ),
        ),
        "incast": drawn(
            content.incast,
            lambda: figures.incast_growth(content.incast, content.incast_limit_fraction, evidence),
        ),
        "senders": drawn(
            content.senders, lambda: figures.sender_stability(content.senders, evidence)
        ),
        "queues": drawn(content.queues, lambda: figures.queue_depth(content.queues, evidence)),
        "pauses": drawn(content.pauses, lambda: figures.pauses(content.pauses, evidence)),
        "training": drawn(training.epochs, lambda: _training_figure(training))
        if training
        else Markup(""),
    }


def _training_figure(training: TrainingFacts) -> str:
    corner = (
        f"real training ({training.ranks} ranks, {training.transport}); "
        f"admitted on {training.gate_class} evidence"
    )
    images = "test" if training.tested else "training"
    return figures.training_curve(training.epochs, images, corner)


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


def _table(frame: pd.DataFrame, cards: bool = False) -> Markup:
    """The frame's first rows; columns without any value are left out.

    With ``cards``, a row becomes a block of named lines on a narrow screen.
    """
    shown = frame.head(MAX_ROWS)
    texts = {name: [_cell(value) for value in shown[name]] for name in shown.columns}
    texts = {name: cells for name, cells in texts.items() if any(cells)}
    kinds = {name: _kind(name, shown[name]) for name in texts}
    head = Markup("").join(
        Markup("<th scope='col' class='{}'>{}</th>").format(kinds[name], name) for name in texts
    )
    marks = [_mark(row) for row in shown.to_dict("records")]
    rows = [
        Markup("<tr class='{}'>{}</tr>").format(
            mark,
            Markup("").join(
                Markup("<td class='{}' data-label='{}'>{}</td>").format(kinds[name], name, text)
                for name, text in zip(texts, cells, strict=True)
            ),
        )
        for mark, cells in zip(marks, zip(*texts.values(), strict=True), strict=True)
    ]
    return Markup("<table class='{}'><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(
        "cards" if cards else "", head, Markup("").join(rows)
    )


def _prose(text: str) -> Markup:
    """Our messages put commands between backticks; a page has an element for them."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else Markup("{}").format(part)
        for place, part in enumerate(parts)
    )


def _kind(name: str, values: pd.Series[Any]) -> str:
    if name in _SENTENCES:
        return "sentence"
    return "number" if pd.api.types.is_numeric_dtype(values) else ""


def _mark(row: dict[Hashable, Any]) -> str:
    word = str(row.get("verdict") or row.get("severity") or "").lower()
    return word if word in _MARKS else ""


def _cell(value: Any) -> str:  # noqa: ANN401 - a frame's cell
    if value is None or value is pd.NA or (isinstance(value, float) and pd.isna(value)):
        return ""
    if isinstance(value, float):
        if 0 < abs(value) < 0.0005:
            return f"{value:.2g}"
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)
