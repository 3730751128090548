"""Counters of ports: pauses, ECN marks, congestion notifications."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from reports.figures.style import (
    ACCENT,
    BAD,
    HALF_IN,
    THOUSANDS,
    WIDE_IN,
    draw,
    legend,
    mark_series,
)

_MOST = 16


def pauses(frame: pd.DataFrame, corner: str) -> str:
    """Pause frames sent by port. Columns: device, port, pause_frames; the most paused first."""
    return _bars(frame, "pause_frames", "PFC frames sent", "pauses", corner)


def ecn_marks(frame: pd.DataFrame, corner: str) -> str:
    """Packets marked CE by port of a switch. Columns: device, port, ecn_marked."""
    return _bars(frame, "ecn_marked", "packets marked CE", "ecn", corner)


def notifications(frame: pd.DataFrame, corner: str) -> str:
    """CNPs by port of a host. Columns: device, port, cnp_sent, cnp_handled."""
    both = frame.assign(_most=frame[["cnp_sent", "cnp_handled"]].max(axis=1))
    worst = both.nlargest(_MOST, "_most")
    names = list(worst["device"] + " " + worst["port"])

    def paint(figure: Figure, panels: list[Axes]) -> None:
        (axes,) = panels
        for column, label, color, shift, hatch in (
            ("cnp_sent", "sent as a receiver", ACCENT, -0.2, ""),
            ("cnp_handled", "handled as a sender", BAD, 0.2, "////"),
        ):
            places = [place + shift for place in range(len(names))]
            bars = axes.bar(
                places, worst[column], width=0.38, color="none" if hatch else color,
                edgecolor=color, hatch=hatch, label=label,
            )  # fmt: skip
            for name, bar in zip(names, bars.patches, strict=True):
                mark_series(bar, f"{column} {name}")
        axes.set_xticks(range(len(names)), names, fontsize=9, rotation=35, ha="right")
        axes.yaxis.set_major_formatter(THOUSANDS)
        few = "" if len(both) <= len(worst) else f" (the most of {len(both)} ports)"
        axes.set_ylabel(f"notifications{few}")
        legend(figure, 2)

    alt = f"Congestion notifications sent and handled, by port, {len(names)} ports."
    return draw("cnp", (WIDE_IN, 3.6), corner, alt, paint)


def _bars(frame: pd.DataFrame, column: str, label: str, name: str, corner: str) -> str:
    moved = frame[frame[column] > 0]
    worst = moved.nlargest(_MOST, column)[::-1]
    names = list(worst["device"] + " " + worst["port"])

    def paint(_figure: Figure, panels: list[Axes]) -> None:
        (axes,) = panels
        bars = axes.barh(names, worst[column], color=ACCENT, height=0.7)
        for port, bar in zip(names, bars.patches, strict=True):
            mark_series(bar, port)
        axes.tick_params(axis="y", labelsize=9)
        axes.xaxis.set_major_formatter(THOUSANDS)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        few = "" if len(moved) <= len(worst) else f" (the most of {len(moved)} ports)"
        axes.set_xlabel(f"{label}{few}")

    alt = f"{label[0].upper()}{label[1:]}, by port, the {len(names)} ports with most."
    return draw(name, (HALF_IN, max(1.6, 0.22 * len(names) + 1.0)), corner, alt, paint)
