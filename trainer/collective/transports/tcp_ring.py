"""A ring allreduce over sockets as one compiled loop, without the GIL.

What a rank sends is one stream of bytes, and so is what it receives. With n
ranks the array is cut into n chunks. Item i of 2n-1 is chunk ``rank - i``: our
own chunk goes out first, items 1 to n-1 come in and are combined with ours,
the later ones come in finished and are stored. Whatever has come in of an item
may go out at once, as the next rank's. So there are no segments to wait for,
and bytes are combined while they still lie in the core's cache.

Every channel carries its own part of each chunk.
"""

from __future__ import annotations

import select

import numpy as np

from trainer.collective.direct_kernels import copy_bytes, part, words_at
from trainer.collective.kernels import combine_any, compiled, divide_any
from trainer.collective.shared_words import now_ns
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

# What is combined at once: received, it still lies in the core's own cache.
# Smaller pieces cost more calls to the kernel than they save.
_PIECE_BYTES = 512 << 10
# A piece, and room for what is left of an element.
SCRATCH_BYTES = _PIECE_BYTES + 64
_FINISHED = -1
_POLLIN, _POLLOUT = select.POLLIN, select.POLLOUT
# Columns of ``state``, a row a channel: the item that comes in and how much of it has been
# used, bytes that wait in the scratch memory for the rest of their element, bytes of the
# header that have come; the item that goes out, how much of it and of the header has gone.
IN_ITEM, IN_AT, HELD, IN_HEADER, OUT_ITEM, OUT_AT, OUT_HEADER = range(7)
STATE_COLUMNS = 7


@compiled
def _span(
    item: int, rank: int, size: int, channel: int, channels: int, count: int, itemsize: int
) -> tuple[int, int]:
    """Where a channel's part of an item begins and how long it is, in bytes."""
    start, stop = part(size, (rank - item) % size, count, itemsize)
    a, b = part(channels, channel, stop - start, itemsize)
    return (start + a) * itemsize, (b - a) * itemsize


@compiled
def _come_in(  # noqa: PLR0912 (one step of a loop, in one compiled function)
    like: np.ndarray,
    base: int,
    count: int,
    op: int,
    form: int,
    divisor: int,
    rank: int,
    size: int,
    channel: int,
    lefts: np.ndarray,
    row: np.ndarray,
    headers: np.ndarray,
    headers_at: int,
    scratch: int,
    vectors: np.ndarray,
    vectors_at: int,
    codes: np.ndarray,
) -> int:
    """Receive once on a channel and use what came: the bytes, or minus an outcome."""
    itemsize, channels, items = like.itemsize, lefts.size, 2 * size - 1
    offset, length = _span(row[IN_ITEM], rank, size, channel, channels, count, itemsize)
    while row[IN_ITEM] < items and row[IN_AT] == length:
        row[IN_ITEM] += 1
        row[IN_AT] = 0
        offset, length = _span(row[IN_ITEM], rank, size, channel, channels, count, itemsize)
    missing = HEADER_BYTES - row[IN_HEADER]
    if row[IN_ITEM] == items and missing == 0:
        return _FINISHED
    summed = row[IN_ITEM] < size
    vectors[0, 0] = headers_at + (1 + channel) * HEADER_BYTES + row[IN_HEADER]
    vectors[0, 1] = missing
    if row[IN_ITEM] == items:
        vectors[1, 1] = 0
    elif summed:
        vectors[1, 0] = scratch + row[HELD]
        vectors[1, 1] = min(_PIECE_BYTES, length - row[IN_AT]) - row[HELD]
    else:
        vectors[1, 0] = base + offset + row[IN_AT]
        vectors[1, 1] = length - row[IN_AT]
    first = 0 if missing else 1
    got = readv(lefts[channel], vectors_at + first * ROW_BYTES, 2 - first)
    if got == 0:
        return -CLOSED
    if got < 0:
        code = last_error(codes)
        return 0 if code == AGAIN else -LEFT_FAILED - code
    data = got - min(got, missing)
    if missing:
        row[IN_HEADER] += got - data
        if row[IN_HEADER] == HEADER_BYTES:
            for i in range(HEADER_BYTES):
                if headers[1 + channel, i] != headers[0, i]:
                    return -UNEXPECTED
    if not summed:
        row[IN_AT] += data
    elif data > 0:
        held = row[HELD] + data
        whole = held // itemsize
        mine = words_at(base + offset + row[IN_AT], whole, like)
        combine_any(mine, words_at(scratch, whole, like), op, form)
        if divisor > 1 and row[IN_ITEM] == size - 1:
            divide_any(mine, divisor, form)
        row[IN_AT] += whole * itemsize
        row[HELD] = held - whole * itemsize
        if row[HELD] > 0 and whole > 0:
            copy_bytes(scratch, scratch + whole * itemsize, row[HELD])
    return got  # type: ignore[no-any-return]


