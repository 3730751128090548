"""A small allreduce over connections between all ranks: exchange all arrays, then combine them.

A ring passes bytes on 2(n-1) times, one time after the other. Here every rank
sends its array to all others at once. For more bytes that is one step, which is
what counts as long as arrays are small. Every rank then computes everything,
in the ring's order, so that the bits are those of
:mod:`~trainer.collective.transports.tcp_ring`.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Sequence

import numpy as np

from trainer.collective.direct_kernels import copy_bytes, part, words_at
from trainer.collective.engine import address_of
from trainer.collective.kernels import combine_any, compiled, divide_any
from trainer.collective.shared_words import now_ns
from trainer.collective.transport import Patience
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
    poll_slice,
    readv,
    stays_awake,
    writev,
)

# All ranks' arrays together. Up to it steps cost more than bytes.
_SLOTS_BYTES = 128 << 10
# With more, connections and messages between all become too many.
MOST_RANKS = 32
# What went wrong is said as hop * HOP + outcome.
HOP = 1 << 20
_POLLIN, _POLLOUT = select.POLLIN, select.POLLOUT
# Columns of ``state``, a row a hop: bytes of the header and of the array that have come from
# the rank so many places to the left of us, and gone to the one as many places to the right.
_IN_HEADER, _IN_AT, _OUT_HEADER, _OUT_AT = range(4)
_CODES = np.empty(0, np.int32)


class SmallExchange:
    """Allreduces of arrays that it :meth:`takes`.

    ``rights`` and ``lefts`` are sockets to and from the other ranks, by hop;
    ``habits`` see :func:`~trainer.collective.shared_words.waiting_habits`.
    """

    def __init__(
        self, rank: int, rights: Sequence[int], lefts: Sequence[int], habits: np.ndarray
    ) -> None:
        self._rank = rank
        self._size = len(rights) + 1
        self._rights = np.array(rights, np.int32)
        self._lefts = np.array(lefts, np.int32)
        self._state = np.zeros((len(rights), 4), np.int64)
        self._headers = np.zeros((self._size, HEADER_BYTES), np.uint8)
        self._slots = np.empty(_SLOTS_BYTES, np.uint8)
        self._vectors = np.zeros((2, 2), np.int64)
        self._polled = np.zeros((2 * len(rights), 2), np.int32)
        self._habits = habits
        self._headers_at, self._slots_at = address_of(self._headers), address_of(self._slots)
        self._vectors_at, self._polled_at = address_of(self._vectors), address_of(self._polled)
        self._timespec = address_of(habits) + 3 * 8

    def takes(self, nbytes: int) -> bool:
        """Whether an array of so many bytes is small enough."""
        return nbytes * self._size <= _SLOTS_BYTES

    def allreduce(
        self,
        array: np.ndarray,
        op: int,
        form: int,
        divisor: int,
        header: bytes,
        patience: Patience,
    ) -> tuple[int, bytes] | None:
        """Allreduce a flat array in place, then divide it; None when that is done.

        Everybody sends ``header``; the rank and header of one that sends another.
        """
        state = self._state
        state[:] = 0
        self._headers[0] = np.frombuffer(header, np.uint8)
        began, before = time.monotonic(), b""
        while True:
            hop, outcome = divmod(
                exchange(
                    array,
                    address_of(array),
                    op,
                    form,
                    divisor,
                    self._rank,
                    self._rights,
                    self._lefts,
                    state,
                    self._headers,
                    self._headers_at,
                    self._slots_at,
                    self._vectors,
                    self._vectors_at,
                    self._polled,
                    self._polled_at,
                    _CODES,
                    self._habits,
                    self._timespec,
                ),
                HOP,
            )
            if outcome == DONE:
                return None
            left = (self._rank - 1 - hop) % self._size
            if outcome == UNEXPECTED:
                self._send_headers()
                return left, self._headers[1 + hop].tobytes()
            if outcome == CLOSED:
                raise patience.lost(left, "closed its connection")
            if outcome >= RIGHT_FAILED:
                peer, code = (self._rank + 1 + hop) % self._size, outcome - RIGHT_FAILED
                raise patience.lost(peer, f"broke its connection ({os.strerror(code)})")
            if outcome >= LEFT_FAILED:
                code = outcome - LEFT_FAILED
                raise patience.lost(left, f"broke its connection ({os.strerror(code)})")
            if state.tobytes() != before:
                before, began = state.tobytes(), time.monotonic()
            patience.check(self._missing(array.nbytes), time.monotonic() - began)

    def _missing(self, nbytes: int) -> int:
        """A rank that we wait for."""
        come = self._state[:, _IN_HEADER] + self._state[:, _IN_AT]
        missing = np.flatnonzero(come < HEADER_BYTES + nbytes)
        if missing.size:
            return int(self._rank - 1 - missing[0]) % self._size
        gone = self._state[:, _OUT_HEADER] + self._state[:, _OUT_AT]
        return int(self._rank + 1 + np.argmin(gone)) % self._size

    def _send_headers(self) -> None:
        """Let all others see, too, that we are doing something else than one of them."""
        for right, row in zip(self._rights, self._state, strict=True):
            with contextlib.suppress(OSError):
                os.write(right, self._headers[0].tobytes()[row[_OUT_HEADER] :])


@compiled
def _combine(
    mine: np.ndarray, mine_at: int, slots: int, op: int, form: int, divisor: int, rank: int, n: int
) -> None:
    """Combine ours with the slots: chunk c begins with rank c's and ends with rank c-1's."""
    nbytes, itemsize = mine.size * mine.itemsize, mine.itemsize
    for chunk in range(n):
        start, stop = part(n, chunk, mine.size, itemsize)
        at, length = start * itemsize, stop - start
        if length == 0:
            break
        sums_at = _array_of(chunk, rank, n, mine_at, slots, nbytes) + at
        for hop in range(1, n):
            into_at = _array_of((chunk + hop) % n, rank, n, mine_at, slots, nbytes) + at
            into = words_at(into_at, length, mine)
            combine_any(into, words_at(sums_at, length, mine), op, form)
            sums_at = into_at
        if divisor > 1:
            divide_any(words_at(sums_at, length, mine), divisor, form)
        if sums_at != mine_at + at:
            copy_bytes(mine_at + at, sums_at, length * itemsize)


@compiled
def _array_of(peer: int, rank: int, size: int, mine_at: int, slots: int, nbytes: int) -> int:
    """Where a rank's array lies."""
    return mine_at if peer == rank else slots + ((rank - peer) % size - 1) * nbytes


