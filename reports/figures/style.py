"""How every picture of a page looks: inline SVG that says what it rests on.

Figures carry their evidence in the corner, so that a copied picture still says what it is.
Colours are CSS variables of the page with the light page's value to fall back to, so that a
picture follows the page into a dark scheme and still stands alone. No line is told from
another by colour alone. What is drawn of a frame is a group of its own with the frame's name
for it in ``data-series``, so that a picture can be read back.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable
from html import escape
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

INK = "#1f2933"
ACCENT = "#0b6e99"
BAD = "#c2410c"
SOFT = "#52606d"
EDGE = "#9aa5b1"
GRID = "#e4e7eb"
# Colours of Okabe and Ito, darkened until they can be read on white.
SERIES: Final = (ACCENT, BAD, "#00795a", "#9c4f8a", "#a16207", SOFT)
LINES: Final = ("-", "--", ":")
MARKS: Final = ("o", "s", "^", "D", "v", "P")
_VARIABLES: Final = {
    INK: "ink",
    ACCENT: "accent",
    BAD: "bad",
    SOFT: "soft",
    EDGE: "edge",
    GRID: "line",
    "#00795a": "series-3",
    "#9c4f8a": "series-4",
    "#a16207": "series-5",
}
_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.edgecolor": EDGE,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    # Names of devices are no formulas.
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 9,
}
# More series than this are not named one by one.
MAX_NAMED = 12
# At these widths a figure fills its place on a desktop page unscaled.
WIDE_IN = 9.7
HALF_IN = 4.8
_SERIES = "series:"
THOUSANDS: Final = FuncFormatter(lambda value, _: f"{value:,.0f}")


def draw(
    name: str,
    size_in: tuple[float, float],
    corner: str,
    alt: str,
    paint: Callable[[Figure, list[Axes]], None],
    panels: tuple[int, int] = (1, 1),
    *,
    sharey: bool = False,
) -> str:
    """One SVG of ``panels`` rows and columns. ``alt`` says to a screen reader what it shows."""
    with mpl.rc_context({**_STYLE, "svg.hashsalt": f"paisoar-{name}"}):
        figure = Figure(figsize=size_in, layout="constrained")
        axes: NDArray[Any] = figure.subplots(*panels, sharey=sharey, squeeze=False)
        paint(figure, list(np.ravel(axes)))
        # A last line of its own below the axes: the corner never lies over them.
        figure.supxlabel(corner, x=0.995, ha="right", fontsize=8, color=SOFT)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    text = stream.getvalue()
    return _for_page(text[text.index("<svg") :], alt)


def mark_series(artist: Artist, name: object) -> None:
    """Let the drawn series be found again by this name."""
    artist.set_gid(f"{_SERIES}{name}")


def _for_page(svg: str, alt: str) -> str:
    """Say to a screen reader what it shows; take the page's colours; no id that two could have."""
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(alt)}" ', 1)
    svg = re.sub(rf"<g id=([\"']){_SERIES}(.*?)\1>", r"<g data-series=\1\2\1>", svg)
    svg = re.sub(r'<g id="(axes|xtick|ytick)_\d+">', r'<g class="\1">', svg)
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


def natural(name: str) -> list[tuple[str, int]]:
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


def legend(figure: Figure, columns: int) -> None:
    """Above the axes: a legend never lies over what was measured."""
    figure.legend(loc="outside upper left", ncols=columns)


def look_of(index: int, name: str, role: str = "", *, many: bool = False) -> dict[str, Any]:
    """How the ``index``-th of several lines looks; of ``many`` only those with a role stand out.

    ``role`` is ``slowest`` or ``fastest``, or empty.
    """
    if not many:
        return {
            "linewidth": 1.2,
            "color": SERIES[index % len(SERIES)],
            "linestyle": LINES[index // len(SERIES) % len(LINES)],
            "label": name,
        }
    if not role:
        return {"linewidth": 0.9, "color": SOFT, "alpha": 0.3}
    slow = role == "slowest"
    return {
        "linewidth": 1.6,
        "color": BAD if slow else ACCENT,
        "linestyle": "--" if slow else "-",
        "label": f"{name}, the {role} on average",
        "zorder": 3,
    }
