"""Set the fitted constants so that the figures that they are fitted on come out.

``paisoar predict --check`` uses what is in ``constants.py``; a test holds that this
gives the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from trainer.predict.constants import DEFAULTS, ORIGINS, Constants
from trainer.predict.published import Bench, Figure, figures

# Constants that are fitted together, and where each is searched, in this order.
GROUPS: tuple[dict[str, tuple[float, float]], ...] = (
    {"sync_part": (0.001, 0.3), "nccl_rdma_part": (0.2, 1.0)},
    {"nccl_tcp_rate": (0.3e9, 6e9)},
    {"mpi_host_rate": (0.2e9, 20e9)},
    {"grpc_2017_rate": (0.1e9, 3e9), "grpc_2017_call_s": (1e-6, 3e-3)},
    {"grpc_rate": (0.1e9, 6e9), "grpc_call_s": (1e-6, 3e-3), "verbs_call_s": (1e-6, 3e-3)},
)
_GOLDEN = (math.sqrt(5) - 1) / 2
_NARROW = 1e-3
_ROUNDS = 8


def fit(start: Constants = DEFAULTS) -> Constants:
    """The constants, each group on its own figures. Takes some seconds."""
    known = {figure.key: figure for figure in figures()}
    bench, found = Bench(start), start
    for group in GROUPS:
        keys = dict.fromkeys(key for name in group for key in ORIGINS[name].fitted_on)
        found = _fit(bench, found, group, [known[key] for key in keys])
    return found


def _fit(
    bench: Bench,
    start: Constants,
    ranges: dict[str, tuple[float, float]],
    on: Sequence[Figure],
) -> Constants:
    """One after the other, again and again: least squares of the errors' logarithms."""
    found = start
    for _ in range(1 if len(ranges) == 1 else _ROUNDS):
        for name, (low, high) in ranges.items():
            off = partial(_off, bench, found, name, on)
            best = _least(off, math.log(low), math.log(high))
            found = replace(found, **{name: math.exp(best)})
    return found


def _off(
    bench: Bench, known: Constants, name: str, on: Sequence[Figure], logarithm: float
) -> float:
    bench.constants = replace(known, **{name: math.exp(logarithm)})
    return sum(math.log(figure.predict(bench) / figure.published) ** 2 for figure in on)


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one valley is least: golden section, after a coarse look."""
    steps = 12
    at = [low + (high - low) * step / steps for step in range(steps + 1)]
    least = min(range(steps + 1), key=lambda step: function(at[step]))
    low, high = at[max(0, least - 1)], at[min(steps, least + 1)]
    while high - low > _NARROW:
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if function(left) <= function(right):
            high = right
        else:
            low = left
    return (low + high) / 2
