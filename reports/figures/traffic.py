"""Frames in, figures out: every picture of a report, as inline SVG.

Each function names the columns that it takes. Figures carry what they rest on
in the corner, so that a copied picture still says what it is. Colours are CSS
variables of the page with the light page's value to fall back to, so that a
picture follows the page into a dark scheme and still stands alone. No line is
told from another by colour alone.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable
from html import escape
from typing import Any, Final

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

INK = "#1f2933"
ACCENT = "#0b6e99"
BAD = "#c2410c"
SOFT = "#52606d"
_EDGE = "#9aa5b1"
_GRID = "#e4e7eb"
SERIES: Final = (ACCENT, BAD, "#00795a", "#9c4f8a", "#a16207", SOFT)
_LINES: Final = ("-", "--", ":")
_VARIABLES: Final = {
    INK: "ink",
    ACCENT: "accent",
    BAD: "bad",
    SOFT: "soft",
    _EDGE: "edge",
    _GRID: "line",
    "#00795a": "series-3",
    "#9c4f8a": "series-4",
    "#a16207": "series-5",
}
_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.edgecolor": _EDGE,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": _GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 9,
}
MAX_NAMED = 12
MAX_LABELS = 16
# At these widths a figure fills its place on a desktop page unscaled.
_WIDE_IN = 9.7
_HALF_IN = 4.8
# A limit that is further off than this would press all measured values together.
_FAR = 4


def _draw(
    name: str,
    size_in: tuple[float, float],
    corner: str,
    alt: str,
    paint: Callable[[Figure, Axes], None],
) -> str:
    with mpl.rc_context({**_STYLE, "svg.hashsalt": f"paisoar-{name}"}):
        figure = Figure(figsize=size_in, layout="constrained")
        axes = figure.subplots()
        paint(figure, axes)
        # A last line of its own below the axes: the corner never lies over them.
        figure.supxlabel(corner, x=0.995, ha="right", fontsize=8, color=SOFT)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    text = stream.getvalue()
    return _for_page(text[text.index("<svg") :], alt)


def _for_page(svg: str, alt: str) -> str:
    """Say to a screen reader what it shows; take the page's colours; no id that two could have."""
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(alt)}" ', 1)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    return re.sub(
        r"(fill|stroke): (#[0-9a-f]{6})",
        lambda found: (
            f"{found[1]}: var(--{_VARIABLES[found[2]]}, {found[2]})"
            if found[2] in _VARIABLES
            else found[0]
        ),
        svg,
    )


def _natural(name: str) -> list[tuple[str, int]]:
    """Sort key that puts host2 before host10."""
    parts = re.split(r"(\d+)", name)
    return [
        (text, int(number or 0))
        for text, number in zip(parts[::2], [*parts[1::2], ""], strict=True)
    ]


def short_names(ports: Iterable[str]) -> dict[str, str]:
    """``host1:ens1f0`` as ``host1`` where every host has one port here, else as it is."""
    names = list(dict.fromkeys(ports))
    short = [name.split(":")[0] for name in names]
    unique = len(set(short)) == len(names)
    return dict(zip(names, short if unique else names, strict=True))


def _legend(figure: Figure, columns: int) -> None:
    """Above the axes: a legend never lies over what was measured."""
    figure.legend(loc="outside upper left", ncols=columns)


def bandwidth_matrix(frame: pd.DataFrame, corner: str) -> str:
    """Heat map of goodput by pair. Columns: source, target, goodput_gbps.

    Of more than MAX_LABELS ports, every k-th is named.
    """
    table = frame.pivot_table(
        index="source", columns="target", values="goodput_gbps", sort=False, aggfunc="min"
    )
    order = sorted({*frame["source"], *frame["target"]}, key=_natural)
    table = table.reindex(index=order, columns=order)
    names = short_names(order)
    step = math.ceil(len(order) / MAX_LABELS)
    places = range(0, len(order), step)
    labels = [names[order[place]] for place in places]

    def paint(figure: Figure, axes: Axes) -> None:
        axes.grid(visible=False)
        image = axes.imshow(table.to_numpy(), cmap="viridis", vmin=0)
        axes.set_xticks(places, labels, rotation=90, fontsize=9)
        axes.set_yticks(places, labels, fontsize=9)
        every = f" (every {step}. named)" if step > 1 else ""
        axes.set_xlabel(f"to{every}")
        axes.set_ylabel("from")
        figure.colorbar(image, ax=axes, label="goodput, Gb/s", shrink=0.8)

    alt = f"Heat map of goodput between {len(order)} ports, by sender and receiver."
    return _draw("bandwidth", (_HALF_IN, 4.4), corner, alt, paint)


