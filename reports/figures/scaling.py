"""The picture of a prediction: images a second and efficiency over the number of GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from reports.figures.traffic import INK, SERIES

FORMATS = (".png", ".svg")
_GRID = "#e4e7eb"
_FAINT = "#7b8794"
# Lines differ in dashes and marks too, so that no one needs to tell colours apart.
_MARKS = ("o", "s", "^", "D", "v", "P")
_DASHES = ("-", "--", "-.", ":")


def draw_scaling(path: Path, frame: pd.DataFrame, title: str) -> None:
    """Write the picture; the file's ending says the format. OSError where it cannot be.

    ``frame`` has the columns model, mode, gpus, images_per_s, efficiency and evidence; the
    evidence is written into the corner.
    """
    style: dict[Any, Any] = {
        "svg.hashsalt": "paisoar-scaling",
        "svg.fonttype": "none",
        "font.size": 9,
        "axes.axisbelow": True,
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(9, 4), layout="constrained")
        left, right = figure.subplots(1, 2)
        for number, (key, rows) in enumerate(frame.groupby(["model", "mode"], sort=False)):
            name = " ".join(str(part) for part in key)
            _line(left, rows, "images_per_s", number, name)
            _line(right, rows.assign(efficiency=100 * rows["efficiency"]), "efficiency", number)
        left.set_yscale("log")
        left.set_ylabel("images a second")
        right.set_ylabel("efficiency, %")
        right.set_ylim(0, 105)
        for axes in (left, right):
            _across(axes, sorted(set(frame["gpus"])))
        left.legend(fontsize=8, frameon=False)
        figure.suptitle(title, fontsize=9, color=INK)
        said = ", ".join(sorted(set(frame["evidence"])))
        figure.text(0.995, 0.005, said, ha="right", va="bottom", fontsize=8, color=_FAINT)
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


def _line(axes: Axes, rows: pd.DataFrame, column: str, number: int, name: str = "") -> None:
    axes.plot(
        rows["gpus"],
        rows[column],
        color=SERIES[number % len(SERIES)],
        marker=_MARKS[number % len(_MARKS)],
        linestyle=_DASHES[number % len(_DASHES)],
        markersize=4,
        label=name,
    )


def _across(axes: Axes, gpus: list[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(gpus))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("GPUs")
    axes.grid(color=_GRID, linewidth=0.6)
