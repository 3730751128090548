"""The picture of a prediction: images a second and efficiency over the number of GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from reports.figures.style import (
    ACCENT,
    BAD,
    GRID,
    INK,
    MARKS,
    SERIES,
    SOFT,
    THOUSANDS,
    WIDE_IN,
    draw,
    legend,
    mark_series,
)

FORMATS = (".png", ".svg")
_FAINT = "#7b8794"
# Lines differ in dashes and marks too, so that no one needs to tell colours apart.
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
        _paint_both(left, right, frame)
        left.legend(fontsize=8, frameon=False)
        figure.suptitle(title, fontsize=9, color=INK)
        said = ", ".join(sorted(set(frame["evidence"])))
        figure.text(0.995, 0.005, said, ha="right", va="bottom", fontsize=8, color=_FAINT)
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


def scaling(frame: pd.DataFrame, corner: str) -> str:
    """The same for a page."""

    def paint(figure: Figure, panels: list[Axes]) -> None:
        _paint_both(panels[0], panels[1], frame)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=4)

    names = ", ".join(dict.fromkeys(frame["model"]))
    alt = f"Predicted images a second and efficiency of {names} by number of GPUs."
    return draw("scaling", (WIDE_IN, 3.7), corner, alt, paint, (1, 2))


def speedup(frame: pd.DataFrame, published: tuple[int, float], corner: str) -> str:
    """Speed-up over GPUs, beside the ideal and one published point (GPUs, speed-up).

    Columns: gpus, speedup.
    """

    def paint(figure: Figure, panels: list[Axes]) -> None:
        (axes,) = panels
        axes.plot(frame["gpus"], frame["gpus"], color=SOFT, linestyle=":", label="ideal")
        (line,) = axes.plot(
            frame["gpus"], frame["speedup"], "o-", color=ACCENT, markersize=5,
            label="predicted for our GreenNet",
        )  # fmt: skip
        mark_series(line, "speedup")
        (point,) = axes.plot(
            *([value] for value in published), "*", color=BAD, markersize=13, linestyle="none",
            label=f"published by the article: {published[1]:g} on {published[0]}",
        )  # fmt: skip
        mark_series(point, "published")
        # On straight axes what is lost is seen; ticks of the smallest would lie on each other.
        ticks = [gpus for gpus in sorted(set(frame["gpus"])) if gpus == 1 or gpus >= 8]
        axes.set_xticks(ticks)
        axes.set_yticks(ticks)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("GPUs")
        axes.set_ylabel("speed-up over one GPU")
        legend(figure, 3)

    alt = "Predicted speed-up of GreenNet on up to 128 GPUs, the ideal, and the published point."
    return draw("speedup", (WIDE_IN, 4.2), corner, alt, paint)


def images(frame: pd.DataFrame, corner: str) -> str:
    """Images a second of each model, a panel each, a line a mode.

    Columns: model, mode, gpus, images_per_s.
    """
    models = list(dict.fromkeys(frame["model"]))

    def paint(figure: Figure, panels: list[Axes]) -> None:
        for axes, model in zip(panels, models, strict=True):
            rows = frame[frame["model"] == model]
            for number, (mode, line) in enumerate(rows.groupby("mode", sort=False)):
                _line(axes, line, "images_per_s", number, str(mode), f"{model} {mode}")
            axes.set_title(model)
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter(THOUSANDS)
            axes.set_ylabel("images a second")
            _across(axes, sorted(set(rows["gpus"])))
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=4)

    alt = f"Predicted images a second of {', '.join(models)} by number of GPUs and mode."
    height_in = 3.4 * ((len(models) + 1) // 2)
    shape = ((len(models) + 1) // 2, min(2, len(models)))
    return draw("images", (WIDE_IN, height_in), corner, alt, paint, shape)


def _paint_both(left: Axes, right: Axes, frame: pd.DataFrame) -> None:
    for number, (key, rows) in enumerate(frame.groupby(["model", "mode"], sort=False)):
        name = " ".join(str(part) for part in key)
        _line(left, rows, "images_per_s", number, name, f"{name} images_per_s")
        percent = rows.assign(efficiency=100 * rows["efficiency"])
        _line(right, percent, "efficiency", number, "", f"{name} efficiency")
    _thousands(left)
    left.set_ylabel("images a second")
    right.set_ylabel("efficiency, %")
    right.set_ylim(0, 105)
    for axes in (left, right):
        _across(axes, sorted(set(frame["gpus"])))


def _line(axes: Axes, rows: pd.DataFrame, column: str, number: int, name: str, series: str) -> None:
    (line,) = axes.plot(
        rows["gpus"],
        rows[column],
        color=SERIES[number % len(SERIES)],
        marker=MARKS[number % len(MARKS)],
        linestyle=_DASHES[number % len(_DASHES)],
        markersize=4,
        label=name,
    )
    mark_series(line, series)


def _thousands(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(THOUSANDS)


def _across(axes: Axes, gpus: list[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(gpus))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("GPUs")
    axes.grid(color=GRID, linewidth=0.6)
