"""Steady rates where PFC alone holds the senders back.

Nothing tells a sender that its own packets are too many; a receive buffer that is full
pauses the whole priority of the link before it. This is played as a fluid: each unit
has an amount in the queue of every egress on its way, an egress sends what it holds
first come first served, so each in proportion to its amount, and a link slows down as
the buffer at its far end nears XOFF, which stands for pausing and resuming in turn.

It follows that an egress divides itself among the ingresses that feed it as their XOFF
thresholds are, whatever the number of flows behind each; and that all queue pairs of
one NIC go at one rate, since a priority is paused as a whole: one that is bound for an
idle host waits for one that is not (head-of-line blocking, the victims of Zhu et al.,
SIGCOMM 2015, section 2.2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fabric.sim.flowlevel.jit import kernel

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# A link slows down from this part below XOFF to this part above it.
_BAND = 0.05


def time_step_s(window_bits: Floats, capacity: Floats) -> float:
    """As long as a buffer's filling may go unnoticed without making its link swing."""
    return float(_BAND * np.min(window_bits / capacity))


def paused_part(held_bits: Floats, window_bits: Floats) -> Floats:
    """The part of the time in which a link is paused when its far end holds this much."""
    over = held_bits / window_bits - (1 - _BAND)
    return np.clip(over / (2 * _BAND), 0.0, 1.0)


@kernel
def play(
    steps: int,
    step_s: float,
    hops: Ints,
    starts: Ints,
    capacity: Floats,
    window_bits: Floats,
    share: Floats,
    amounts: Floats,
    sent: Floats,
    arrived: Floats,
    passed: Floats,
    held: Floats,
    queued: Floats,
) -> None:
    """Play ``steps`` time steps.

    ``hops`` and ``starts`` are the units' paths, NIC first; ``amounts`` is (hops,), the
    bits of a unit in that port's queue, 0 for NICs. ``share`` is (ports,): the units of
    that NIC. ``window_bits`` is (ports,): XOFF of the ingress at each port's far end.
    All but those and ``capacity`` are changed in place: ``sent`` and ``arrived``
    (units,) and ``passed`` (ports,) become the bits of these steps; ``held`` (what the
    ingress at a port's far end holds) and ``queued`` the bits at their end.
    """
    units, ports = len(starts) - 1, len(capacity)
    part = np.empty(ports)
    sent[:] = 0.0
    arrived[:] = 0.0
    passed[:] = 0.0
    for _ in range(steps):
        held[:] = 0.0
        queued[:] = 0.0
        for u in range(units):
            for at in range(starts[u] + 1, starts[u + 1]):
                queued[hops[at]] += amounts[at]
                held[hops[at - 1]] += amounts[at]
        for port in range(ports):
            limit = window_bits[port]
            open_part = (limit * (1 + _BAND) - held[port]) / (2 * _BAND * limit)
            room = capacity[port] * step_s * min(1.0, max(0.0, open_part))
            if share[port] > 0:
                part[port] = room / share[port]
            elif queued[port] > room:
                part[port] = room / queued[port]
            else:
                part[port] = 1.0
        for u in range(units):
            first, last = starts[u], starts[u + 1]
            moving = part[hops[first]]
            sent[u] += moving
            passed[hops[first]] += moving
            for at in range(first + 1, last):
                leaving = amounts[at] * part[hops[at]]
                amounts[at] += moving - leaving
                moving = leaving
                passed[hops[at]] += moving
            arrived[u] += moving