@compiled
def _go_out(
    right: int,
    row: np.ndarray,
    headers_at: int,
    mine_at: int,
    nbytes: int,
    vectors: np.ndarray,
    vectors_at: int,
    codes: np.ndarray,
) -> int:
    """Send once on a connection: the bytes, or minus an outcome."""
    missing, rest = HEADER_BYTES - row[_OUT_HEADER], nbytes - row[_OUT_AT]
    if missing + rest == 0:
        return 0
    vectors[0, 0], vectors[0, 1] = headers_at + row[_OUT_HEADER], missing
    vectors[1, 0], vectors[1, 1] = mine_at + row[_OUT_AT], rest
    first = 0 if missing else 1
    sent = writev(right, vectors_at + first * ROW_BYTES, 2 - first)
    if sent < 0:
        code = last_error(codes)
        return 0 if code == AGAIN else -RIGHT_FAILED - code
    row[_OUT_HEADER] += min(sent, missing)
    row[_OUT_AT] += sent - min(sent, missing)
    return sent  # type: ignore[no-any-return]


@compiled
def _come_in(
    left: int,
    row: np.ndarray,
    headers: np.ndarray,
    headers_at: int,
    hop: int,
    slot: int,
    nbytes: int,
    vectors: np.ndarray,
    vectors_at: int,
    codes: np.ndarray,
) -> int:
    """Receive once on a connection: the bytes, or minus an outcome."""
    missing, rest = HEADER_BYTES - row[_IN_HEADER], nbytes - row[_IN_AT]
    if missing + rest == 0:
        return 0
    vectors[0, 0] = headers_at + (1 + hop) * HEADER_BYTES + row[_IN_HEADER]
    vectors[0, 1] = missing
    vectors[1, 0], vectors[1, 1] = slot + row[_IN_AT], rest
    first = 0 if missing else 1
    got = readv(left, vectors_at + first * ROW_BYTES, 2 - first)
    if got == 0:
        return -CLOSED
    if got < 0:
        code = last_error(codes)
        return 0 if code == AGAIN else -LEFT_FAILED - code
    row[_IN_HEADER] += min(got, missing)
    row[_IN_AT] += got - min(got, missing)
    if missing > 0 and row[_IN_HEADER] == HEADER_BYTES:
        for i in range(HEADER_BYTES):
            if headers[1 + hop, i] != headers[0, i]:
                return -UNEXPECTED
    return got  # type: ignore[no-any-return]


