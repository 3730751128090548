"""Who talks to whom in which round; pure index arithmetic.

The circle method (round-robin tournaments): one player stays, the others turn
by one place a round, so that every pair meets exactly once and nobody is in
two pairs of a round. An odd field has a bye.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
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


def grouped_rounds(
    groups: Sequence[Sequence[int]], inside: int
) -> tuple[tuple[IndexPair, ...], ...]:
    """Rounds in which every two groups meet once, all members at once; nobody is in two pairs.

    For fields whose full matrix is too large: groups play by the circle method, and in each
    meeting members play those of the other group, shifted a place further from round to
    round. A group with a bye plays among itself; ``inside`` more rounds of each are added.
    The smaller index comes first in each pair.
    """
    rounds: list[list[IndexPair]] = []
    # Rounds of each group among itself that have not been played.
    among = [iter([_of(group, pairs) for pairs in circle_rounds(len(group))]) for group in groups]
    for turn, meeting in enumerate(circle_rounds(len(groups))):
        pairs = [
            (one, groups[right][(place + turn) % len(groups[right])])
            for left, right in meeting
            for place, one in enumerate(groups[left][: len(groups[right])])
        ]
        busy = {index for pair in meeting for index in pair}
        idle = (own for index, own in enumerate(among) if index not in busy)
        rounds.append([*pairs, *_next_of(idle)])
    rounds += [_next_of(among) for _ in range(inside)]
    return tuple(
        tuple(sorted((min(pair), max(pair)) for pair in pairs)) for pairs in rounds if pairs
    )


def _next_of(among: Iterable[Iterator[list[IndexPair]]]) -> list[IndexPair]:
    return [pair for own in among for pair in next(own, ())]


def _of(group: Sequence[int], pairs: Sequence[IndexPair]) -> list[IndexPair]:
    return [(group[left], group[right]) for left, right in pairs]


def chunks(items: Sequence[Item], most: int) -> tuple[tuple[Item, ...], ...]:
    """The items in as few parts of at most ``most`` as there must be, of like size."""
    parts = max(1, -(-len(items) // most))
    edges = [place * len(items) // parts for place in range(parts + 1)]
    return tuple(tuple(items[a:b]) for a, b in pairwise(edges))


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