@compiled
def _go_out(
    base: int,
    count: int,
    itemsize: int,
    rank: int,
    size: int,
    channel: int,
    rights: np.ndarray,
    row: np.ndarray,
    headers_at: int,
    vectors: np.ndarray,
    vectors_at: int,
    codes: np.ndarray,
) -> int:
    """Send once on a channel what may go: the bytes, or minus an outcome."""
    channels, items = rights.size, 2 * size - 2
    offset, length = _span(row[OUT_ITEM], rank, size, channel, channels, count, itemsize)
    while row[OUT_ITEM] < items and row[OUT_AT] == length:
        row[OUT_ITEM] += 1
        row[OUT_AT] = 0
        offset, length = _span(row[OUT_ITEM], rank, size, channel, channels, count, itemsize)
    missing = HEADER_BYTES - row[OUT_HEADER]
    ready = 0
    if row[OUT_ITEM] < items:
        if row[OUT_ITEM] == 0 or row[OUT_ITEM] < row[IN_ITEM]:
            ready = length - row[OUT_AT]
        elif row[OUT_ITEM] == row[IN_ITEM]:
            ready = row[IN_AT] - row[OUT_AT]
    elif missing == 0:
        return _FINISHED
    if ready == 0 and missing == 0:
        return 0
    vectors[0, 0] = headers_at + row[OUT_HEADER]
    vectors[0, 1] = missing
    vectors[1, 0] = base + offset + row[OUT_AT]
    vectors[1, 1] = ready
    first = 0 if missing else 1
    sent = writev(rights[channel], vectors_at + first * ROW_BYTES, 2 - first)
    if sent < 0:
        code = last_error(codes)
        return 0 if code == AGAIN else -RIGHT_FAILED - code
    row[OUT_HEADER] += min(sent, missing)
    row[OUT_AT] += sent - min(sent, missing)
    return sent  # type: ignore[no-any-return]


@compiled
def _sleep(
    size: int,
    lefts: np.ndarray,
    rights: np.ndarray,
    state: np.ndarray,
    polled: np.ndarray,
    polled_at: int,
) -> bool:
    """Sleep until something can come in or go out; False after a slice of waiting in vain."""
    count = 0
    for channel in range(lefts.size):
        row = state[channel]
        if row[IN_ITEM] < 2 * size - 1 or row[IN_HEADER] < HEADER_BYTES:
            polled[count, 0], polled[count, 1] = lefts[channel], _POLLIN
            count += 1
        ready = row[OUT_ITEM] == 0 or row[OUT_ITEM] < row[IN_ITEM]
        ready = ready or (row[OUT_ITEM] == row[IN_ITEM] and row[OUT_AT] < row[IN_AT])
        ready = ready and row[OUT_ITEM] < 2 * size - 2
        if ready or row[OUT_HEADER] < HEADER_BYTES:
            polled[count, 0], polled[count, 1] = rights[channel], _POLLOUT
            count += 1
    # struct pollfd: the upper half of the second word is the kernel's answer.
    return poll_slice(polled_at, count)


@compiled
def circulate(
    like: np.ndarray,
    base: int,
    count: int,
    op: int,
    form: int,
    divisor: int,
    rank: int,
    size: int,
    lefts: np.ndarray,
    rights: np.ndarray,
    state: np.ndarray,
    headers: np.ndarray,
    headers_at: int,
    scratch_at: int,
    vectors: np.ndarray,
    vectors_at: int,
    polled: np.ndarray,
    polled_at: int,
    codes: np.ndarray,
    habits: np.ndarray,
    timespec: int,
) -> int:
    """Go on with the allreduce of ``count`` elements at address ``base``; how far it has come.

    DONE, or IDLE when nothing has moved for a slice of sleep: call it again with
    the same ``state`` (zeros at first, IN_ITEM 1). CLOSED and UNEXPECTED (a
    header that is not ours) end it, as do errors of sockets. ``like`` is an
    empty array of the elements' type. ``headers`` (1 + channels, 40) has the
    header that everybody sends, and room for those that come. ``scratch_at``
    has SCRATCH_BYTES a channel, ``polled`` (2 * channels, 2; int32) room.
    """
    idle_since = 0
    while True:
        moved = 0
        finished = 0
        for channel in range(lefts.size):
            row = state[channel]
            scratch = scratch_at + channel * SCRATCH_BYTES
            outcome = _come_in(
                like, base, count, op, form, divisor, rank, size, channel, lefts, row,
                headers, headers_at, scratch, vectors, vectors_at, codes,
            )  # fmt: skip
            if outcome < _FINISHED:
                return -outcome
            moved += max(0, outcome)
            finished += outcome == _FINISHED
            outcome = _go_out(
                base, count, like.itemsize, rank, size, channel, rights, row,
                headers_at, vectors, vectors_at, codes,
            )  # fmt: skip
            if outcome < _FINISHED:
                return -outcome
            moved += max(0, outcome)
            finished += outcome == _FINISHED
        if finished == 2 * lefts.size:
            return DONE
        if moved > 0:
            idle_since = 0
            continue
        if idle_since == 0:
            idle_since = now_ns(habits, timespec)
        elif not stays_awake(idle_since, habits, timespec):
            if not _sleep(size, lefts, rights, state, polled, polled_at):
                return IDLE
            idle_since = 0