@compiled
def _sleep(
    lefts: np.ndarray,
    rights: np.ndarray,
    state: np.ndarray,
    total: int,
    polled: np.ndarray,
    polled_at: int,
) -> bool:
    """Sleep until something can come in or go out; False after a slice of waiting in vain."""
    count = 0
    for hop in range(lefts.size):
        if state[hop, _IN_HEADER] + state[hop, _IN_AT] < total:
            polled[count, 0], polled[count, 1] = lefts[hop], _POLLIN
            count += 1
        if state[hop, _OUT_HEADER] + state[hop, _OUT_AT] < total:
            polled[count, 0], polled[count, 1] = rights[hop], _POLLOUT
            count += 1
    return poll_slice(polled_at, count)


@compiled
def exchange(
    mine: np.ndarray,
    mine_at: int,
    op: int,
    form: int,
    divisor: int,
    rank: int,
    rights: np.ndarray,
    lefts: np.ndarray,
    state: np.ndarray,
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
    """Go on with the allreduce of ``mine``, which lies at ``mine_at``: hop * HOP + outcome.

    Outcomes and arguments are those of
    :func:`~trainer.collective.transports.tcp_ring.circulate`; ``state`` has a row
    a hop, zeros at first. At address ``slots`` there is room for the other
    ranks' arrays.
    """
    nbytes, hops = mine.size * mine.itemsize, lefts.size
    total = HEADER_BYTES + nbytes
    idle_since = 0
    while True:
        moved, left_over = 0, 0
        for hop in range(hops):
            row = state[hop]
            sent = _go_out(
                rights[hop], row, headers_at, mine_at, nbytes, vectors, vectors_at, codes
            )
            if sent < 0:
                return hop * HOP - sent
            moved += sent
            left_over += 2 * total - row[_OUT_HEADER] - row[_OUT_AT]
        for hop in range(hops):
            row, slot = state[hop], slots + hop * nbytes
            got = _come_in(
                lefts[hop], row, headers, headers_at, hop, slot, nbytes, vectors, vectors_at, codes
            )
            if got < 0:
                return hop * HOP - got
            moved += got
            left_over -= row[_IN_HEADER] + row[_IN_AT]
        if left_over == 0:
            _combine(mine, mine_at, slots, op, form, divisor, rank, hops + 1)
            return DONE
        if moved > 0:
            idle_since = 0
            continue
        if idle_since == 0:
            idle_since = now_ns(habits, timespec)
        elif not stays_awake(idle_since, habits, timespec):
            if not _sleep(lefts, rights, state, total, polled, polled_at):
                return IDLE
            idle_since = 0
