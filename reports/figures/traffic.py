"""Pairs and incasts: bandwidth, latency, senders, growth, queues."""

from __future__ import annotations

import math
from collections.abc import Iterable

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from reports.figures.style import (
    ACCENT,
    BAD,
    HALF_IN,
    LINES,
    MAX_NAMED,
    SERIES,
    SOFT,
    WIDE_IN,
    draw,
    legend,
    look_of,
    mark_series,
    natural,
    short_names,
)

MAX_LABELS = 16
# Made for eyes that tell no red from green, and still a scale in grey.
_COLORS = "cividis"
# A limit that is further off than this would press all measured values together.
_FAR = 4
_LATENCY = {"RDMA": (ACCENT, BAD), "TCP": ("#00795a", "#9c4f8a")}


def bandwidth_matrix(frame: pd.DataFrame, corner: str) -> str:
    """Heat map of goodput by pair. Columns: source, target, goodput_gbps, and verdict if judged.

    Up to MAX_LABELS ports have their numbers in it; of more, every k-th is named. Pairs whose
    verdict is not PASS have a frame.
    """
    table = frame.pivot_table(
        index="source", columns="target", values="goodput_gbps", sort=False, aggfunc="min"
    )
    order = sorted({*frame["source"], *frame["target"]}, key=natural)
    table = table.reindex(index=order, columns=order)
    values = table.to_numpy(dtype=float)
    names = short_names(order)
    step = math.ceil(len(order) / MAX_LABELS)
    places = range(0, len(order), step)
    labels = [names[order[place]] for place in places]

    def paint(figure: Figure, panels: list[Axes]) -> None:
        (axes,) = panels
        axes.grid(visible=False)
        image = axes.imshow(values, cmap=_COLORS, vmin=0, aspect="auto")
        mark_series(image, "goodput_gbps")
        axes.set_xticks(places, labels, rotation=45 if len(order) > 8 else 0, fontsize=9)
        axes.set_yticks(places, labels, fontsize=9)
        every = f" (every {step}. named)" if step > 1 else ""
        axes.set_xlabel(f"to{every}")
        axes.set_ylabel("from")
        figure.colorbar(image, ax=axes, label="goodput, Gb/s", pad=0.01)
        if step == 1:
            _write_numbers(axes, values)
        for row, column in _bad_places(frame, order):
            corner_at = (column - 0.5, row - 0.5)
            axes.add_patch(Rectangle(corner_at, 1, 1, fill=False, edgecolor=BAD, linewidth=2.5))

    alt = f"Heat map of goodput between {len(order)} ports, by sender and receiver."
    height_in = min(6.2, 1.7 + 0.3 * max(4, len(order)))
    return draw("bandwidth", (WIDE_IN, height_in), corner, alt, paint)


def _write_numbers(axes: Axes, values: NDArray[np.float64]) -> None:
    scale = mpl.colormaps[_COLORS]
    most = float(np.nanmax(values)) or 1.0
    for (row, column), value in np.ndenumerate(values):
        if not np.isnan(value):
            red, green, blue, _ = scale(value / most)
            dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
            axes.text(
                column, row, f"{value:.1f}", ha="center", va="center", fontsize=8,
                color="#fefefe" if dark else "#111111",
            )  # fmt: skip


def _bad_places(frame: pd.DataFrame, order: list[str]) -> Iterable[tuple[int, int]]:
    if "verdict" not in frame:
        return []
    bad = frame[frame["verdict"].isin(["FAIL", "NOT_RUN"])]
    return [
        (order.index(source), order.index(target))
        for source, target in zip(bad["source"], bad["target"], strict=True)
    ]


def latency_distribution(
    frame: pd.DataFrame, limit_us: float | None, corner: str, tcp: pd.DataFrame | None = None
) -> str:
    """Cumulative share of pairs by latency. Columns: p50_us, p99_us, one row a pair.

    ``tcp`` has the same of plain TCP, where that was measured.
    """
    kinds = {"RDMA": frame, "TCP": pd.DataFrame() if tcp is None else tcp}
    kinds = {name: rows for name, rows in kinds.items() if not rows.empty}
    most = max(float(rows["p99_us"].max()) for rows in kinds.values())
    far = limit_us is not None and limit_us > _FAR * most

    def paint(figure: Figure, panels: list[Axes]) -> None:
        (axes,) = panels
        for kind, rows in kinds.items():
            _steps(axes, rows, kind, f"{kind} " if len(kinds) > 1 or kind == "TCP" else "")
        if limit_us is not None and not far:
            axes.axvline(
                limit_us, color=BAD, linestyle=":", label=f"limit of the 99th, {limit_us:g} us"
            )
        axes.set_xlim(left=0)
        axes.set_ylim(0, 102)
        beyond = f" (limit {limit_us:g} us, far to the right)" if far else ""
        axes.set_xlabel(f"one-way latency, us{beyond}")
        axes.set_ylabel("pairs up to here, %")
        legend(figure, 2)

    pairs = " and ".join(f"{len(rows)} pairs by {kind}" for kind, rows in kinds.items())
    alt = f"Cumulative distribution of median and 99th percentile latency of {pairs}."
    return draw("latency", (HALF_IN, 3.6), corner, alt, paint)


