"""One self-contained HTML page: no script, no font, no image from elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from reports import figures
from reports.content import ReportContent

MAX_ROWS = 200


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
    return environment.get_template("page.html.j2").render(
        content=content, figures=_figures(content), max_rows=MAX_ROWS
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
        "training": drawn(
            training.epochs, lambda: figures.training_curve(training.epochs, evidence)
        )
        if training
        else Markup(""),
    }


def _table(frame: pd.DataFrame, limit: int = MAX_ROWS) -> Markup:
    head = Markup("").join(Markup("<th>{}</th>").format(name) for name in frame.columns)
    rows = [
        Markup("<tr class='{}'>{}</tr>").format(
            str(getattr(row, "verdict", "")).lower(),
            Markup("").join(Markup("<td>{}</td>").format(_cell(value)) for value in row),
        )
        for row in frame.head(limit).itertuples(index=False)
    ]
    more = (
        Markup("<p class='note'>{} more rows in the tables beside this page.</p>").format(
            len(frame) - limit
        )
        if len(frame) > limit
        else Markup("")
    )
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>{}").format(
        head, Markup("").join(rows), more
    )


def _cell(value: Any) -> str:  # noqa: ANN401 - a frame's cell
    if value is None or value is pd.NA or (isinstance(value, float) and pd.isna(value)):
        return ""
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)
