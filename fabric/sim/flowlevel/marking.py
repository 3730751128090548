"""Steady rates where DCQCN holds the senders back.

Each congested queue marks with a probability of its own; a queue pair answers to the
sum over its path with the rate that its curve says (``response``). The probabilities
are such that every queue that marks is exactly full, and no other is more than full:
network utility maximisation with the marks as prices (Kelly, Maulloo, Tan, J. Oper.
Res. Soc. 1998). Prices are found link by link, each with the others held, which is
descent along the coordinates of a convex function.

This is not max-min: a queue pair that crosses two congested queues is marked at both
and gets less than one that crosses the fuller of them. Queue pairs of one NIC take
turns, so that none gets more than its share of the NIC's line where it is full.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabric.sim.flowlevel.jit import inner, kernel
from fabric.sim.flowlevel.response import LOG_P_MIN, POINTS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_STEP = -LOG_P_MIN / (POINTS - 1)
_P_MIN = 1e-7
_P_MAX = 1e9
# A link that is full to this part, but no more, makes no queue.
_EXACT = 1e-9


@dataclass
class Members:
    """Which units cross which link: those of link l are ``units[starts[l]:starts[l + 1]]``."""

    starts: Ints
    units: Ints


def members_of(link_of: Ints, unit_of: Ints, links: int) -> Members:
    """Group pairs of (link, unit) by link."""
    order = np.argsort(link_of, kind="stable")
    counts = np.bincount(link_of, minlength=links)
    return Members(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), unit_of[order])


@inner
def _rate(curve: Floats, line: float, p: float) -> float:
    """Rate of a curve at marking probability ``p``, as ``Curve.rate_bps``."""
    if p <= 0:
        return line
    at = (np.log(p) - LOG_P_MIN) / _STEP
    if at <= 0:
        return float(curve[0])
    below = int(at)
    if below >= POINTS - 1:
        return float(curve[POINTS - 1] / p)
    return float(curve[below] + (at - below) * (curve[below + 1] - curve[below]))


@inner
def _load(
    units: Ints,
    more: float,
    price: Floats,
    level: Floats,
    kind: Ints,
    curves: Floats,
    lines: Floats,
) -> float:
    """What these units send when each one's price changes by ``more``."""
    total = 0.0
    for u in units:
        k = kind[u]
        p = max(0.0, price[u] + more)
        total += min(level[u], _rate(curves[k], lines[k], p))
    return total


@inner
def _root(
    units: Ints,
    own: float,
    capacity: float,
    price: Floats,
    level: Floats,
    kind: Ints,
    curves: Floats,
    lines: Floats,
) -> float:
    """The price of its own at which a link is exactly full; 0 where it cannot be filled."""
    if _load(units, -own, price, level, kind, curves, lines) <= capacity * (1 + _EXACT):
        return 0.0
    low, high = np.log(_P_MIN), np.log(_P_MAX)
    if own > _P_MIN:
        # Most prices move little: look near the last one first.
        width = 0.05
        while width < 40:
            a, b = np.log(own) - width, np.log(own) + width
            above = _load(units, np.exp(a) - own, price, level, kind, curves, lines) > capacity
            below = _load(units, np.exp(b) - own, price, level, kind, curves, lines) <= capacity
            if above and below:
                low, high = a, b
                break
            width *= 4
    while high - low > 1e-6:
        middle = (low + high) / 2
        if _load(units, np.exp(middle) - own, price, level, kind, curves, lines) > capacity:
            low = middle
        else:
            high = middle
    return float(np.exp(high))


@kernel
def sweep_links(
    starts: Ints,
    members: Ints,
    capacity: Floats,
    link_price: Floats,
    price: Floats,
    level: Floats,
    kind: Ints,
    curves: Floats,
    lines: Floats,
) -> float:
    """Set each link's price anew, in place; returns how far off the worst one was.

    ``price`` is (units,), the sum over each path; ``level`` the most that its NIC
    lets a unit send. The distance is load over capacity minus 1, either way for a
    link with a price, upwards only for one without.
    """
    worst = 0.0
    for link in range(len(capacity)):
        units = members[starts[link] : starts[link + 1]]
        if len(units) == 0:
            continue
        own = link_price[link]
        load = _load(units, 0.0, price, level, kind, curves, lines)
        off = load / capacity[link] - 1
        if off <= _EXACT and own == 0:
            continue
        worst = max(worst, abs(off))
        new = _root(units, own, capacity[link], price, level, kind, curves, lines)
        link_price[link] = new
        for u in units:
            price[u] = max(0.0, price[u] + new - own)
    return worst


@kernel
def sweep_nics(
    starts: Ints,
    members: Ints,
    capacity: Floats,
    price: Floats,
    level: Floats,
    kind: Ints,
    curves: Floats,
    lines: Floats,
) -> None:
    """Set ``level``: what a unit gets at most when those of its NIC take turns."""
    for nic in range(len(capacity)):
        units = members[starts[nic] : starts[nic + 1]]
        if len(units) < 2:
            continue
        wanted = np.empty(len(units))
        for i in range(len(units)):
            k = kind[units[i]]
            wanted[i] = _rate(curves[k], lines[k], price[units[i]])
        wanted.sort()
        left, share = capacity[nic], np.inf
        for i in range(len(units)):
            if wanted[i] * (len(units) - i) > left:
                share = left / (len(units) - i)
                break
            left -= wanted[i]
        for u in units:
            level[u] = share


@kernel
def rates_of(
    price: Floats, level: Floats, kind: Ints, curves: Floats, lines: Floats, rates: Floats
) -> None:
    """Write the rate of each unit, in bits a second on the wire."""
    for u in range(len(price)):
        k = kind[u]
        rates[u] = min(level[u], _rate(curves[k], lines[k], price[u]))
