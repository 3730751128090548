"""The event queue: a timing wheel of one-nanosecond buckets, first in, first out.

Events of one nanosecond run in the order in which they were scheduled, as in
ns-3, whose queue orders them by (time, number of the event). A bucket is a
linked list, so that scheduling and taking an event costs a few loads and
stores whatever the number of events. ``near`` covers the current slot of time
and the next one; what lies beyond waits in ``far``, one list a slot, and what
lies even beyond that in one more list.
"""

from __future__ import annotations

from fabric.sim.reference.columns import (
    AT,
    NEAR_END,
    NEXT,
    NONE,
    Memory,
)
from fabric.sim.reference.jit import inline, outline

FAR_SLOTS = 1024


@inline
def put_near(m: Memory, node: int, time: int) -> None:
    """Schedule a packet: what is known to arrive before ``near`` ends."""
    m.nodes[node + NEXT] = NONE
    bucket = time & (2 * m.slot_ns - 1)
    if m.near[2 * bucket] < 0:
        m.near[2 * bucket] = node
        m.bits[bucket >> 6] |= 1 << (bucket & 63)
        m.bits[(m.slot_ns >> 5) + (bucket >> 11)] |= 1 << (bucket >> 6 & 31)
    else:
        m.nodes[m.near[2 * bucket + 1] + NEXT] = node
    m.near[2 * bucket + 1] = node


@outline
def put_far(m: Memory, node: int, time: int) -> None:
    """Schedule a timer that lies beyond ``near``."""
    slot_ns = m.slot_ns
    ahead = (time - m.settings[NEAR_END]) // slot_ns
    slot = FAR_SLOTS
    if ahead < FAR_SLOTS - 4:
        slot = (time // slot_ns) & (FAR_SLOTS - 1)
    m.nodes[node + NEXT] = NONE
    if m.far[2 * slot] < 0:
        m.far[2 * slot] = node
    else:
        m.nodes[m.far[2 * slot + 1] + NEXT] = node
    m.far[2 * slot + 1] = node


@inline
def put(m: Memory, node: int, time: int) -> None:
    """Schedule a timer."""
    m.nodes[node + AT] = time
    if time < m.settings[NEAR_END]:
        put_near(m, node, time)
    else:
        put_far(m, node, time)


@outline
def turn(m: Memory) -> None:
    """Let ``near`` cover one more slot; the current one must be empty."""
    slot_ns = m.slot_ns
    start = m.settings[NEAR_END]
    m.settings[NEAR_END] = start + slot_ns
    late = 2 * FAR_SLOTS
    node = m.far[late]
    m.far[late] = NONE
    while node >= 0:
        following = m.nodes[node + NEXT]
        put_far(m, node, m.nodes[node + AT])
        node = following
    slot = 2 * ((start // slot_ns) & (FAR_SLOTS - 1))
    node = m.far[slot]
    m.far[slot] = NONE
    while node >= 0:
        following = m.nodes[node + NEXT]
        put_near(m, node, m.nodes[node + AT])
        node = following