def latency_distribution(frame: pd.DataFrame, limit_us: float | None, corner: str) -> str:
    """Cumulative share of pairs by latency. Columns: p50_us, p99_us, one row a pair."""
    far = limit_us is not None and limit_us > _FAR * float(frame["p99_us"].max())

    def paint(figure: Figure, axes: Axes) -> None:
        share = [rank / len(frame) * 100 for rank in range(len(frame) + 1)]
        # The median is broad and pale, so that it is seen where both are the same.
        for column, label, color, width, alpha in (
            ("p50_us", "median", ACCENT, 6.0, 0.45),
            ("p99_us", "99th percentile", BAD, 1.5, 1.0),
        ):
            values = frame[column].sort_values()
            axes.step(
                [values.iloc[0], *values],
                share,
                where="post",
                label=label,
                color=color,
                linewidth=width,
                alpha=alpha,
            )
        if limit_us is not None and not far:
            axes.axvline(
                limit_us, color=BAD, linestyle=":", label=f"limit of the 99th, {limit_us:g} us"
            )
        axes.set_xlim(left=0)
        axes.set_ylim(0, 102)
        beyond = f" (limit {limit_us:g} us, far to the right)" if far else ""
        axes.set_xlabel(f"one-way latency, us{beyond}")
        axes.set_ylabel("pairs up to here, %")
        _legend(figure, 2)

    alt = f"Cumulative distribution of median and 99th percentile latency of {len(frame)} pairs."
    return _draw("latency", (_HALF_IN, 3.6), corner, alt, paint)


