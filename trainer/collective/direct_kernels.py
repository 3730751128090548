"""The compiled part of the direct collectives: every rank works on all ranks' memory.

Addresses are plain integers. ``boards`` are the ranks' boards, ``bases`` where
each rank's data begins in our address space. ``phase`` says where to go on
after an interruption; the result is 0, or what stands in the way and the peer:
``reason * REASON + peer``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray
from numba.core import types
from numba.extending import intrinsic

from trainer.collective.kernels import combine_any, compiled, divide_any, external
from trainer.collective.shared_words import advance, reached, wait_for

# The layout of a board.
ARRIVED, DONE, FREED = 256, 512, 768
DESCRIPTOR, DESCRIPTOR_BYTES = 1024, 512
FREED_KEYS, FREED_SLOTS = 2048, 128
SLOT, SLOT_BYTES = 4096, 32768
BOARD_BYTES = SLOT + 2 * SLOT_BYTES
STAMP_WORDS = 4

REASON = 1 << 20
LATE, DIFFERS, UNMAPPED, UNFINISHED = 1, 2, 3, 4
ARRIVE, WORK, FINISH = 0, 1, 2

# Between being combined and being spread a block stays in the innermost cache.
BLOCK_BYTES = 8192

_memcpy = external("memcpy", types.int64, types.int64, types.int64, types.int64)


def _point(_context: Any, _address: Any, like: Any) -> Any:  # noqa: ANN401 (numba's own types)
    def generate(ctx: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
        return builder.inttoptr(args[0], ctx.get_value_type(signature.return_type))

    return types.CPointer(like.dtype)(types.int64, like), generate  # type: ignore[attr-defined]


_pointer = intrinsic(_point)


@compiled
def words_at(address: int, count: int, like: np.ndarray) -> np.ndarray:
    """An array of ``like``'s type over memory at an address."""
    return carray(_pointer(address, like), (count,))  # type: ignore[no-any-return]


@compiled
def meet(
    boards: np.ndarray,
    tags: np.ndarray,
    words: np.ndarray,
    rank: int,
    sequence: int,
    habits: np.ndarray,
    timespec: int,
) -> int:
    """Say that we have come, wait until all have, and compare what they have come for.

    ``tags`` say of which data we know the addresses, by rank; all others
    are UNMAPPED. ``words`` is an empty uint64 array (for its type).
    """
    advance(boards[rank] + ARRIVED, sequence, habits)
    at = DESCRIPTOR + (sequence & 1) * DESCRIPTOR_BYTES
    mine = words_at(boards[rank] + at, 4 + STAMP_WORDS, words)
    missing = 0
    for hop in range(1, boards.size):
        peer = (rank + hop) % boards.size
        if not wait_for(boards[peer] + ARRIVED, sequence, habits, timespec):
            return LATE * REASON + peer
        theirs = words_at(boards[peer] + at, 4 + STAMP_WORDS, words)
        for i in range(STAMP_WORDS):
            if mine[4 + i] != theirs[4 + i]:
                return DIFFERS * REASON + peer
        if theirs[0] != tags[peer]:
            missing = UNMAPPED * REASON + peer
    return missing


