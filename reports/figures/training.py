"""Training: how it learned, how fast, and what ranks did meanwhile."""

from __future__ import annotations

from typing import Any, cast

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from reports.figures.style import (
    ACCENT,
    BAD,
    GRID,
    HALF_IN,
    SOFT,
    WIDE_IN,
    draw,
    legend,
    mark_series,
)

# Row within its rank, name, look.
_KINDS: dict[str, tuple[int, str, dict[str, Any]]] = {
    "step": (0, "a step", {"facecolors": ACCENT, "edgecolors": ACCENT}),
    "wait": (0, "of it, waiting for gradients", {"facecolors": GRID, "edgecolors": SOFT}),
    "network": (1, "exchange", {"facecolors": "none", "edgecolors": BAD, "hatch": "////"}),
}


def training_curve(frame: pd.DataFrame, images: str, corner: str) -> str:
    """Loss and accuracy by epoch. Columns: epoch, loss, accuracy (share of ``images``)."""

    def paint(figure: Figure, panels: list[Axes]) -> None:
        (axes,) = panels
        (loss,) = axes.plot(
            frame["epoch"], frame["loss"], "o-", color=ACCENT, label="training loss (left)"
        )
        loss.set_clip_on(False)  # the highest, often the first, lies at the upper edge
        mark_series(loss, "loss")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("epoch")
        axes.set_ylabel("loss")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        right = axes.twinx()
        right.grid(visible=False)
        (accuracy,) = right.plot(
            frame["epoch"],
            frame["accuracy"] * 100,
            "s--",
            color=BAD,
            label=f"accuracy on {images} images (right)",
        )
        mark_series(accuracy, "accuracy")
        right.set_ylim(0, 102)
        right.set_ylabel("accuracy, %")
        legend(figure, 2)

    alt = f"Training loss and accuracy on {images} images over {len(frame)} epochs."
    return draw("training", (HALF_IN, 3.6), corner, alt, paint)


def training_speed(frame: pd.DataFrame, corner: str) -> str:
    """Images a second over the time of a training. Columns: images_per_s, seconds (an epoch's).

    An epoch is as broad as it took.
    """
    ends = frame["seconds"].cumsum()
    starts = ends - frame["seconds"]

    def paint(_figure: Figure, panels: list[Axes]) -> None:
        (axes,) = panels
        bars = axes.bar(
            starts, frame["images_per_s"], width=frame["seconds"], align="edge",
            color=ACCENT, edgecolor=ACCENT, alpha=0.75, linewidth=0.6,
        )  # fmt: skip
        for epoch, bar in zip(frame["epoch"], bars.patches, strict=True):
            mark_series(bar, f"epoch {epoch}")
        axes.set_xlim(0, float(ends.iloc[-1]) * 1.01)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("seconds of training; a bar is an epoch")
        axes.set_ylabel("images a second, all ranks")

    alt = f"Images a second in each of {len(frame)} epochs, over time."
    return draw("speed", (HALF_IN, 3.6), corner, alt, paint)


def timeline(frame: pd.DataFrame, corner: str) -> str:
    """What ranks did, two rows each. Columns: rank, kind, start_ms, spent_ms.

    Kinds: ``step`` and, within it, ``wait``; ``network``, which has the second row.
    """
    ranks = sorted(set(frame["rank"]))

    def paint(figure: Figure, panels: list[Axes]) -> None:
        (axes,) = panels
        for kind, (row, label, look) in _KINDS.items():
            for place, rank in enumerate(ranks):
                part = frame[(frame["rank"] == rank) & (frame["kind"] == kind)]
                spans = list(zip(part["start_ms"], part["spent_ms"], strict=True))
                bars = axes.broken_barh(
                    cast("Any", spans), (2 * place + row - 0.38, 0.76), linewidth=0.6,
                    label=label if not place else None, **look,
                )  # fmt: skip
                mark_series(bars, f"rank {rank} {kind}")
        rows = [f"rank {rank}{of}" for rank in ranks for of in ("", ", network")]
        axes.set_yticks(range(len(rows)), rows)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel("ms")
        legend(figure, 3)

    alt = f"What {len(ranks)} ranks computed, waited for and sent over time."
    return draw("timeline", (WIDE_IN, max(2.2, 0.36 * 2 * len(ranks) + 1.3)), corner, alt, paint)
