"""Queue pairs at the sending NIC: who is next, pacing, go-back-N.

A NIC makes a data packet at the moment in which it sends it, so that a pause or
a rate cut takes effect at the next packet. Queue pairs of one traffic class take
turns; ACKs, NAKs and CNPs wait in the class queues of the port and go first
within their class.
"""

from __future__ import annotations

from fabric.sim.engine.dcqcn import count_sent
from fabric.sim.engine.egress import (
    capped,
    dequeue,
    pick_class,
    schedule_kick,
    take_packet,
    transmit,
)
from fabric.sim.engine.heap import push
from fabric.sim.engine.jit import jit
from fabric.sim.engine.layout import (
    DATA,
    EVENT_POST,
    EVENT_RETRANSMIT,
    INGRESS_TX_PACKETS,
    LOG,
    LOG_LOST,
    LOG_ROOM,
    LOG_SIZE,
    LOG_WORDS,
    NEVER,
    NONE,
    PACKET_IP,
    PACKET_KIND_SHIFT,
    PACKET_PSN,
    PACKET_QP,
    PACKET_ROUTE,
    PACKET_TOS,
    PING,
    PONG,
    PORT_ACK_TIMEOUT_ERR,
    PORT_BUSY,
    PORT_PACKET_SEQ_ERR,
    PORT_PAUSED,
    PORT_QP_COUNT,
    PORT_QP_FIRST,
    PORT_QP_TURN,
    PORT_WAITING,
    QP_ACKED,
    QP_CLASS,
    QP_DEADLINE,
    QP_DEADLINE_SET,
    QP_DEPTH,
    QP_FIRST_EXTRA,
    QP_FLOW,
    QP_GAP,
    QP_LAST_PAYLOAD,
    QP_LEFT,
    QP_LIMIT,
    QP_MODE,
    QP_NEXT,
    QP_NEXT_TIME,
    QP_PARTNER,
    QP_PAYLOAD,
    QP_PER_MESSAGE,
    QP_POSTED,
    QP_PRIORITY,
    QP_ROUTE,
    QP_SENT,
    QP_SOURCE,
    QP_STARTS,
    QP_STEP,
    QP_TOS,
    QP_TRANSPORT,
    QP_WORDS,
    RATE_NOW,
    RDMA,
    RETRANSMIT,
    RP_ACTIVE,
    RP_PACED,
    STREAM,
    WIRE_BYTES,
    Memory,
)
from fabric.sim.engine.pointer import floats
from fabric.sim.engine.records import ingress_of
from fabric.sim.engine.tcp import make_segment, set_tcp_limit

# IPv4 20, UDP 8, BTH 12, ICRC 4 (InfiniBand Architecture Specification, annex A17).
DATA_HEADER_BYTES = 44
_PS_BITS_PER_BYTE = 8e12


@jit
def log_message(m: Memory, q: int, duration: int) -> None:
    """Keep the time that one message took."""
    at = m[LOG_SIZE]
    if at == m[LOG_ROOM]:
        m[LOG_LOST] += 1
        return
    m[LOG_SIZE] = at + 1
    entry = m[LOG] + LOG_WORDS * at
    m[entry] = m[q + QP_FLOW]
    m[entry + 1] = duration


