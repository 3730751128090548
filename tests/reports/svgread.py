"""Reads a figure back: what was drawn, in the units of its axes."""

import math
import re
from dataclasses import dataclass
from xml.etree import ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"
_POINT = re.compile(r"[ML] ([-\d.]+) ([-\d.]+)")


@dataclass
class Scale:
    """One axis, from its ticks: positions in the picture and the numbers that stand there."""

    ticks: list[tuple[float, float]]
    log: bool = False

    def value(self, place):
        if len(self.ticks) < 2:
            return place
        (a, low), (b, high) = self.ticks[0], self.ticks[-1]
        part = (place - a) / (b - a)
        if self.log:
            return math.exp(math.log(low) + part * (math.log(high) - math.log(low)))
        return low + part * (high - low)


def words(svg):
    """All words that are drawn, in order."""
    return ["".join(node.itertext()).strip() for node in ET.fromstring(svg).iter(f"{SVG}text")]


def names(svg):
    """The series that are drawn."""
    found = (node.get("data-series") for node in ET.fromstring(svg).iter(f"{SVG}g"))
    return {name for name in found if name}


def points(svg, name, *, panel=0, up_of=None, log=()):
    """The points of a line or of markers, as the axes' numbers. ``log`` names axes: x, y.

    ``up_of`` is the panel whose y axis counts, where one is shared. An axis without numbers
    gives positions.
    """
    axes, series = _find(svg, name, panel)
    shared, _ = _find(svg, name, panel if up_of is None else up_of)
    across, up = _scale(axes, "xtick", "x", "x" in log), _scale(shared, "ytick", "y", "y" in log)
    return [(across.value(x), up.value(y)) for x, y in _places(series)]


def bar(svg, name, *, panel=0, along="x"):
    """How long a bar is, in numbers of its axis."""
    axes, series = _find(svg, name, panel)
    scale = _scale(axes, f"{along}tick", along)
    at = [place[0 if along == "x" else 1] for place in _places(series)]
    return abs(scale.value(max(at)) - scale.value(min(at)))


def clipped(svg, name):
    """Whether what lies outside of the axes is cut away."""
    _, series = _find(svg, name, 0)
    return any(node.get("clip-path") for node in series.iter())


def _find(svg, name, panel):
    root = ET.fromstring(svg)
    axes = [node for node in root.iter(f"{SVG}g") if node.get("class") == "axes"]
    for node in root.iter(f"{SVG}g"):
        if node.get("data-series") == name:
            return axes[panel], node
    raise KeyError(name)


def _scale(axes, kind, along, log=False):
    ticks = []
    for tick in axes.iter(f"{SVG}g"):
        if tick.get("class") != kind:
            continue
        mark = next(tick.iter(f"{SVG}use"))
        said = "".join(text for node in tick.iter(f"{SVG}text") for text in node.itertext())
        try:
            ticks.append(
                (
                    float(mark.get(along)),
                    float(said.replace(",", "").replace("\N{MINUS SIGN}", "-")),
                )
            )
        except ValueError:
            continue
    return Scale(sorted(ticks), log)


def _places(series):
    """Of the longest path, or of markers where there is no line."""
    paths = [
        [(float(x), float(y)) for x, y in _POINT.findall(path.get("d"))]
        for path in series.iter(f"{SVG}path")
        if path.get("id") is None
    ]
    marks = [(float(m.get("x")), float(m.get("y"))) for m in series.iter(f"{SVG}use")]
    line = max(paths, key=len, default=[])
    return marks if len(line) < 2 else line
