"""Frames and messages as HTML; whatever comes from devices is escaped here."""

from __future__ import annotations

import os
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reports.content.words import number

MAX_ROWS = 200
# More rows than this are shown in a box that scrolls, and says so.
TALL_ROWS = 14
_SENTENCES = {"message", "reason", "about", "covered", "assumed"}
# The words in the columns verdict, severity and trend that colour their row.
_MARKS = {"fail", "not_run", "skip", "error", "warning", "better", "worse"}


def render(template: str, **values: object) -> str:
    """One template of ours; an unknown name in it is an error."""
    environment = Environment(
        loader=PackageLoader("reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["table"] = table
    environment.filters["prose"] = prose
    environment.globals.update(tall_rows=TALL_ROWS, max_rows=MAX_ROWS)
    return environment.get_template(template).render(**values)


def write_page(text: str, path: Path) -> Path:
    """Write a page where nothing but a whole page is ever seen."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)  # noqa: PTH105 - Path.replace does the same, this says atomic
    return path


def drawn(svg: str) -> Markup:
    """A figure of ours: labels in it were escaped when it was drawn."""
    return Markup(svg)  # noqa: S704


def table(frame: pd.DataFrame, cards: bool = False) -> Markup:
    """The frame's first rows; columns without any value are left out.

    With ``cards``, a row becomes a block of named lines on a narrow screen.
    """
    shown = frame.head(MAX_ROWS)
    texts = {name: [number(value) for value in shown[name]] for name in shown.columns}
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


def prose(text: str) -> Markup:
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
    said = row.get("verdict") or row.get("severity") or row.get("trend") or ""
    word = str(said).lower()
    return word if word in _MARKS else ""
