"""Which candidates no other one betters, and which few of them to show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fabric.sim.tune.trial import Measures

Floats = NDArray[np.float64]

# Of goodput, tail and queue delay: smaller differences say nothing between two seeds.
_STEPS = np.array([1e-3, 1e-2, 0.5])


def costs(measures: Sequence[Measures]) -> Floats:
    """(candidates, 3): goodput lost, tail, queue, in steps that matter; less is better."""
    rows = [(1 - m.goodput, m.tail, m.queue_us) for m in measures]
    return np.asarray(np.round(np.array(rows, np.float64).reshape(len(rows), 3) / _STEPS))


def pareto(cost: Floats) -> list[int]:
    """Rows that no other row is as good as in everything and better in something."""
    found = []
    for k, row in enumerate(cost):
        better = (cost <= row).all(axis=1) & (cost < row).any(axis=1)
        same = (cost[:k] == row).all(axis=1)
        if not better.any() and not same.any():
            found.append(k)
    return found


def spread(cost: Floats, most: int) -> list[int]:
    """At most ``most`` rows: the best in each column, then those farthest from all chosen."""
    count = len(cost)
    if count <= most:
        return list(range(count))
    scale = np.where(np.ptp(cost, axis=0) > 0, np.ptp(cost, axis=0), 1.0)
    places = (cost - cost.min(axis=0)) / scale
    chosen = list(dict.fromkeys(int(k) for k in places.argmin(axis=0)))[:most]
    while len(chosen) < most:
        gaps = np.linalg.norm(places[:, None] - places[chosen], axis=2).min(axis=1)
        chosen.append(int(gaps.argmax()))
    return sorted(chosen)