@compiled
def part(ways: int, peer: int, count: int, itemsize: int) -> tuple[int, int]:
    """The range of elements that falls to ``peer`` when ``ways`` share them, on cache lines."""
    grain = max(1, 64 // itemsize)
    step = -(-count // (ways * grain)) * grain
    return min(peer * step, count), min((peer + 1) * step, count)


@compiled
def finish(
    boards: np.ndarray,
    rank: int,
    sequence: int,
    everyone: bool,
    habits: np.ndarray,
    timespec: int,
) -> int:
    """Say that we are done with the others' memory; wait until they are with ours."""
    advance(boards[rank] + DONE, sequence, habits)
    if everyone:
        for hop in range(1, boards.size):
            peer = (rank + hop) % boards.size
            if not wait_for(boards[peer] + DONE, sequence, habits, timespec):
                return UNFINISHED * REASON + peer
    return 0


@compiled
def reduce_part(
    like: np.ndarray,
    bases: np.ndarray,
    rank: int,
    start: int,
    stop: int,
    op: int,
    form: int,
    divisor: int,
    spread: int,
    root: int,
) -> None:
    """Combine elements ``start:stop`` of all ranks, from ours on by rank, and store them.

    ``spread`` 1 stores with every rank, 0 with us alone, 2 with ``root`` alone.
    """
    n, itemsize = bases.size, like.itemsize
    step = max(1, BLOCK_BYTES // itemsize)
    for a in range(start, stop, step):
        count = min(step, stop - a)
        at = a * itemsize
        into = words_at(bases[rank] + at, count, like)
        for hop in range(1, n):
            other = words_at(bases[(rank + hop) % n] + at, count, like)
            combine_any(into, other, op, form)
        if divisor > 1:
            divide_any(into, divisor, form)
        if spread == 1:
            for hop in range(1, n):
                _memcpy(bases[(rank + hop) % n] + at, bases[rank] + at, count * itemsize)
        elif spread == 2 and root != rank:
            _memcpy(bases[root] + at, bases[rank] + at, count * itemsize)


@compiled
def allreduce(
    like: np.ndarray,
    boards: np.ndarray,
    tags: np.ndarray,
    words: np.ndarray,
    bases: np.ndarray,
    rank: int,
    sequence: int,
    count: int,
    op: int,
    form: int,
    divisor: int,
    spread: int,
    root: int,
    ways: int,
    phase: int,
    habits: np.ndarray,
    timespec: int,
) -> int:
    """Combine ``count`` elements of all ranks; see :func:`reduce_part` for who gets them."""
    if phase <= ARRIVE:
        blocked = meet(boards, tags, words, rank, sequence, habits, timespec)
        if blocked:
            return blocked
    if phase <= WORK:
        start, stop = part(ways, rank, count, like.itemsize)
        reduce_part(like, bases, rank, start, stop, op, form, divisor, spread, root)
    return finish(boards, rank, sequence, True, habits, timespec)


@compiled
def allreduce_small(
    mine: np.ndarray,
    boards: np.ndarray,
    tags: np.ndarray,
    words: np.ndarray,
    rank: int,
    sequence: int,
    op: int,
    form: int,
    divisor: int,
    phase: int,
    habits: np.ndarray,
    timespec: int,
) -> int:
    """Combine a small array by way of the boards: ranks wait for each other only once.

    Each rank computes all of it, every range in the order of :func:`allreduce`,
    so that all get the same bits.
    """
    n, count, itemsize = boards.size, mine.size, mine.itemsize
    at = SLOT + (sequence & 1) * SLOT_BYTES
    if phase <= ARRIVE:
        words_at(boards[rank] + at, count, mine)[:] = mine
    blocked = meet(boards, tags, words, rank, sequence, habits, timespec)
    if blocked and blocked // REASON != UNMAPPED:
        return blocked
    for first in range(n):
        start, stop = part(n, first, count, itemsize)
        if start == stop:
            break
        into = mine[start:stop]
        begin = at + start * itemsize
        into[:] = words_at(boards[first] + begin, stop - start, mine)
        for hop in range(1, n):
            other = words_at(boards[(first + hop) % n] + begin, stop - start, mine)
            combine_any(into, other, op, form)
        if divisor > 1:
            divide_any(into, divisor, form)
    return 0


@compiled
def fetch_shares(bases: np.ndarray, rank: int, ways: int, count: int, itemsize: int) -> None:
    """Copy from each of the first ``ways`` ranks the range of elements that is its share."""
    for hop in range(1, ways + 1):
        peer = (rank + hop) % ways
        start, stop = part(ways, peer, count, itemsize)
        if peer != rank and stop > start:
            at = start * itemsize
            _memcpy(bases[rank] + at, bases[peer] + at, (stop - start) * itemsize)


@compiled
def copy_bytes(target: int, source: int, nbytes: int) -> None:
    """memcpy(3) between addresses."""
    _memcpy(target, source, nbytes)


@compiled
def arrived(board: int, sequence: int) -> bool:
    """Whether the owner of the board has come to ``sequence``."""
    return reached(board + ARRIVED, sequence)