@jit
def complete_messages(m: Memory, q: int, acked: int, psn: int, now: int) -> None:
    """The messages of a stream that end from packet ``acked`` on and before ``psn``."""
    per, depth = m[q + QP_PER_MESSAGE], m[q + QP_DEPTH]
    for message in range(acked // per, psn // per):
        log_message(m, q, now - m[m[q + QP_STARTS] + message % depth])
        if m[q + QP_LEFT] > 0:
            push(m, now + m[q + QP_GAP], EVENT_POST, q)


@jit
def wake(m: Memory, q: int, now: int) -> None:
    """Look at the NIC of a queue pair that may be able to send."""
    p = m[q + QP_SOURCE]
    schedule_kick(m, p, max(now, m[p + PORT_BUSY]))


@jit
def _set_limit(m: Memory, q: int) -> None:
    per = m[q + QP_PER_MESSAGE]
    window = (m[q + QP_ACKED] // per + m[q + QP_DEPTH]) * per
    m[q + QP_LIMIT] = min(m[q + QP_POSTED], window)


@jit
def post(m: Memory, q: int, now: int) -> None:
    """The application hands over the next message, or all of them."""
    m[q + QP_LEFT] -= 1
    m[q + QP_POSTED] += m[q + QP_STEP]
    if m[q + QP_MODE] != STREAM:
        m[m[q + QP_STARTS]] = now
    if m[q + QP_TRANSPORT] == RDMA:
        _set_limit(m, q)
    else:
        set_tcp_limit(m, q)
    wake(m, q, now)


@jit
def _make_data(m: Memory, q: int, now: int) -> int:
    """The next data packet of a queue pair; advances its state."""
    psn = m[q + QP_NEXT]
    per = m[q + QP_PER_MESSAGE]
    position = psn % per
    size = DATA_HEADER_BYTES
    size += m[q + QP_LAST_PAYLOAD] if position == per - 1 else m[q + QP_PAYLOAD]
    if position == 0:
        size += m[q + QP_FIRST_EXTRA]
    k = take_packet(m)
    m[k + PACKET_QP] = q
    m[k + PACKET_PSN] = psn
    m[k + PACKET_IP] = size
    m[k + PACKET_TOS] = DATA << PACKET_KIND_SHIFT | m[q + QP_TOS]
    m[k + PACKET_ROUTE] = m[q + QP_ROUTE]
    m[q + QP_NEXT] = psn + 1
    if psn >= m[q + QP_SENT]:
        m[q + QP_SENT] = psn + 1
        if position == 0 and m[q + QP_MODE] == STREAM:
            m[m[q + QP_STARTS] + psn // per % m[q + QP_DEPTH]] = now
    if psn == m[q + QP_ACKED]:
        m[q + QP_DEADLINE] = now + m[RETRANSMIT]
    if m[q + QP_DEADLINE_SET] == 0:
        m[q + QP_DEADLINE_SET] = 1
        push(m, now + m[RETRANSMIT], EVENT_RETRANSMIT, q)
    wire = size + WIRE_BYTES
    if m[q + RP_ACTIVE] or m[q + RP_PACED]:
        m[q + QP_NEXT_TIME] = now + int(wire * _PS_BITS_PER_BYTE / floats(m)[q + RATE_NOW])
    if m[q + RP_ACTIVE]:
        count_sent(m, q, wire)
    m[ingress_of(m[q + QP_SOURCE], m[q + QP_PRIORITY]) + INGRESS_TX_PACKETS] += 1
    return k


@jit
def _scan(m: Memory, p: int, held: int, now: int) -> tuple[int, int, int, int]:
    """What the queue pairs of a NIC could send now, but for those of the classes ``held``.

    A mask of their classes, when the next one that still has to wait may send,
    how many are ready, and the first of those.
    """
    first, count, turn = m[p + PORT_QP_FIRST], m[p + PORT_QP_COUNT], m[p + PORT_QP_TURN]
    mask, later, ready, chosen = 0, NEVER, 0, NONE
    for step in range(count):
        at = turn + step
        if at >= count:
            at -= count
        q = first + QP_WORDS * at
        if m[q + QP_NEXT] >= m[q + QP_LIMIT] or held >> m[q + QP_CLASS] & 1:
            continue
        if m[q + QP_NEXT_TIME] > now:
            later = min(later, m[q + QP_NEXT_TIME])
            continue
        if ready == 0:
            chosen = q
        ready += 1
        mask |= 1 << m[q + QP_CLASS]
    return mask, later, ready, chosen


@jit
def _first_of_class(m: Memory, p: int, traffic_class: int, now: int) -> int:
    """The ready queue pair of this class whose turn is first; there is one."""
    first, count, turn = m[p + PORT_QP_FIRST], m[p + PORT_QP_COUNT], m[p + PORT_QP_TURN]
    q = int(first)
    for step in range(count):
        q = first + QP_WORDS * ((turn + step) % count)
        if (
            m[q + QP_CLASS] == traffic_class
            and m[q + QP_NEXT] < m[q + QP_LIMIT]
            and m[q + QP_NEXT_TIME] <= now
        ):
            break
    return q


@jit
def serve_host(m: Memory, p: int, now: int) -> None:
    """Send the next packet of a NIC, if the wire is free and one may leave."""
    if m[p + PORT_BUSY] > now:
        schedule_kick(m, p, m[p + PORT_BUSY])
        return
    held, opens = capped(m, p, now)
    held |= m[p + PORT_PAUSED]
    control = m[p + PORT_WAITING] & ~held
    mask, later, ready, q = _scan(m, p, held, now)
    later = min(later, opens)
    if control | mask == 0:
        if later < NEVER:
            schedule_kick(m, p, later)
        return
    traffic_class = pick_class(m, p, control | mask)
    if control >> traffic_class & 1:
        k = dequeue(m, p, traffic_class)
    else:
        if m[q + QP_CLASS] != traffic_class:
            q = _first_of_class(m, p, traffic_class, now)
        k = _make_data(m, q, now) if m[q + QP_TRANSPORT] == RDMA else make_segment(m, q, now)
        ready -= 1
        m[p + PORT_QP_TURN] = ((q - m[p + PORT_QP_FIRST]) // QP_WORDS + 1) % m[p + PORT_QP_COUNT]
        if m[q + QP_NEXT] < m[q + QP_LIMIT]:
            later = min(later, m[q + QP_NEXT_TIME])
    transmit(m, p, traffic_class, k, now)
    if ready > 0 or m[p + PORT_WAITING] & ~held:
        later = now
    if later < NEVER:
        schedule_kick(m, p, max(later, m[p + PORT_BUSY]))


@jit
def _acknowledge(m: Memory, q: int, psn: int, now: int) -> None:
    """Everything before ``psn`` has arrived."""
    acked = m[q + QP_ACKED]
    if psn <= acked:
        return
    m[q + QP_ACKED] = psn
    m[q + QP_NEXT] = max(psn, m[q + QP_NEXT])
    m[q + QP_DEADLINE] = now + m[RETRANSMIT]
    if m[q + QP_MODE] == STREAM:
        complete_messages(m, q, acked, psn, now)
    _set_limit(m, q)
    wake(m, q, now)


@jit
def on_ack(m: Memory, q: int, psn: int, now: int) -> None:
    """An ACK has arrived: ``psn`` is the next packet that the receiver expects."""
    _acknowledge(m, q, psn, now)


@jit
def on_nak(m: Memory, q: int, psn: int, now: int) -> None:
    """A NAK for a sequence error: go back to ``psn`` (go-back-N)."""
    m[m[q + QP_SOURCE] + PORT_PACKET_SEQ_ERR] += 1
    _acknowledge(m, q, psn, now)
    if psn == m[q + QP_ACKED]:
        m[q + QP_NEXT] = psn
        wake(m, q, now)


@jit
def on_retransmit_timer(m: Memory, q: int, now: int) -> None:
    """Send again from the first packet without an ACK, if none came in time."""
    if m[q + QP_ACKED] == m[q + QP_SENT]:
        m[q + QP_DEADLINE_SET] = 0
        return
    if m[q + QP_DEADLINE] > now:
        push(m, m[q + QP_DEADLINE], EVENT_RETRANSMIT, q)
        return
    m[m[q + QP_SOURCE] + PORT_ACK_TIMEOUT_ERR] += 1
    m[q + QP_NEXT] = m[q + QP_ACKED]
    m[q + QP_DEADLINE] = now + m[RETRANSMIT]
    push(m, m[q + QP_DEADLINE], EVENT_RETRANSMIT, q)
    wake(m, q, now)


@jit
def on_ping_message(m: Memory, q: int, now: int) -> None:
    """A whole message of a ping, or of its answer, has arrived at the other end."""
    partner = m[q + QP_PARTNER]
    if m[q + QP_MODE] == PING:
        post(m, partner, now)
    elif m[q + QP_MODE] == PONG:
        log_message(m, q, (now - m[m[partner + QP_STARTS]]) >> 1)
        if m[partner + QP_LEFT] > 0:
            push(m, now + m[partner + QP_GAP], EVENT_POST, partner)
