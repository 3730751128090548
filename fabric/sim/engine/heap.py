"""The event queue: one binary heap of (time, order | kind | handle) word pairs."""

from __future__ import annotations

from fabric.sim.engine.jit import jit
from fabric.sim.engine.layout import (
    EVENT_KIND_SHIFT,
    EVENT_ORDER_MASK,
    EVENT_ORDER_SHIFT,
    HEAP,
    HEAP_SIZE,
    ORDER,
    Memory,
)


@jit
def push(m: Memory, time: int, kind: int, handle: int) -> None:
    """Schedule an event. The event loop keeps room for it."""
    order = (m[ORDER] + 1) & EVENT_ORDER_MASK
    m[ORDER] = order
    heap, hole = m[HEAP], m[HEAP_SIZE]
    m[HEAP_SIZE] = hole + 1
    # The event is the newest, so that among equal times it stays behind.
    while hole > 0:
        parent = (hole - 1) >> 1
        if m[heap + 2 * parent] <= time:
            break
        m[heap + 2 * hole] = m[heap + 2 * parent]
        m[heap + 2 * hole + 1] = m[heap + 2 * parent + 1]
        hole = parent
    m[heap + 2 * hole] = time
    m[heap + 2 * hole + 1] = order << EVENT_ORDER_SHIFT | kind << EVENT_KIND_SHIFT | handle


@jit
def drop_first(m: Memory) -> None:
    """Remove the first event, the one at ``m[HEAP]``.

    The hole sinks to the bottom, always to the earlier child, and the last event
    rises from there: half the comparisons, and none that a processor mispredicts
    (Wegener, Theoretical Computer Science 118, 1993).
    """
    heap = m[HEAP]
    size = m[HEAP_SIZE] - 1
    m[HEAP_SIZE] = size
    hole, child = 0, 2
    while child < size:
        at = heap + 2 * child
        left, right = m[at - 2], m[at]
        left_first = (left < right) | ((left == right) & (m[at - 1] < m[at + 1]))
        child -= left_first
        at = heap + 2 * child
        m[heap + 2 * hole] = m[at]
        m[heap + 2 * hole + 1] = m[at + 1]
        hole = child
        child = 2 * hole + 2
    time, word = m[heap + 2 * size], m[heap + 2 * size + 1]
    if child == size:
        # The hole has a left child alone, the last event but one.
        at = heap + 2 * (child - 1)
        m[heap + 2 * hole] = m[at]
        m[heap + 2 * hole + 1] = m[at + 1]
        hole = child - 1
    while hole > 0:
        parent = (hole - 1) >> 1
        at = heap + 2 * parent
        if m[at] < time or (m[at] == time and m[at + 1] < word):
            break
        m[heap + 2 * hole] = m[at]
        m[heap + 2 * hole + 1] = m[at + 1]
        hole = parent
    m[heap + 2 * hole] = time
    m[heap + 2 * hole + 1] = word
