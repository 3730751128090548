"""What a switch does with a packet: MTU, class, admission, ECN, forwarding.

Store and forward, output queues, one shared buffer. A packet counts against its
ingress (lossless priorities) or the shared pool (the others) from its last
bit's arrival until its first bit leaves.
"""

from __future__ import annotations

from fabric.sim.engine.egress import (
    capped,
    class_of_bit,
    dequeue,
    enqueue,
    free_packet,
    mark,
    pick_class,
    schedule_kick,
    transmit,
)
from fabric.sim.engine.jit import jit
from fabric.sim.engine.layout import (
    FRAME_BYTES,
    INGRESS_ALPHA,
    INGRESS_BYTES,
    INGRESS_DISCARDS,
    INGRESS_HEADROOM_USED,
    INGRESS_MAX,
    INGRESS_MTU,
    INGRESS_PAUSING,
    INGRESS_PFC,
    INGRESS_PORT,
    INGRESS_PRIORITY,
    INGRESS_RX_PACKETS,
    INGRESS_SIZE,
    INGRESS_XOFF,
    INGRESS_XON,
    LINK_IS_DOWN,
    NEVER,
    NODE_POOL,
    NODE_USED,
    NONE,
    PACKET_AT,
    PACKET_IP,
    PACKET_READY,
    PACKET_ROUTE,
    PACKET_TOS,
    PORT_BUSY,
    PORT_CLASSES,
    PORT_DISCARD,
    PORT_LATENCY,
    PORT_LOST,
    PORT_MTU,
    PORT_NODE,
    PORT_PAUSED,
    PORT_PRIORITY_OF_DSCP,
    PORT_REFUSE,
    PORT_RX_BYTES,
    PORT_RX_DISCARDS,
    PORT_RX_MTU_DROPS,
    PORT_TX_DISCARDS,
    PORT_WAITING,
    QUEUE_BYTES,
    QUEUE_DROPS,
    QUEUE_HEAD,
    Memory,
)
from fabric.sim.engine.pause import send_xoff, send_xon
from fabric.sim.engine.records import ingress_of, queue_of


@jit
def _refuse(m: Memory, p: int, ingress: int, k: int) -> bool:
    """Drop a packet that came over a dead link, or for a queue in a storm."""
    if m[p + PORT_REFUSE] & LINK_IS_DOWN:
        m[p + PORT_LOST] += 1
    elif m[p + PORT_REFUSE] >> m[ingress + INGRESS_PRIORITY] & 1:
        m[p + PORT_RX_DISCARDS] += 1
        m[ingress + INGRESS_DISCARDS] += 1
    else:
        return False
    free_packet(m, k)
    return True


@jit
def count_arrival(m: Memory, p: int, k: int) -> int:
    """Count packet ``k`` at port ``p``: its ingress, or NONE where it goes no further."""
    size = m[k + PACKET_IP]
    ingress = ingress_of(p, m[p + PORT_PRIORITY_OF_DSCP + (m[k + PACKET_TOS] >> 2 & 63)])
    if m[p + PORT_REFUSE] and _refuse(m, p, ingress, k):
        return NONE
    if size > m[p + PORT_MTU] or size > m[ingress + INGRESS_MTU]:
        m[p + PORT_RX_MTU_DROPS] += 1
        m[p + PORT_RX_DISCARDS] += 1
        free_packet(m, k)
        return NONE
    m[p + PORT_RX_BYTES] += size + FRAME_BYTES
    m[ingress + INGRESS_RX_PACKETS] += 1
    return ingress


@jit
def _dynamic_xoff(m: Memory, ingress: int) -> int:
    """``alpha`` times the free shared buffer (Choudhury & Hahne, ToN 1998)."""
    node = m[m[ingress + INGRESS_PORT] + PORT_NODE]
    free = int(m[node + NODE_POOL] - m[node + NODE_USED])
    return max(0, int(m[ingress + INGRESS_ALPHA]) * free >> 10)


@jit
def _admit_lossless(m: Memory, ingress: int, frame: int, now: int) -> bool:
    """Take a packet into a lossless priority's buffer; send XOFF where it is due.

    With dynamic thresholds what comes in while the peer is being paused uses
    the headroom, as in the HPCC simulator's switch-mmu.cc.
    """
    held = m[ingress + INGRESS_BYTES] + frame
    if m[ingress + INGRESS_ALPHA]:
        xoff = _dynamic_xoff(m, ingress)
        headroom = m[ingress + INGRESS_SIZE] - m[ingress + INGRESS_XOFF]
        if held > xoff:
            if m[ingress + INGRESS_HEADROOM_USED] + frame > headroom:
                return False
            m[ingress + INGRESS_HEADROOM_USED] += frame
        else:
            m[m[m[ingress + INGRESS_PORT] + PORT_NODE] + NODE_USED] += frame
    else:
        xoff = m[ingress + INGRESS_XOFF]
        if held > m[ingress + INGRESS_SIZE]:
            return False
    m[ingress + INGRESS_BYTES] = held
    m[ingress + INGRESS_MAX] = max(m[ingress + INGRESS_MAX], held)
    if held > xoff and m[ingress + INGRESS_PFC] and not m[ingress + INGRESS_PAUSING]:
        send_xoff(m, ingress, now)
    return True