def sender_stability(frame: pd.DataFrame, corner: str) -> str:
    """Bandwidth of every sender over time. Columns: time_us, sender, goodput_gbps, receiver.

    Of more than MAX_NAMED senders, the slowest and the fastest are named.
    """
    means = frame.groupby("sender")["goodput_gbps"].mean()
    names = short_names(sorted(means.index, key=_natural))
    receiver = ", ".join(short_names(frame["receiver"]).values())
    title = f"{len(names)} senders to {receiver}"
    few = len(names) <= MAX_NAMED
    marked = {str(means.idxmin()): "slowest", str(means.idxmax()): "fastest"}

    def paint(figure: Figure, axes: Axes) -> None:
        for index, (sender, name) in enumerate(names.items()):
            part = frame[frame["sender"] == sender]
            look: dict[str, Any] = {"linewidth": 0.9, "color": SOFT, "alpha": 0.3}
            if few:
                look = {
                    "linewidth": 1.2,
                    "color": SERIES[index % len(SERIES)],
                    "linestyle": _LINES[index // len(SERIES)],
                    "label": name,
                }
            elif sender in marked:
                slowest = marked[sender] == "slowest"
                look = {
                    "linewidth": 1.6,
                    "color": BAD if slowest else ACCENT,
                    "linestyle": "--" if slowest else "-",
                    "label": f"{name}, the {marked[sender]} on average",
                    "zorder": 3,
                }
            axes.plot(part["time_us"] / 1000, part["goodput_gbps"], **look)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("time, ms")
        axes.set_ylabel("goodput of a sender, Gb/s")
        axes.set_title(title, fontsize=10, loc="left")
        _legend(figure, 7)

    alt = f"Goodput over time of {title}."
    return _draw("senders", (_WIDE_IN, 3.6), corner, alt, paint)


def incast_growth(frame: pd.DataFrame, limit_fraction: float, corner: str) -> str:
    """Share of the receiver's wire by number of senders.

    Columns: senders, receiver, fraction, jain; the worst receiver is shown and named.
    """
    worst = frame.loc[frame.groupby("senders")["fraction"].idxmin()].sort_values("senders")
    jain = frame.groupby("senders")["jain"].min()
    names = short_names(sorted(set(frame["receiver"]), key=_natural))

    def paint(figure: Figure, axes: Axes) -> None:
        axes.plot(
            jain.index, jain * 100, "s--", color=SOFT, markersize=10, fillstyle="none",
            label="fairness (Jain index)",
        )  # fmt: skip
        axes.plot(
            worst["senders"], worst["fraction"] * 100, "o-", color=ACCENT, markersize=5,
            label="of the receiver's wire",
        )  # fmt: skip
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
        axes.set_xticks(worst["senders"], ticks)
        axes.set_xlabel("senders to one receiver" + (", and the worst receiver" if few else ""))
        axes.set_ylabel(f"%, worst of {len(names)} receivers" if len(names) > 1 else "%")
        _legend(figure, 2)

    alt = "Share of the worst receiver's wire that arrives, and fairness, by number of senders."
    return _draw("incast", (_HALF_IN, 3.6), corner, alt, paint)


def queue_depth(frame: pd.DataFrame, corner: str) -> str:
    """Deepest egress queues over time. Columns: time_us, port, queue_bytes.

    Queues below a hundredth of the deepest are left out: they lie on the axis.
    """
    deepest = frame.groupby("port", sort=False)["queue_bytes"].max().nlargest(6)
    deepest = deepest[deepest >= deepest.max() / 100]

    def paint(figure: Figure, axes: Axes) -> None:
        for index, port in enumerate(deepest.index):
            part = frame[frame["port"] == port]
            axes.plot(
                part["time_us"] / 1000,
                part["queue_bytes"] / 1000,
                linewidth=1.2,
                color=SERIES[index],
                linestyle=_LINES[index % len(_LINES)],
                label=f"{port}, at most {deepest[port] / 1000:,.0f} KB",
            )
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("time, ms")
        axes.set_ylabel("egress queue, KB")
        _legend(figure, 3)

    alt = f"Depth over time of the deepest {len(deepest)} egress queues."
    return _draw("queues", (_WIDE_IN, 3.6), corner, alt, paint)


def pauses(frame: pd.DataFrame, corner: str) -> str:
    """Pause frames sent by port. Columns: device, port, pause_frames; the worst twenty."""
    paused = frame[frame["pause_frames"] > 0]
    worst = paused.nlargest(20, "pause_frames")[::-1]

    def paint(_figure: Figure, axes: Axes) -> None:
        names = worst["device"] + " " + worst["port"]
        axes.barh(names, worst["pause_frames"], color=ACCENT, height=0.7)
        axes.tick_params(axis="y", labelsize=9)
        few = "" if len(paused) <= len(worst) else f" (the most of {len(paused)} ports)"
        axes.set_xlabel(f"PFC frames sent{few}")

    height_in = max(1.6, 0.22 * len(worst) + 1.0)
    alt = f"PFC frames sent, by port, the {len(worst)} ports that sent most."
    return _draw("pauses", (_HALF_IN, height_in), corner, alt, paint)


def training_curve(frame: pd.DataFrame, images: str, corner: str) -> str:
    """Loss and accuracy by epoch. Columns: epoch, loss, accuracy (share of ``images``)."""

    def paint(figure: Figure, axes: Axes) -> None:
        axes.plot(frame["epoch"], frame["loss"], "o-", color=ACCENT, label="training loss (left)")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("epoch")
        axes.set_ylabel("loss")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        right = axes.twinx()
        right.grid(visible=False)
        right.plot(
            frame["epoch"],
            frame["accuracy"] * 100,
            "s--",
            color=BAD,
            label=f"accuracy on {images} images (right)",
        )
        right.set_ylim(0, 102)
        right.set_ylabel("accuracy, %")
        _legend(figure, 2)

    alt = f"Training loss and accuracy on {images} images over {len(frame)} epochs."
    return _draw("training", (_HALF_IN, 3.6), corner, alt, paint)
