"""TCP at the sender: what may leave, and what is sent again.

A TCP flow is a byte stream cut into full segments, with one shorter segment at a
message's end. It is clocked by its ACKs and held by a window in packets
(``WINDOW_NOW``); a segment counts against it until it is acknowledged, selectively
acknowledged or taken for lost (RFC 6675). ``TCP_MARKS`` holds one word for each
outstanding segment: see ``SENT_ONCE`` and its neighbours.

Not modelled: slow start's HyStart, pacing, tail loss probes, reordering.
"""

from __future__ import annotations

from fabric.sim.engine.egress import take_packet
from fabric.sim.engine.heap import push
from fabric.sim.engine.jit import jit
from fabric.sim.engine.layout import (
    EVENT_RETRANSMIT,
    INGRESS_TX_PACKETS,
    PACKET_IP,
    PACKET_KIND_SHIFT,
    PACKET_PSN,
    PACKET_QP,
    PACKET_ROUTE,
    PACKET_TOS,
    QP_ACKED,
    QP_DEADLINE,
    QP_DEADLINE_SET,
    QP_DEPTH,
    QP_LAST_PAYLOAD,
    QP_LIMIT,
    QP_NEXT,
    QP_PAYLOAD,
    QP_PER_MESSAGE,
    QP_POSTED,
    QP_PRIORITY,
    QP_ROUTE,
    QP_SENT,
    QP_SOURCE,
    QP_STARTS,
    QP_TOS,
    SEGMENT,
    TCP_AGAIN,
    TCP_BACKOFF,
    TCP_FULL,
    TCP_LOST,
    TCP_MARKS,
    TCP_MASK,
    TCP_SACKED,
    TCP_STAMP,
    TCP_TIMEOUT,
    WINDOW_MOST,
    WINDOW_NOW,
    Memory,
)
from fabric.sim.engine.pointer import floats
from fabric.sim.engine.records import ingress_of

# IPv4 20, TCP 20, timestamps and padding 12 (RFC 7323): Linux sends them by default.
TCP_HEADER_BYTES = 52

# A segment's word: sent once, held by the receiver, lost; or sent again when
# SENT_AGAIN + n segments had been sent at all.
SENT_ONCE, HELD, LOST, SENT_AGAIN = range(4)
_MAX_BACKOFF = 6


@jit
def in_flight(m: Memory, q: int) -> int:
    """Segments on their way (``pipe`` of RFC 6675)."""
    return int(m[q + QP_SENT] - m[q + QP_ACKED] - m[q + TCP_SACKED] - m[q + TCP_LOST])


@jit
def set_tcp_limit(m: Memory, q: int) -> None:
    """Let the NIC see one more segment to send where there is one and the window is open."""
    f = floats(m)
    acked, following = m[q + QP_ACKED], m[q + QP_NEXT]
    m[q + QP_LIMIT] = following
    if in_flight(m, q) + 1 > min(f[q + WINDOW_NOW], f[q + WINDOW_MOST]):
        m[q + TCP_FULL] = m[q + QP_SENT]
        return
    per = m[q + QP_PER_MESSAGE]
    last = min(m[q + QP_POSTED], (acked // per + m[q + QP_DEPTH]) * per)
    if m[q + TCP_LOST] > 0 or following < min(last, acked + m[q + TCP_MASK]):
        m[q + QP_LIMIT] = following + 1


@jit
def _lost_segment(m: Memory, q: int) -> int:
    """The first lost segment; there is one."""
    psn = max(m[q + TCP_AGAIN], m[q + QP_ACKED])
    while m[m[q + TCP_MARKS] + (psn & m[q + TCP_MASK])] != LOST:
        psn += 1
    m[q + TCP_AGAIN] = psn + 1
    m[q + TCP_LOST] -= 1
    return int(psn)


@jit
def time_out(m: Memory, q: int) -> int:
    """How long to wait for an ACK now: doubled after each time-out (RFC 6298)."""
    return int(m[TCP_TIMEOUT] << min(m[q + TCP_BACKOFF], _MAX_BACKOFF))


@jit
def make_segment(m: Memory, q: int, now: int) -> int:
    """The next segment: one that was lost, else a new one."""
    mark = SENT_ONCE
    if m[q + TCP_LOST] > 0:
        psn = _lost_segment(m, q)
        mark = SENT_AGAIN + m[q + QP_SENT]
        m[q + TCP_STAMP] = min(m[q + TCP_STAMP], m[q + QP_SENT])
    else:
        psn = int(m[q + QP_NEXT])
        m[q + QP_NEXT] = m[q + QP_SENT] = psn + 1
        per = m[q + QP_PER_MESSAGE]
        if psn % per == 0:
            m[m[q + QP_STARTS] + psn // per % m[q + QP_DEPTH]] = now
    m[m[q + TCP_MARKS] + (psn & m[q + TCP_MASK])] = mark
    last = (psn + 1) % m[q + QP_PER_MESSAGE] == 0
    k = take_packet(m)
    m[k + PACKET_QP] = q
    m[k + PACKET_PSN] = psn
    m[k + PACKET_IP] = TCP_HEADER_BYTES + (m[q + QP_LAST_PAYLOAD] if last else m[q + QP_PAYLOAD])
    m[k + PACKET_TOS] = SEGMENT << PACKET_KIND_SHIFT | m[q + QP_TOS]
    m[k + PACKET_ROUTE] = m[q + QP_ROUTE]
    if psn == m[q + QP_ACKED]:
        m[q + QP_DEADLINE] = now + time_out(m, q)
    if m[q + QP_DEADLINE_SET] == 0:
        m[q + QP_DEADLINE_SET] = 1
        push(m, m[q + QP_DEADLINE], EVENT_RETRANSMIT, q)
    m[ingress_of(m[q + QP_SOURCE], m[q + QP_PRIORITY]) + INGRESS_TX_PACKETS] += 1
    set_tcp_limit(m, q)
    return k
