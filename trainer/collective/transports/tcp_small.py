"""A small allreduce over the ring's connections: gather all arrays, then combine them.

A ring allreduce passes bytes on 2(n-1) times, one time after the other; this
n-1 times, for more bytes. Slots hold the ranks' arrays in the order in which
they come: ours, the left neighbour's, its left neighbour's. So what goes out
is one stretch of memory, what comes in is the same one slot further, and what
has come in of a slot may go out at once. Every rank then computes everything,
in the ring's order, so that the bits are those of
:mod:`~trainer.collective.transports.tcp_ring`.
"""

from __future__ import annotations

import select

import numpy as np

from trainer.collective.direct_kernels import copy_bytes, part, words_at
from trainer.collective.kernels import combine_any, compiled, divide_any
from trainer.collective.shared_words import give_way, now_ns
from trainer.collective.transports.tcp_kernels import (
    AGAIN,
    CLOSED,
    DONE,
    HEADER_BYTES,
    IDLE,
    LEFT_FAILED,
    RIGHT_FAILED,
    ROW_BYTES,
    UNEXPECTED,
    last_error,
    patience_ns,
    poll_slice,
    readv,
    writev,
)
from trainer.collective.transports.tcp_ring import IN_AT, IN_HEADER, IN_ITEM, OUT_AT, OUT_HEADER

# All ranks' arrays together. Up to it steps cost more than bytes.
SLOTS_BYTES = 128 << 10
_POLLIN, _POLLOUT = select.POLLIN, select.POLLOUT


@compiled
def _combine(
    mine: np.ndarray, slots: int, op: int, form: int, divisor: int, rank: int, size: int
) -> None:
    """Combine what lies in the slots: chunk c begins with rank c's and ends with rank c-1's."""
    count, itemsize = mine.size, mine.itemsize
    for chunk in range(size):
        start, stop = part(size, chunk, count, itemsize)
        if start == stop:
            break
        at, length = slots + start * itemsize, stop - start
        sums = words_at(at + (rank - chunk) % size * count * itemsize, length, mine)
        for hop in range(1, size):
            slot = (rank - chunk - hop) % size
            into = words_at(at + slot * count * itemsize, length, mine)
            combine_any(into, sums, op, form)
            sums = into
        if divisor > 1:
            divide_any(sums, divisor, form)
        mine[start:stop] = sums


@compiled
def _go_out(
    right: int,
    row: np.ndarray,
    until: int,
    headers_at: int,
    slots: int,
    vectors: np.ndarray,
    vectors_at: int,
    codes: np.ndarray,
) -> int:
    """Send once: the header, the slots up to byte ``until``. Bytes, or minus an outcome."""
    missing = HEADER_BYTES - row[OUT_HEADER]
    if missing == 0 and row[OUT_AT] == until:
        return 0
    vectors[0, 0], vectors[0, 1] = headers_at + row[OUT_HEADER], missing
    vectors[1, 0], vectors[1, 1] = slots + row[OUT_AT], until - row[OUT_AT]
    first = 0 if missing else 1
    sent = writev(right, vectors_at + first * ROW_BYTES, 2 - first)
    if sent < 0:
        code = last_error(codes)
        return 0 if code == AGAIN else -RIGHT_FAILED - code
    row[OUT_HEADER] += min(sent, missing)
    row[OUT_AT] += sent - min(sent, missing)
    return sent  # type: ignore[no-any-return]


@compiled
def _come_in(
    left: int,
    row: np.ndarray,
    total: int,
    headers: np.ndarray,
    headers_at: int,
    target: int,
    vectors: np.ndarray,
    vectors_at: int,
    codes: np.ndarray,
) -> int:
    """Receive once: the header, and ``total`` bytes at ``target``. Bytes, or minus an outcome."""
    missing = HEADER_BYTES - row[IN_HEADER]
    if missing == 0 and row[IN_AT] == total:
        return 0
    vectors[0, 0], vectors[0, 1] = headers_at + HEADER_BYTES + row[IN_HEADER], missing
    vectors[1, 0], vectors[1, 1] = target + row[IN_AT], total - row[IN_AT]
    first = 0 if missing else 1
    got = readv(left, vectors_at + first * ROW_BYTES, 2 - first)
    if got == 0:
        return -CLOSED
    if got < 0:
        code = last_error(codes)
        return 0 if code == AGAIN else -LEFT_FAILED - code
    row[IN_HEADER] += min(got, missing)
    row[IN_AT] += got - min(got, missing)
    if missing > 0 and row[IN_HEADER] == HEADER_BYTES:
        for i in range(HEADER_BYTES):
            if headers[1, i] != headers[0, i]:
                return -UNEXPECTED
    return got  # type: ignore[no-any-return]


@compiled
def gather_and_combine(
    mine: np.ndarray,
    mine_at: int,
    op: int,
    form: int,
    divisor: int,
    rank: int,
    size: int,
    left: int,
    right: int,
    row: np.ndarray,
    headers: np.ndarray,
    headers_at: int,
    slots: int,
    vectors: np.ndarray,
    vectors_at: int,
    polled: np.ndarray,
    polled_at: int,
    codes: np.ndarray,
    habits: np.ndarray,
    timespec: int,
) -> int:
    """Go on with the allreduce of ``mine``, which lies at ``mine_at``; how far it has come.

    Outcomes and arguments are those of
    :func:`~trainer.collective.transports.tcp_ring.circulate`; ``row`` is a row of
    its state, whose IN_AT and OUT_AT count the bytes of all arrays here. At
    address ``slots`` there is room for all ranks' arrays.
    """
    nbytes = mine.size * mine.itemsize
    total = (size - 1) * nbytes
    if row[OUT_HEADER] == 0:
        copy_bytes(slots, mine_at, nbytes)
    idle_since = 0
    while True:
        until = min(total, nbytes + row[IN_AT])
        sent = _go_out(right, row, until, headers_at, slots, vectors, vectors_at, codes)
        if sent < 0:
            return -sent
        got = _come_in(
            left, row, total, headers, headers_at, slots + nbytes, vectors, vectors_at, codes
        )
        if got < 0:
            return -got
        if row[IN_HEADER] + row[IN_AT] == HEADER_BYTES + total:
            row[IN_ITEM] = 2 * size - 1
        gone = row[OUT_HEADER] + row[OUT_AT] == HEADER_BYTES + total
        if gone and row[IN_ITEM] > 1:
            _combine(mine, slots, op, form, divisor, rank, size)
            return DONE
        if sent + got > 0:
            idle_since = 0
            continue
        now = now_ns(habits, timespec)
        if idle_since == 0:
            idle_since = now
        elif now - idle_since > patience_ns(habits) and not give_way(idle_since, habits, timespec):
            count = 0
            if row[IN_ITEM] == 1:
                polled[count, 0], polled[count, 1] = left, _POLLIN
                count += 1
            if not gone and (until > row[OUT_AT] or row[OUT_HEADER] < HEADER_BYTES):
                polled[count, 0], polled[count, 1] = right, _POLLOUT
                count += 1
            if not poll_slice(polled_at, count):
                return IDLE
            idle_since = 0