def _steps(axes: Axes, rows: pd.DataFrame, kind: str, named: str) -> None:
    share = [rank / len(rows) * 100 for rank in range(len(rows) + 1)]
    # The median is broad and pale, so that it is seen where both are the same.
    for column, label, color, width, alpha in (
        ("p50_us", "median", _LATENCY[kind][0], 6.0, 0.45),
        ("p99_us", "99th percentile", _LATENCY[kind][1], 1.5, 1.0),
    ):
        values = rows[column].sort_values()
        (line,) = axes.step(
            [values.iloc[0], *values],
            share,
            where="post",
            label=f"{named}{label}",
            color=color,
            linewidth=width,
            linestyle="-" if kind == "RDMA" else "--",
            alpha=alpha,
        )
        mark_series(line, f"{kind} {column}")


def sender_stability(frame: pd.DataFrame, corner: str) -> str:
    """Bandwidth of every sender over time. Columns: time_us, sender, goodput_gbps, receiver.

    Of more than MAX_NAMED senders, the slowest and the fastest are named.
    """
    means = frame.groupby("sender")["goodput_gbps"].mean()
    names = short_names(sorted(means.index, key=natural))
    receiver = ", ".join(short_names(frame["receiver"]).values())
    title = f"{len(names)} senders to {receiver}"
    many = len(names) > MAX_NAMED
    roles = {str(means.idxmin()): "slowest", str(means.idxmax()): "fastest"}

    def paint(figure: Figure, panels: list[Axes]) -> None:
        (axes,) = panels
        for index, (sender, name) in enumerate(names.items()):
            part = frame[frame["sender"] == sender]
            look = look_of(index, name, roles.get(sender, ""), many=many)
            (line,) = axes.plot(part["time_us"] / 1000, part["goodput_gbps"], **look)
            mark_series(line, sender)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("time, ms")
        axes.set_ylabel("goodput of a sender, Gb/s")
        axes.set_title(title)
        legend(figure, 6)

    alt = f"Goodput over time of {title}."
    return draw("senders", (WIDE_IN, 3.6), corner, alt, paint)


def incast_growth(frame: pd.DataFrame, limit_fraction: float, corner: str) -> str:
    """Share of the receiver's wire by number of senders.

    Columns: senders, receiver, fraction, jain; the worst receiver is shown and named.
    """
    worst = frame.loc[frame.groupby("senders")["fraction"].idxmin()].sort_values("senders")
    jain = frame.groupby("senders")["jain"].min()
    names = short_names(sorted(set(frame["receiver"]), key=natural))

    places = range(len(worst))

    def paint(figure: Figure, panels: list[Axes]) -> None:
        (axes,) = panels
        (fair,) = axes.plot(
            places, jain * 100, "s--", color=SOFT, markersize=10, fillstyle="none",
            label="fairness (Jain index)",
        )  # fmt: skip
        (wire,) = axes.plot(
            places, worst["fraction"] * 100, "o-", color=ACCENT, markersize=5,
            label="of the receiver's wire",
        )  # fmt: skip
        mark_series(fair, "jain")
        mark_series(wire, "fraction")
        axes.axhline(
            limit_fraction * 100, color=BAD, linestyle=":",
            label=f"at least {limit_fraction * 100:g} % of the wire",
        )  # fmt: skip
        axes.set_ylim(0, 108)
        axes.margins(x=0.1)
        few = len(worst) <= MAX_NAMED // 2
        ticks = [
            f"{count}\n{names[receiver]}" if few else str(count)
            for count, receiver in zip(worst["senders"], worst["receiver"], strict=True)
        ]
        axes.set_xticks(places, ticks, fontsize=9)
        axes.set_xlabel("senders to one receiver" + (", and the worst receiver" if few else ""))
        axes.set_ylabel(f"%, worst of {len(names)} receivers" if len(names) > 1 else "%")
        legend(figure, 2)

    alt = "Share of the worst receiver's wire that arrives, and fairness, by number of senders."
    return draw("incast", (HALF_IN, 3.6), corner, alt, paint)


def queue_depth(frame: pd.DataFrame, corner: str) -> str:
    """Deepest egress queues over time. Columns: time_us, port, queue_bytes.

    Queues below a hundredth of the deepest are left out: they lie on the axis.
    """
    deepest = frame.groupby("port", sort=False)["queue_bytes"].max().nlargest(6)
    deepest = deepest[deepest >= deepest.max() / 100]

    def paint(figure: Figure, panels: list[Axes]) -> None:
        (axes,) = panels
        for index, port in enumerate(deepest.index):
            part = frame[frame["port"] == port]
            (line,) = axes.plot(
                part["time_us"] / 1000,
                part["queue_bytes"] / 1000,
                linewidth=1.2,
                color=SERIES[index],
                linestyle=LINES[index % len(LINES)],
                label=f"{port}, at most {deepest[port] / 1000:,.0f} KB",
            )
            mark_series(line, port)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("time, ms")
        axes.set_ylabel("egress queue, KB")
        legend(figure, 3)

    alt = f"Depth over time of the deepest {len(deepest)} egress queues."
    return draw("queues", (WIDE_IN, 3.6), corner, alt, paint)
