"""What the suites beside the usual ones found: mixed, burst, collective, soak."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from reports.figures.style import (
    ACCENT,
    BAD,
    HALF_IN,
    MARKS,
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

_DASHES = ("-", "--")
_SOAKED = {"ring": "rings: everyone to its neighbour", "exchange": "exchanges, by turns"}


def mixed_shares(frame: pd.DataFrame, corner: str) -> str:
    """What each class got of its guarantee. Columns: pressed, receiver, role, share, limit."""
    receivers = sorted(set(frame["receiver"]), key=natural)
    names = short_names(receivers)
    limit = float(frame["limit"].dropna().max())

    def paint(figure: Figure, panels: list[Axes]) -> None:
        (axes,) = panels
        for index, ((pressed, role), rows) in enumerate(frame.groupby(["pressed", "role"])):
            by_receiver = rows.set_index("receiver")["share"].reindex(receivers) * 100
            places = [place + (index - 1.5) * 0.16 for place in range(len(receivers))]
            (dots,) = axes.plot(
                by_receiver.to_numpy(),
                places,
                MARKS[index % len(MARKS)],
                color=SERIES[index % len(SERIES)],
                markersize=7,
                label=f"{role}, {'pressed' if role == pressed else 'pressing'}",
            )
            mark_series(dots, f"{pressed} pressed, {role}")
        axes.axvline(limit * 100, color=BAD, linestyle=":", label=f"at least {limit * 100:g} %")
        axes.set_yticks(range(len(receivers)), [names[port] for port in receivers])
        axes.set_ylim(len(receivers) - 0.5, -0.5)
        axes.set_xlim(0, max(105.0, 106 * float(frame["share"].max())))
        axes.set_xlabel("% of what its class is guaranteed")
        legend(figure, 2)

    alt = f"Share of their guarantee that TCP and RDMA got at {len(receivers)} receivers."
    return draw("mixed", (HALF_IN, max(3.0, 0.45 * len(receivers) + 1.9)), corner, alt, paint)


def burst_fractions(frame: pd.DataFrame, corner: str) -> str:
    """Worst receiver by size and senders. Columns: size, senders, receiver, fraction, limit."""
    limit = float(frame["limit"].dropna().max())
    worst = frame.groupby(["size", "senders"], sort=False)["fraction"].min().reset_index()
    counts = sorted(set(worst["senders"]))

    def paint(figure: Figure, panels: list[Axes]) -> None:
        (axes,) = panels
        for index, (size, rows) in enumerate(worst.groupby("size", sort=False)):
            ordered = rows.sort_values("senders")
            (line,) = axes.plot(
                [counts.index(count) for count in ordered["senders"]],
                ordered["fraction"] * 100, marker=MARKS[index],
                linestyle=_DASHES[index % 2], color=SERIES[index], label=f"{size} bursts",
            )  # fmt: skip
            mark_series(line, size)
        axes.axhline(limit * 100, color=BAD, linestyle=":", label=f"at least {limit * 100:g} %")
        axes.set_xticks(range(len(counts)), [str(count) for count in counts])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("senders to one receiver, worst receiver")
        axes.set_ylabel("% of the bursts")
        legend(figure, 2)

    alt = "Share of bursts that came through, by size of burst and number of senders."
    return draw("burst", (HALF_IN, 3.4), corner, alt, paint)


def collective_busbw(frame: pd.DataFrame, corner: str) -> str:
    """Bus bandwidth by step. Columns: step, busbw, limit (both fractions of the wire)."""
    limit = float(frame["limit"].dropna().max())

    def paint(figure: Figure, panels: list[Axes]) -> None:
        (axes,) = panels
        bars = axes.barh(frame["step"], frame["busbw"] * 100, color=ACCENT, height=0.6)
        for step, bar in zip(frame["step"], bars.patches, strict=True):
            mark_series(bar, step)
        axes.axvline(
            limit * 100,
            color=BAD,
            linestyle=":",
            linewidth=2.5,
            label=f"at least {limit * 100:g} %",
        )
        axes.invert_yaxis()
        axes.set_xlim(0, 108)
        axes.set_xlabel("bus bandwidth, % of what the wires carry")
        legend(figure, 1)

    alt = f"Bus bandwidth of {len(frame)} collective steps, of what the wires carry."
    return draw("collective", (WIDE_IN, max(2.2, 0.24 * len(frame) + 1.3)), corner, alt, paint)


def soak_stability(frame: pd.DataFrame, corner: str) -> str:
    """Bandwidth of every host by cycle. Columns: cycle, pattern, host, goodput_gbps.

    Rings and exchanges have a panel each: ECMP slows other pairs in every exchange.
    """
    kinds = frame["pattern"].where(frame["pattern"] == "ring", "exchange")
    present = [kind for kind in _SOAKED if (kinds == kind).any()]
    hosts = sorted(set(frame["host"]), key=natural)
    names = short_names(hosts)
    many = len(hosts) > MAX_NAMED
    means = frame.groupby("host")["goodput_gbps"].mean()
    # Where all are alike nobody is named.
    apart = float(means.max() - means.min()) > 0.001 * float(means.max())
    roles = {str(means.idxmin()): "slowest", str(means.idxmax()): "fastest"} if apart else {}

    def paint(figure: Figure, panels: list[Axes]) -> None:
        for axes, kind in zip(panels, present, strict=True):
            rows = frame[kinds == kind]
            for index, host in enumerate(hosts):
                part = rows[rows["host"] == host]
                look = look_of(index, names[host], roles.get(host, ""), many=many)
                (line,) = axes.plot(
                    part["cycle"], part["goodput_gbps"], marker=".", markersize=3, **look
                )
                mark_series(line, f"{kind} {host}")
            axes.set_title(_SOAKED[kind], color=SOFT)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_ylim(bottom=0)
            axes.set_xlabel("cycle")
        panels[0].set_ylabel("sent by a host, Gb/s")
        handles, labels = panels[0].get_legend_handles_labels()
        if handles:
            figure.legend(handles, labels, loc="outside upper left", ncols=6)

    alt = f"Bandwidth of {len(hosts)} hosts over {frame['cycle'].nunique()} cycles of a soak."
    return draw("soak", (WIDE_IN, 3.6), corner, alt, paint, (1, len(present)), sharey=True)
