"""The picture of a search for better settings: every candidate, the choices, today."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter

from reports.figures.style import ACCENT, BAD, INK

FORMATS = (".png", ".svg")


@dataclass(frozen=True)
class Mark:
    """One candidate: tail as a multiple of the ideal, queue in microseconds, goodput 0..1."""

    label: str
    goodput: float
    tail: float
    queue_us: float
    holds: bool


def draw_tuning(
    path: Path, today: Mark, choices: Sequence[Mark], tried: Sequence[Mark], title: str
) -> None:
    """Write the picture; the file's ending says the format. OSError where it cannot be."""
    with mpl.rc_context({"svg.hashsalt": "paisoar", "font.size": 9, "axes.axisbelow": True}):
        figure = Figure(figsize=(9, 4), layout="constrained")
        left, right = figure.subplots(1, 2)
        _paint(left, "queue_us", "queue delay, 99th percentile, us", today, choices, tried)
        _paint(right, "goodput", "goodput, % of what NICs allow", today, choices, tried)
        left.set_xscale("log")
        left.legend(fontsize=8)
        figure.suptitle(title, fontsize=9, color=INK)
        figure.text(0.995, 0.005, "simulated", ha="right", va="bottom", fontsize=7, color="#7b8794")
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


def _paint(
    axes: Axes,
    name: str,
    label: str,
    today: Mark,
    choices: Sequence[Mark],
    tried: Sequence[Mark],
) -> None:
    scale = 100 if name == "goodput" else 1

    def dots(marks: Sequence[Mark], color: str, shape: str, said: str, size: float) -> None:
        across = [scale * getattr(mark, name) for mark in marks]
        tails = [mark.tail for mark in marks]
        axes.scatter(across, tails, s=size, c=color, marker=shape, label=said)

    dots([mark for mark in tried if not mark.holds], "#f0b8a0", "x", "breaks a constraint", 16)
    dots([mark for mark in tried if mark.holds], "#c5ced6", "o", "tried", 14)
    dots(choices, ACCENT, "o", "choice", 42)
    dots([today], BAD, "*", "today", 120)
    for mark in choices:
        at = (scale * float(getattr(mark, name)), mark.tail)
        axes.annotate(mark.label, at, xytext=(4, 4), textcoords="offset points", color=INK)
    axes.set_xlabel(label)
    axes.set_ylabel("message time, 99th percentile / ideal")
    axes.set_yscale("log")
    for level in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        level(FormatStrFormatter("%.3g"))
    axes.grid(color="#e4e7eb", linewidth=0.6)
