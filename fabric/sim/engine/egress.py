"""Serving the queues of a port: which class is next, ECN, and the wire."""

from __future__ import annotations

import numpy as np

from fabric.sim.engine.heap import push
from fabric.sim.engine.jit import jit
from fabric.sim.engine.layout import (
    BYTE_TIME_SHIFT,
    DATA_HOPS,
    EVENT_ARRIVE,
    EVENT_KICK,
    FRAME_BYTES,
    FREE,
    FREE_COUNT,
    NEVER,
    NONE,
    PACKET_AT,
    PACKET_IP,
    PACKET_KIND_SHIFT,
    PACKET_NEXT,
    PACKET_READY,
    PACKET_TOS,
    PORT_BUSY,
    PORT_BYTE_TIME,
    PORT_CAPPED,
    PORT_DEPTH,
    PORT_DEPTH_MAX,
    PORT_FLIGHT,
    PORT_KICK,
    PORT_PEER,
    PORT_STRICT,
    PORT_VIRTUAL,
    PORT_WAITING,
    PORT_WEIGHTED,
    QUEUE_BYTE_TIME,
    QUEUE_BYTES,
    QUEUE_COST,
    QUEUE_HEAD,
    QUEUE_KMAX,
    QUEUE_KMIN,
    QUEUE_MARKED,
    QUEUE_OPEN,
    QUEUE_PMAX,
    QUEUE_TAG,
    QUEUE_TAIL,
    QUEUE_TX_BYTES,
    QUEUE_TX_PACKETS,
    RANDOM,
    SEGMENT,
    WIRE_BYTES,
    Memory,
)
from fabric.sim.engine.records import queue_of

ECT_BITS = 3
CONGESTION_EXPERIENCED = 3


@jit
def schedule_kick(m: Memory, p: int, time: int) -> None:
    """Look at port ``p``'s egress at ``time``, unless it is looked at before."""
    if time < m[p + PORT_KICK]:
        m[p + PORT_KICK] = time
        push(m, time, EVENT_KICK, p)


@jit
def take_packet(m: Memory) -> int:
    """A free packet; the loop sees to it that there always is one."""
    k = int(m[FREE])
    m[FREE] = m[k + PACKET_NEXT]
    m[FREE_COUNT] -= 1
    return k


@jit
def free_packet(m: Memory, k: int) -> None:
    """Give a packet back."""
    m[k + PACKET_NEXT] = m[FREE]
    m[FREE] = k
    m[FREE_COUNT] += 1


@jit
def enqueue(m: Memory, p: int, traffic_class: int, k: int, ready: int) -> None:
    """Append packet ``k`` to a queue of port ``p``; it may leave from ``ready`` on."""
    queue = queue_of(p, traffic_class)
    m[k + PACKET_NEXT] = NONE
    m[k + PACKET_READY] = ready
    if m[queue + QUEUE_HEAD] == NONE:
        m[queue + QUEUE_HEAD] = k
        m[p + PORT_WAITING] |= 1 << traffic_class
    else:
        m[m[queue + QUEUE_TAIL] + PACKET_NEXT] = k
    m[queue + QUEUE_TAIL] = k
    frame = m[k + PACKET_IP] + FRAME_BYTES
    m[queue + QUEUE_BYTES] += frame
    depth = m[p + PORT_DEPTH] + frame
    m[p + PORT_DEPTH] = depth
    m[p + PORT_DEPTH_MAX] = max(m[p + PORT_DEPTH_MAX], depth)


@jit
def dequeue(m: Memory, p: int, traffic_class: int) -> int:
    """Remove the first packet of a queue of port ``p``."""
    queue = queue_of(p, traffic_class)
    k = int(m[queue + QUEUE_HEAD])
    following = m[k + PACKET_NEXT]
    m[queue + QUEUE_HEAD] = following
    if following == NONE:
        m[p + PORT_WAITING] &= ~(1 << traffic_class)
    frame = m[k + PACKET_IP] + FRAME_BYTES
    m[queue + QUEUE_BYTES] -= frame
    m[p + PORT_DEPTH] -= frame
    return k


@jit
def class_of_bit(bit: int) -> int:
    """The number of the one bit of eight that is set."""
    return (bit & 0xAA != 0) | (bit & 0xCC != 0) << 1 | (bit & 0xF0 != 0) << 2


