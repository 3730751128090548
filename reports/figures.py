"""Frames in, figures out: every picture of a report, as inline SVG.

Each function names the columns that it takes. Figures carry their evidence
class in the corner, so that a copied picture still says what it is.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any, Final

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK = "#1f2933"
ACCENT = "#0b6e99"
BAD = "#c2410c"
_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "paisoar",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": "#9aa5b1",
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e7eb",
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.axisbelow": True,
}
MAX_NAMED = 12


def _draw(
    width_in: float, height_in: float, evidence: str, paint: Callable[[Figure, Axes], None]
) -> str:
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width_in, height_in), layout="constrained")
        axes = figure.subplots()
        paint(figure, axes)
        figure.text(0.995, 0.005, evidence, ha="right", va="bottom", fontsize=7, color="#7b8794")
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]


def bandwidth_matrix(frame: pd.DataFrame, evidence: str) -> str:
    """Heat map of goodput by pair. Columns: source, target, goodput_gbps."""
    table = frame.pivot_table(
        index="source", columns="target", values="goodput_gbps", sort=False, aggfunc="min"
    )
    order = sorted({*frame["source"], *frame["target"]}, key=_natural)
    table = table.reindex(index=order, columns=order)
    size_in = min(8.0, max(3.6, 0.32 * len(order) + 1.6))

    def paint(figure: Figure, axes: Axes) -> None:
        axes.grid(visible=False)
        image = axes.imshow(table.to_numpy(), cmap="viridis", vmin=0)
        labels = [name.split(":")[0] for name in order]
        if len(order) <= 40:
            axes.set_xticks(range(len(order)), labels, rotation=90, fontsize=7)
            axes.set_yticks(range(len(order)), labels, fontsize=7)
        axes.set_xlabel("to")
        axes.set_ylabel("from")
        figure.colorbar(image, ax=axes, label="goodput, Gb/s", shrink=0.8)

    return _draw(size_in + 1, size_in, evidence, paint)


def _natural(name: str) -> list[tuple[str, int]]:
    """Sort key that puts host2 before host10."""
    parts = re.split(r"(\d+)", name)
    return [
        (text, int(number or 0))
        for text, number in zip(parts[::2], [*parts[1::2], ""], strict=True)
    ]


def latency_distribution(frame: pd.DataFrame, limit_us: float | None, evidence: str) -> str:
    """Cumulative share of pairs by latency. Columns: p50_us, p99_us, one row a pair."""

    def paint(_figure: Figure, axes: Axes) -> None:
        share = [(rank + 1) / len(frame) * 100 for rank in range(len(frame))]
        for column, label, color in (("p50_us", "median", ACCENT), ("p99_us", "99 %", BAD)):
            axes.step(frame[column].sort_values(), share, where="post", label=label, color=color)
        if limit_us is not None:
            axes.axvline(limit_us, color=BAD, linestyle=":", linewidth=1)
            axes.annotate(
                f" limit {limit_us:g} us",
                (limit_us, 50),
                color=BAD,
                fontsize=8,
                ha="right",
                rotation=90,
                va="center",
            )
        axes.set_xlim(left=0)
        axes.set_ylim(0, 102)
        axes.set_xlabel("one-way latency, us")
        axes.set_ylabel("pairs up to here, %")
        axes.legend(frameon=False, loc="upper left")

    return _draw(5.2, 3.0, evidence, paint)


def sender_stability(frame: pd.DataFrame, evidence: str) -> str:
    """Bandwidth of every sender over time. Columns: time_us, sender, goodput_gbps."""
    senders = list(dict.fromkeys(frame["sender"]))
    colors = mpl.colormaps["viridis"]

    def paint(_figure: Figure, axes: Axes) -> None:
        for index, (sender, part) in enumerate(frame.groupby("sender", sort=False)):
            color = colors(index / max(1, len(senders) - 1))
            label = str(sender).split(":")[0] if len(senders) <= MAX_NAMED else None
            axes.plot(
                part["time_us"] / 1000,
                part["goodput_gbps"],
                linewidth=0.9,
                color=color,
                label=label,
            )
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("time, ms")
        axes.set_ylabel("goodput of one sender, Gb/s")
        if len(senders) <= MAX_NAMED:
            axes.legend(frameon=False, fontsize=7, ncols=3)
        else:
            axes.set_title(f"{len(senders)} senders", fontsize=8, loc="right")

    return _draw(7.6, 3.0, evidence, paint)


def incast_growth(frame: pd.DataFrame, limit_fraction: float, evidence: str) -> str:
    """Share of the receiver's wire by number of senders. Columns: senders, fraction, jain."""

    def paint(_figure: Figure, axes: Axes) -> None:
        best = frame.groupby("senders", as_index=False)[["fraction", "jain"]].min()
        axes.plot(best["senders"], best["fraction"] * 100, "o-", color=ACCENT, label="of the wire")
        axes.plot(best["senders"], best["jain"] * 100, "s--", color="#7b8794", label="Jain index")
        axes.axhline(limit_fraction * 100, color=BAD, linestyle=":", linewidth=1)
        axes.set_ylim(0, 105)
        axes.set_xticks(best["senders"])
        axes.set_xlabel("senders to one receiver")
        axes.set_ylabel("%, the worst of all receivers")
        axes.legend(frameon=False, loc="lower left")

    return _draw(5.2, 3.0, evidence, paint)


def queue_depth(frame: pd.DataFrame, evidence: str) -> str:
    """Deepest egress queues over time. Columns: time_us, port, queue_bytes."""
    deepest = frame.groupby("port", sort=False)["queue_bytes"].max().nlargest(6).index

    def paint(_figure: Figure, axes: Axes) -> None:
        for port, part in frame[frame["port"].isin(deepest)].groupby("port", sort=False):
            axes.plot(
                part["time_us"] / 1000, part["queue_bytes"] / 1000, linewidth=0.9, label=str(port)
            )
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("time, ms")
        axes.set_ylabel("egress queue, KB")
        axes.legend(frameon=False, fontsize=7)

    return _draw(7.6, 3.0, evidence, paint)


def pauses(frame: pd.DataFrame, evidence: str) -> str:
    """Pause frames sent by port. Columns: device, port, pause_frames; the worst twenty."""
    worst = frame[frame["pause_frames"] > 0].nlargest(20, "pause_frames")[::-1]

    def paint(_figure: Figure, axes: Axes) -> None:
        names = worst["device"] + " " + worst["port"]
        axes.barh(names, worst["pause_frames"], color=ACCENT, height=0.7)
        axes.tick_params(axis="y", labelsize=7)
        axes.set_xlabel("PFC frames sent")

    return _draw(5.2, max(1.4, 0.22 * len(worst) + 0.8), evidence, paint)


def training_curve(frame: pd.DataFrame, evidence: str) -> str:
    """Loss and accuracy by epoch. Columns: epoch, loss, accuracy (share of the test set)."""

    def paint(_figure: Figure, axes: Axes) -> None:
        axes.plot(frame["epoch"], frame["loss"], "o-", color=ACCENT, label="training loss")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("epoch")
        axes.set_ylabel("loss")
        right = axes.twinx()
        right.grid(visible=False)
        right.plot(frame["epoch"], frame["accuracy"] * 100, "s-", color=BAD, label="test accuracy")
        right.set_ylim(0, 102)
        right.set_ylabel("accuracy, %")
        lines = [*axes.get_lines(), *right.get_lines()]
        axes.legend(
            lines, [str(line.get_label()) for line in lines], frameon=False, loc="center right"
        )

    return _draw(5.2, 3.0, evidence, paint)
