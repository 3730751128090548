"""The loop that moves bytes through sockets, compiled, without the GIL.

Buffers are rows of (address, length), which is the layout of struct iovec, so
the kernel reads them as they are. Sockets do not block.
"""

from __future__ import annotations

import errno

import numpy as np
from numba.core import types

from trainer.collective.direct_kernels import words_at
from trainer.collective.kernels import compiled, external
from trainer.collective.shared_words import SLICE_NS, give_way, now_ns, sched_yield

DONE, IDLE, CLOSED, UNEXPECTED = 0, 1, 2, 3
# What failed, with errno added.
LEFT_FAILED, RIGHT_FAILED = 10_000, 20_000
# What goes before the data: its length and a stamp.
HEADER_BYTES = 40
# writev(2) takes at most IOV_MAX buffers; a few are enough to fill a socket.
_GATHER = 16
AGAIN = errno.EAGAIN
ROW_BYTES = 16
_SPIN_NS = 10_000

_long = types.int64
readv = external("readv", _long, types.int32, _long, types.int32)
writev = external("writev", _long, types.int32, _long, types.int32)
_poll = external("poll", types.int32, types.int64, types.uint64, types.int32)
_errno_location = external("__errno_location", _long)


@compiled
def last_error(like: np.ndarray) -> int:
    """The C library's errno; ``like`` is an int32 array, for its type."""
    return words_at(_errno_location(), 1, like)[0]  # type: ignore[no-any-return]


@compiled
def poll_slice(polled_at: int, count: int) -> bool:
    """Sleep until one of ``count`` structs pollfd is ready; False after a slice in vain."""
    return _poll(polled_at, count, SLICE_NS // 1_000_000) > 0  # type: ignore[no-any-return]


@compiled
def stays_awake(idle_since: int, habits: np.ndarray, timespec: int) -> bool:
    """Ask again at once, or let others run for a moment; False when we had better sleep.

    Where every rank has a core it yields even if strangers use it, too: being
    woken by a packet costs more than they do.
    """
    if habits[0] == 0:
        return give_way(idle_since, habits, timespec)
    idle_ns = now_ns(habits, timespec) - idle_since
    if idle_ns > habits[1]:
        return False
    if idle_ns > _SPIN_NS:
        sched_yield()
    return True


@compiled
def _take_off(rows: np.ndarray, first: int, last: int, count: int) -> int:
    """Take ``count`` bytes off rows ``first:last``; returns the first row that is left."""
    while count > 0:
        part = min(count, rows[first, 1])
        rows[first, 0] += part
        rows[first, 1] -= part
        count -= part
        if rows[first, 1] == 0:
            first += 1
    while first < last and rows[first, 1] == 0:
        first += 1
    return first


@compiled
def push(
    rights: np.ndarray, rows: np.ndarray, ends: np.ndarray, rows_at: int, codes: np.ndarray
) -> int:
    """Give the kernel what it takes of every channel's rows; the bytes, or minus an errno.

    ``rows`` (channels, room, 2) at address ``rows_at``, ``ends`` (channels, 2)
    say which are in use. ``codes`` is an empty int32 array (for its type).
    """
    moved = 0
    for channel in range(rights.size):
        first, last = ends[channel, 0], ends[channel, 1]
        if first == last:
            continue
        at = rows_at + (channel * rows.shape[1] + first) * ROW_BYTES
        sent = writev(rights[channel], at, min(_GATHER, last - first))
        if sent < 0:
            code = last_error(codes)
            if code != AGAIN:
                return -code
            continue
        moved += sent
        first = _take_off(rows[channel], first, last, sent)
        ends[channel, 0] = first
        if first == last:
            ends[channel, 0] = ends[channel, 1] = 0
    return moved


@compiled
def pump(  # noqa: PLR0912 (one loop, in one compiled function)
    left: int,
    wanted: np.ndarray,
    wanted_at: int,
    header: np.ndarray,
    length: int,
    rights: np.ndarray,
    rows: np.ndarray,
    ends: np.ndarray,
    rows_at: int,
    codes: np.ndarray,
    habits: np.ndarray,
    timespec: int,
) -> int:
    """Receive header and data (two rows at ``wanted_at``) while sending what is queued.

    UNEXPECTED when the header (uint64) speaks of another length; IDLE when
    nothing has moved for as long as ``habits`` say to be patient.
    """
    idle_since = 0
    while True:
        if wanted[0, 1] == 0:
            if header[0] != length:
                return UNEXPECTED
            if wanted[1, 1] == 0:
                return DONE
        first = 0 if wanted[0, 1] else 1
        moved = 0
        got = readv(left, wanted_at + first * ROW_BYTES, 2 - first)
        if got == 0:
            return CLOSED
        if got < 0:
            code = last_error(codes)
            if code != AGAIN:
                return LEFT_FAILED + code
        else:
            _take_off(wanted, first, 2, got)
            moved = got
        if moved == 0:
            # Receiving comes first: what is sent sooner only waits in a buffer.
            moved = push(rights, rows, ends, rows_at, codes)
            if moved < 0:
                return RIGHT_FAILED - moved
        if moved:
            idle_since = 0
            continue
        if idle_since == 0:
            idle_since = now_ns(habits, timespec)
        elif not stays_awake(idle_since, habits, timespec):
            return IDLE
