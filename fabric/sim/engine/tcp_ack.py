"""TCP at the sender: what an ACK says, what is lost, and time-outs.

An ACK carries ``expected << 32 | segment << 1 | echo``: the next segment that the
receiver expects, the one that this ACK answers (RFC 2018: the first SACK block
holds it), and whether it was marked CE. Paths keep their order, so that a segment
is lost once three later ones have arrived (RFC 6675), and one that was sent again
is lost once three that left after it have.
"""

from __future__ import annotations

from fabric.sim.engine.heap import push
from fabric.sim.engine.jit import jit
from fabric.sim.engine.layout import (
    DCTCP,
    EVENT_RETRANSMIT,
    NEVER,
    QP_ACKED,
    QP_DEADLINE,
    QP_DEADLINE_SET,
    QP_SENT,
    QP_TRANSPORT,
    TCP_AGAIN,
    TCP_BACKOFF,
    TCP_FULL,
    TCP_HIGH,
    TCP_JUDGED,
    TCP_LOST,
    TCP_MARKS,
    TCP_MASK,
    TCP_RECOVERY,
    TCP_SACKED,
    TCP_STAMP,
    Memory,
)
from fabric.sim.engine.sender import complete_messages, wake
from fabric.sim.engine.tcp import (
    HELD,
    LOST,
    SENT_AGAIN,
    SENT_ONCE,
    set_tcp_limit,
    time_out,
)
from fabric.sim.engine.window import collapse, count_marks, cut, grow

_DUPLICATES = 3
_PSN_BITS = (1 << 31) - 1


@jit
def _hold(m: Memory, q: int, psn: int) -> int:
    """The receiver holds segment ``psn`` beyond a gap; 1 where that is news."""
    word = m[q + TCP_MARKS] + (psn & m[q + TCP_MASK])
    if m[word] == HELD:
        return 0
    m[q + TCP_LOST] -= m[word] == LOST
    m[word] = HELD
    m[q + TCP_SACKED] += 1
    return 1


@jit
def _advance(m: Memory, q: int, expected: int) -> int:
    """Everything before ``expected`` has arrived; how much of that is news."""
    news = 0
    marks, mask = m[q + TCP_MARKS], m[q + TCP_MASK]
    for psn in range(m[q + QP_ACKED], expected):
        word = marks + (psn & mask)
        if m[word] == HELD:
            m[q + TCP_SACKED] -= 1
        else:
            news += 1
            m[q + TCP_LOST] -= m[word] == LOST
        m[word] = SENT_ONCE
    m[q + QP_ACKED] = expected
    return news


@jit
def _judge(m: Memory, q: int) -> bool:
    """Find the segments that must be lost; whether there is a new one."""
    found = False
    marks, mask, acked = m[q + TCP_MARKS], m[q + TCP_MASK], m[q + QP_ACKED]
    sure = m[q + TCP_HIGH] - _DUPLICATES
    psn = max(m[q + TCP_JUDGED], acked)
    while psn < sure:
        if m[marks + (psn & mask)] == SENT_ONCE:
            m[marks + (psn & mask)] = LOST
            m[q + TCP_LOST] += 1
            found = True
        psn += 1
    m[q + TCP_JUDGED] = psn
    if sure > m[q + TCP_STAMP]:
        found |= _judge_again(m, q, sure)
    return found


@jit
def _judge_again(m: Memory, q: int, sure: int) -> bool:
    """Find what was sent again and lost again; whether there is any."""
    found, first = False, NEVER
    marks, mask = m[q + TCP_MARKS], m[q + TCP_MASK]
    for psn in range(m[q + QP_ACKED], m[q + TCP_HIGH]):
        stamp = m[marks + (psn & mask)] - SENT_AGAIN
        if stamp < 0:
            continue
        if stamp < sure:
            m[marks + (psn & mask)] = LOST
            m[q + TCP_LOST] += 1
            m[q + TCP_AGAIN] = min(m[q + TCP_AGAIN], psn)
            found = True
        else:
            first = min(first, stamp)
    m[q + TCP_STAMP] = first
    return found


@jit
def on_tcp_ack(m: Memory, q: int, word: int, now: int) -> None:
    """An ACK has arrived."""
    expected, psn, echo = word >> 32, word >> 1 & _PSN_BITS, word & 1
    acked = m[q + QP_ACKED]
    full = m[q + TCP_FULL] > acked
    news = 0
    if psn >= max(expected, acked):
        news += _hold(m, q, psn)
    if expected > acked:
        news += _advance(m, q, expected)
        m[q + TCP_BACKOFF] = 0
        m[q + QP_DEADLINE] = now + time_out(m, q)
        complete_messages(m, q, acked, expected, now)
    m[q + TCP_HIGH] = max(m[q + TCP_HIGH], psn + 1, expected)
    if _judge(m, q) and m[q + QP_ACKED] >= m[q + TCP_RECOVERY]:
        m[q + TCP_RECOVERY] = m[q + QP_SENT]
        cut(m, q)
    if m[q + QP_TRANSPORT] == DCTCP:
        count_marks(m, q, news, echo)
    if full and news > 0 and m[q + QP_ACKED] >= m[q + TCP_RECOVERY]:
        grow(m, q, news, now)
    set_tcp_limit(m, q)
    wake(m, q, now)


@jit
def on_tcp_timer(m: Memory, q: int, now: int) -> None:
    """No ACK came in time: all that is not held is lost (RFC 5681, 6298)."""
    if m[q + QP_ACKED] == m[q + QP_SENT]:
        m[q + QP_DEADLINE_SET] = 0
        return
    if m[q + QP_DEADLINE] > now:
        push(m, m[q + QP_DEADLINE], EVENT_RETRANSMIT, q)
        return
    marks, mask = m[q + TCP_MARKS], m[q + TCP_MASK]
    m[q + TCP_LOST] = 0
    for psn in range(m[q + QP_ACKED], m[q + QP_SENT]):
        if m[marks + (psn & mask)] != HELD:
            m[marks + (psn & mask)] = LOST
            m[q + TCP_LOST] += 1
    m[q + TCP_AGAIN] = m[q + QP_ACKED]
    m[q + TCP_STAMP] = NEVER
    m[q + TCP_JUDGED] = m[q + TCP_RECOVERY] = m[q + QP_SENT]
    collapse(m, q)
    m[q + TCP_BACKOFF] += 1
    m[q + QP_DEADLINE] = now + time_out(m, q)
    push(m, m[q + QP_DEADLINE], EVENT_RETRANSMIT, q)
    set_tcp_limit(m, q)
    wake(m, q, now)