@jit
def capped(m: Memory, p: int, now: int) -> tuple[int, int]:
    """Capped classes that may not send yet, as a mask, and when the first of them may."""
    held, opens = 0, NEVER
    left = m[p + PORT_CAPPED]
    while left:
        bit = left & -left
        left ^= bit
        at = m[queue_of(p, class_of_bit(bit)) + QUEUE_OPEN]
        if at > now:
            held |= bit
            opens = min(opens, at)
    return held, opens


@jit
def pick_class(m: Memory, p: int, mask: int) -> int:
    """The traffic class to serve among those of ``mask``, which is not 0.

    Strict classes first, the highest first. Then the ETS class with the
    smallest start tag (start-time fair queueing, Goyal et al., SIGCOMM 1996):
    long-run shares are those of the percents, as with DWRR, and never off by
    more than a packet. Classes with no share get what the others leave
    (IEEE 802.1Qaz).
    """
    if mask & (mask - 1) == 0:
        return class_of_bit(mask)
    strict = mask & m[p + PORT_STRICT]
    if strict:
        for traffic_class in range(7, -1, -1):
            if strict >> traffic_class & 1:
                return traffic_class
    weighted = mask & m[p + PORT_WEIGHTED]
    if weighted == 0:
        weighted = mask
    best, best_tag = NONE, NEVER
    for traffic_class in range(8):
        if weighted >> traffic_class & 1:
            tag = max(m[queue_of(p, traffic_class) + QUEUE_TAG], m[p + PORT_VIRTUAL])
            if tag < best_tag:
                best, best_tag = traffic_class, tag
    return best


@jit
def charge_class(m: Memory, p: int, traffic_class: int, wire_bytes: int) -> None:
    """Count what a class is about to send against its ETS share."""
    if m[p + PORT_STRICT] >> traffic_class & 1:
        return
    queue = queue_of(p, traffic_class)
    tag = max(m[queue + QUEUE_TAG], m[p + PORT_VIRTUAL])
    m[p + PORT_VIRTUAL] = tag
    m[queue + QUEUE_TAG] = tag + wire_bytes * m[queue + QUEUE_COST]


@jit
def draw(m: Memory) -> np.int64:
    """32 random bits (splitmix64, Steele et al., OOPSLA 2014)."""
    state = np.uint64(m[RANDOM]) + np.uint64(0x9E3779B97F4A7C15)
    m[RANDOM] = np.int64(state)
    z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(32))


@jit
def mark(m: Memory, queue: int, k: int) -> None:
    """Mark packet ``k``, just taken from queue ``queue``, by what is left in the queue.

    At dequeue, as sonic-mgmt demands (tests/snappi_tests/ecn/
    test_dequeue_ecn_with_snappi.py: of packets held in a queue, the first to
    leave is marked and the last is not) and as the HPCC simulator does: the
    notification does not wait behind the queue that it reports.
    """
    depth = m[queue + QUEUE_BYTES]
    kmin = m[queue + QUEUE_KMIN]
    if depth <= kmin:
        return
    tos = m[k + PACKET_TOS]
    if tos & ECT_BITS == 0:
        return
    kmax = m[queue + QUEUE_KMAX]
    if depth <= kmax and draw(m) >= m[queue + QUEUE_PMAX] * (depth - kmin) // (kmax - kmin):
        return
    if tos & ECT_BITS != CONGESTION_EXPERIENCED:
        m[k + PACKET_TOS] = tos | CONGESTION_EXPERIENCED
        m[queue + QUEUE_MARKED] += 1


@jit
def transmit(m: Memory, p: int, traffic_class: int, k: int, now: int) -> None:
    """Put packet ``k`` on the wire of port ``p``, which is free."""
    size = m[k + PACKET_IP]
    wire = size + WIRE_BYTES
    end = now + (wire * m[p + PORT_BYTE_TIME] >> BYTE_TIME_SHIFT)
    m[p + PORT_BUSY] = end
    queue = queue_of(p, traffic_class)
    m[queue + QUEUE_TX_PACKETS] += 1
    m[queue + QUEUE_TX_BYTES] += size + FRAME_BYTES
    charge_class(m, p, traffic_class, wire)
    if m[p + PORT_CAPPED] >> traffic_class & 1:
        took = wire * m[queue + QUEUE_BYTE_TIME] >> BYTE_TIME_SHIFT
        m[queue + QUEUE_OPEN] = now + took
    if m[k + PACKET_TOS] >> PACKET_KIND_SHIFT <= SEGMENT:
        m[DATA_HOPS] += 1
    m[k + PACKET_AT] = m[p + PORT_PEER]
    push(m, end + m[p + PORT_FLIGHT], EVENT_ARRIVE, k)
