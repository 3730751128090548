"""What of the exchange is hidden behind computation: one step, played.

A step computes forward, then backward; backward takes ``BACKWARD_PART`` of it. Gradients
come out last layers first. The exchange is one channel that carries one thing at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# A layer backward is two products of the size of the one forward: with respect to its
# inputs and to its weights.
BACKWARD_PART = 2 / 3


@dataclass(frozen=True, slots=True)
class Affine:
    """Seconds that an exchange of so many bytes takes: ``latency_s + bytes * s_per_byte``."""

    latency_s: float
    s_per_byte: float

    def __call__(self, nbytes: float) -> float:
        """Seconds for ``nbytes``."""
        return self.latency_s + nbytes * self.s_per_byte


@dataclass(frozen=True, slots=True)
class Played:
    """A step: seconds until everything has arrived, and how long the channel was in use."""

    end_s: float
    busy_s: float
    exchanges: int


Seconds = Callable[[float], float]


def ready_times(ready: Sequence[float], compute_s: float) -> list[float]:
    """When gradients are out, from the part of backpropagation that is done then."""
    forward_s = compute_s * (1 - BACKWARD_PART)
    return [forward_s + part * (compute_s - forward_s) for part in ready]


def play_buckets(buckets: Sequence[tuple[float, float]], compute_s: float, cost: Seconds) -> Played:
    """Fixed buckets (seconds when complete, bytes), one after the other."""
    free = busy = 0.0
    for ready_s, nbytes in buckets:
        took = cost(nbytes)
        free = max(free, ready_s) + took
        busy += took
    return Played(max(free, compute_s), busy, len(buckets))


def play_fused(
    gradients: Sequence[tuple[float, float]],
    compute_s: float,
    cost: Seconds,
    limit_bytes: float,
    cycle_s: float,
) -> Played:
    """Whatever is out when the channel looks is sent together, up to ``limit_bytes``.

    It looks every ``cycle_s`` while it is idle (Horovod's tensor fusion). ``gradients``
    are (seconds when out, bytes) in the order in which they come out.
    """
    now = busy = 0.0
    position = exchanges = 0
    while position < len(gradients):
        if gradients[position][0] > now:
            now = _tick(gradients[position][0], cycle_s)
        nbytes = 0.0
        first = position
        while position < len(gradients) and gradients[position][0] <= now:
            if position > first and nbytes + gradients[position][1] > limit_bytes:
                break
            nbytes += gradients[position][1]
            position += 1
        took = cost(nbytes)
        now += took
        busy += took
        exchanges += 1
    return Played(max(now, compute_s), busy, exchanges)


def _tick(seconds: float, cycle_s: float) -> float:
    return math.ceil(seconds / cycle_s) * cycle_s if cycle_s > 0 else seconds