@jit
def _drop_at_egress(m: Memory, p: int, traffic_class: int, k: int) -> None:
    m[p + PORT_TX_DISCARDS] += 1
    m[queue_of(p, traffic_class) + QUEUE_DROPS] += 1
    free_packet(m, k)


@jit
def _release_lossless(m: Memory, ingress: int, frame: int, now: int) -> None:
    m[ingress + INGRESS_BYTES] -= frame
    xon = m[ingress + INGRESS_XON]
    if m[ingress + INGRESS_ALPHA]:
        from_headroom = min(frame, m[ingress + INGRESS_HEADROOM_USED])
        m[ingress + INGRESS_HEADROOM_USED] -= from_headroom
        m[m[m[ingress + INGRESS_PORT] + PORT_NODE] + NODE_USED] -= frame - from_headroom
        xon += _dynamic_xoff(m, ingress) - m[ingress + INGRESS_XOFF]
        if m[ingress + INGRESS_HEADROOM_USED]:
            return
        xon = max(xon, 1)
    if m[ingress + INGRESS_PAUSING] and m[ingress + INGRESS_BYTES] < xon:
        send_xon(m, ingress, now)


@jit
def arrive_at_switch(m: Memory, p: int, k: int, now: int) -> None:
    """The last bit of packet ``k`` has come in at port ``p``."""
    ingress = count_arrival(m, p, k)
    if ingress == NONE:
        return
    route = m[k + PACKET_ROUTE]
    m[k + PACKET_ROUTE] = route + 1
    out = m[route]
    traffic_class = m[out + PORT_CLASSES] >> 8 * m[ingress + INGRESS_PRIORITY] & 7
    frame = m[k + PACKET_IP] + FRAME_BYTES
    if m[out + PORT_DISCARD] >> traffic_class & 1:
        _drop_at_egress(m, out, traffic_class, k)
        return
    if m[ingress + INGRESS_SIZE]:
        if not _admit_lossless(m, ingress, frame, now):
            m[p + PORT_RX_DISCARDS] += 1
            m[ingress + INGRESS_DISCARDS] += 1
            free_packet(m, k)
            return
        m[k + PACKET_AT] = ingress
    else:
        # Choudhury & Hahne with alpha 1: a queue may hold what is still free.
        switch = m[p + PORT_NODE]
        free = m[switch + NODE_POOL] - m[switch + NODE_USED]
        queue = queue_of(out, traffic_class)
        if m[queue + QUEUE_BYTES] + frame > free:
            _drop_at_egress(m, out, traffic_class, k)
            return
        m[switch + NODE_USED] += frame
        m[k + PACKET_AT] = NONE
    ready = now + m[p + PORT_LATENCY]
    enqueue(m, out, traffic_class, k, ready)
    schedule_kick(m, out, max(ready, m[out + PORT_BUSY]))


@jit
def serve_switch(m: Memory, p: int, now: int) -> None:
    """Send the next packet of port ``p``, if the wire is free and one may leave."""
    if m[p + PORT_BUSY] > now:
        schedule_kick(m, p, m[p + PORT_BUSY])
        return
    held, later = capped(m, p, now)
    waiting = m[p + PORT_WAITING] & ~m[p + PORT_PAUSED] & ~held
    mask = waiting
    left = waiting
    while left:
        bit = left & -left
        left ^= bit
        ready = m[m[queue_of(p, class_of_bit(bit)) + QUEUE_HEAD] + PACKET_READY]
        if ready > now:
            mask ^= bit
            later = min(later, ready)
    if mask == 0:
        if later < NEVER:
            schedule_kick(m, p, later)
        return
    traffic_class = pick_class(m, p, mask)
    k = dequeue(m, p, traffic_class)
    mark(m, queue_of(p, traffic_class), k)
    ingress = m[k + PACKET_AT]
    frame = m[k + PACKET_IP] + FRAME_BYTES
    transmit(m, p, traffic_class, k, now)
    _release(m, p, ingress, frame, now)
    if m[p + PORT_WAITING] & ~m[p + PORT_PAUSED]:
        schedule_kick(m, p, m[p + PORT_BUSY])


@jit
def _release(m: Memory, p: int, ingress: int, frame: int, now: int) -> None:
    """A packet that came in at ``ingress`` (or NONE) has left port ``p``'s queue."""
    if ingress == NONE:
        m[m[p + PORT_NODE] + NODE_USED] -= frame
    else:
        _release_lossless(m, ingress, frame, now)


@jit
def drop_queue(m: Memory, p: int, traffic_class: int, now: int) -> None:
    """Drop everything that waits in one queue of port ``p``."""
    while m[p + PORT_WAITING] >> traffic_class & 1:
        k = dequeue(m, p, traffic_class)
        if m[p + PORT_NODE] != NONE:
            _release(m, p, m[k + PACKET_AT], m[k + PACKET_IP] + FRAME_BYTES, now)
        _drop_at_egress(m, p, traffic_class, k)
