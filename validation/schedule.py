"""Who talks to whom in which round; pure index arithmetic.

The circle method (round-robin tournaments): one player stays, the others turn
by one place a round, so that every pair meets exactly once and nobody is in
two pairs of a round. An odd field has a bye.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

IndexPair = tuple[int, int]
Item = TypeVar("Item")


def circle_rounds(count: int) -> tuple[tuple[IndexPair, ...], ...]:
    """All pairs of ``count`` players in n-1 rounds (n where n is odd).

    The smaller index comes first in each pair; empty for fewer than two players.
    """
    if count < 2:
        return ()
    size = count + count % 2
    rounds = []
    for turn in range(size - 1):
        pairs = []
        for place in range(size // 2):
            left = (turn + place) % (size - 1)
            right = size - 1 if place == 0 else (turn - place) % (size - 1)
            if max(left, right) < count:
                pairs.append((min(left, right), max(left, right)))
        rounds.append(tuple(sorted(pairs)))
    return tuple(rounds)


def growing_fan_in(senders: int) -> tuple[int, ...]:
    """2, 4, 8, ... below ``senders``: the steps of an incast that grows."""
    steps = []
    step = 2
    while step < senders:
        steps.append(step)
        step *= 2
    return tuple(steps)


def spread(count: int, wanted: int) -> tuple[int, ...]:
    """``wanted`` indices out of ``count``, evenly spaced; all of them where they are few."""
    if wanted >= count:
        return tuple(range(count))
    return tuple(index * count // wanted for index in range(wanted))


def ring_pairs(members: Sequence[Item]) -> tuple[tuple[Item, Item], ...]:
    """Each member and the next, the last and the first; empty for fewer than two."""
    return shift_pairs(members, 1)


def shift_pairs(members: Sequence[Item], by: int) -> tuple[tuple[Item, Item], ...]:
    """Each member and the ``by``-th after it: one step of a pairwise all-to-all."""
    count = len(members)
    if not by % max(count, 1):
        return ()
    return tuple((members[i], members[(i + by) % count]) for i in range(count))
