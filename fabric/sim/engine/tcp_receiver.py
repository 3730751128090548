"""TCP at the receiver: segments out of order are kept, every second one is answered.

At once are answered: a segment beyond a gap, one that closes a gap, a duplicate, the
end of a message, and, before a segment whose CE mark differs from the one before,
what is pending (RFC 5681, 4.2; RFC 8257, 3.2). ``fabric.sim.engine.tcp_ack`` says
what an ACK carries.
"""

from __future__ import annotations

from fabric.sim.engine.answer import answer
from fabric.sim.engine.jit import jit
from fabric.sim.engine.layout import (
    FLOW_BYTES,
    QP_ACK_PRIORITY,
    QP_ACK_TOS,
    QP_EXPECTED,
    QP_FLOW,
    QP_LAST_PAYLOAD,
    QP_PAYLOAD,
    QP_PER_MESSAGE,
    QP_UNACKED,
    TCP_ACK,
    TCP_CE,
    TCP_HELD,
    TCP_MASK,
    Memory,
)
from fabric.sim.engine.tcp import TCP_HEADER_BYTES

_ACK_EVERY = 2


@jit
def _acknowledge(m: Memory, q: int, psn: int, now: int) -> None:
    m[q + QP_UNACKED] = 0
    word = m[q + QP_EXPECTED] << 32 | psn << 1 | m[q + TCP_CE]
    priority, tos = m[q + QP_ACK_PRIORITY], m[q + QP_ACK_TOS]
    answer(m, q, TCP_ACK, TCP_HEADER_BYTES, priority, tos, word, now)


@jit
def _deliver(m: Memory, q: int) -> bool:
    """Count the expected segment; whether it ends a message."""
    m[q + QP_EXPECTED] += 1
    last = bool(m[q + QP_EXPECTED] % m[q + QP_PER_MESSAGE] == 0)
    m[m[q + QP_FLOW] + FLOW_BYTES] += m[q + QP_LAST_PAYLOAD] if last else m[q + QP_PAYLOAD]
    return last


@jit
def receive_segment(m: Memory, q: int, psn: int, marked: bool, now: int) -> None:
    """A segment has arrived."""
    if marked != m[q + TCP_CE]:
        if m[q + QP_UNACKED]:
            _acknowledge(m, q, m[q + QP_EXPECTED] - 1, now)
        m[q + TCP_CE] = marked
    held, mask = m[q + TCP_HELD], m[q + TCP_MASK]
    if psn > m[q + QP_EXPECTED]:
        m[held + (psn & mask)] = 1
    if psn != m[q + QP_EXPECTED]:
        _acknowledge(m, q, psn, now)
        return
    at_once = _deliver(m, q)
    while m[held + (m[q + QP_EXPECTED] & mask)]:
        m[held + (m[q + QP_EXPECTED] & mask)] = 0
        _deliver(m, q)
        at_once = True
    m[q + QP_UNACKED] += 1
    if at_once or m[q + QP_UNACKED] >= _ACK_EVERY:
        _acknowledge(m, q, psn, now)
