"""Hosts: queue pairs that send at their paced rate, receivers that acknowledge each packet."""

from __future__ import annotations

from fabric.sim.reference.columns import (
    ACK,
    ACKED,
    ALPHA,
    AT,
    BACK_PATH,
    CE,
    CUT_DUE,
    DATA,
    DATA_HOPS,
    END,
    EXPECTED,
    FIRST_CNP,
    FLOW_NUMBER,
    FLOW_SHIFT,
    GAP,
    HOST,
    INFO,
    LAST_NACK,
    LATENCY_ACK,
    LINE_RATE,
    LOG_COUNT,
    LOG_WORDS,
    MESSAGE,
    MESSAGE_BYTES,
    MESSAGES_LEFT,
    NACK,
    NACK_NOT_BEFORE,
    NEVER,
    NEXT,
    NEXT_AVAILABLE,
    NEXT_UDP_PORT,
    NONE,
    OUT_PATH,
    PAUSED,
    PAYLOAD,
    Q0_HEAD,
    QP_COUNT,
    QP_FIRST,
    QP_LAST,
    QP_ROOM,
    RAISE_DUE,
    RATE,
    RECEIVED,
    SEND_NODE,
    SEND_PENDING,
    SEND_SINCE,
    SENT,
    SEQ,
    SIZE_MASK,
    SIZE_SHIFT,
    SOURCE_PORT,
    STAGE,
    STARTED,
    TARGET,
    TICKED,
    Memory,
)
from fabric.sim.reference.jit import inline, outline
from fabric.sim.reference.rate import nanoseconds, notify, settle
from fabric.sim.reference.routing import lay_paths
from fabric.sim.reference.switch import append, give, start, take
from fabric.sim.reference.wheel import put

HEADER_BYTES = 48
ACK_BYTES = 60
NACK_INTERVAL_NS = 500_000
MESSAGE_SHIFT = 40  # above the byte offset in a sequence number: which message it is
# In a NIC's list of queue pairs, one that is complete and not yet cleared.
DEAD = -1


@outline
def clear_dead(m: Memory, p: int, chosen: int) -> int:
    """Take complete queue pairs out of a NIC's list; returns where the chosen one is now."""
    first, kept = m.ports[p + QP_FIRST], 0
    moved = chosen
    for place in range(m.ports[p + QP_COUNT]):
        f = m.qps[first + place]
        if place == chosen:
            moved = kept if f != DEAD else kept - 1
        if f != DEAD:
            m.qps[first + kept] = f
            kept += 1
    m.ports[p + QP_COUNT] = kept
    return moved


@outline
def open_message(m: Memory, f: int, now: int) -> None:
    """Create a queue pair for the flow's next message: line rate, fresh rate control."""
    p = m.flows[f + HOST]
    base = m.flows[f + MESSAGE] << MESSAGE_SHIFT
    m.flows[f + SENT] = m.flows[f + ACKED] = m.flows[f + EXPECTED] = base
    m.flows[f + LAST_NACK] = base
    m.flows[f + NACK_NOT_BEFORE] = 0
    m.flows[f + END] = base + m.flows[f + MESSAGE_BYTES]
    m.flows[f + RATE] = m.flows[f + TARGET] = m.flows[f + LINE_RATE]
    m.flows[f + GAP] = -1
    m.flows[f + STAGE] = 0
    m.flows[f + FIRST_CNP] = 1
    m.flows[f + TICKED] = NEVER
    m.alphas[f + ALPHA] = 1.0
    m.flows[f + CUT_DUE] = m.flows[f + RAISE_DUE] = NEVER
    m.flows[f + STARTED] = m.flows[f + NEXT_AVAILABLE] = now
    # The NIC numbers its queue pairs' UDP ports as they are made.
    m.flows[f + SOURCE_PORT] = m.ports[p + NEXT_UDP_PORT]
    m.ports[p + NEXT_UDP_PORT] += 1
    lay_paths(m, f)
    if m.ports[p + QP_COUNT] == m.ports[p + QP_ROOM]:
        # The reference's list would grow on; it clears it only when it comes by.
        m.ports[p + QP_LAST] = max(0, clear_dead(m, p, m.ports[p + QP_LAST]))
    m.qps[m.ports[p + QP_FIRST] + m.ports[p + QP_COUNT]] = f
    m.ports[p + QP_COUNT] += 1


@outline
def close_message(m: Memory, f: int, now: int) -> None:
    """All of a message is acknowledged: note its time; in a closed loop open the next."""
    count = m.settings[LOG_COUNT]
    m.log[LOG_WORDS * count] = m.flows[f + FLOW_NUMBER]
    m.log[LOG_WORDS * count + 1] = m.flows[f + STARTED]
    m.log[LOG_WORDS * count + 2] = now
    m.settings[LOG_COUNT] = count + 1
    m.flows[f + CUT_DUE] = m.flows[f + RAISE_DUE] = NEVER
    m.flows[f + MESSAGE] += 1
    p = m.flows[f + HOST]
    for place in range(m.ports[p + QP_FIRST], m.ports[p + QP_FIRST] + m.ports[p + QP_COUNT]):
        if m.qps[place] == f:
            m.qps[place] = DEAD
    m.flows[f + MESSAGES_LEFT] -= 1
    if m.flows[f + MESSAGES_LEFT] > 0:
        open_message(m, f, now)


@inline
def choose(m: Memory, p: int, now: int) -> int:
    """Place in the NIC's list of the queue pair that may send now, round robin; or NONE."""
    count = m.ports[p + QP_COUNT]
    first = m.ports[p + QP_FIRST]
    if count == 1:
        f = m.qps[first]
        if f != DEAD:
            if (
                m.ports[p + PAUSED]
                or m.flows[f + NEXT_AVAILABLE] > now
                or m.flows[f + SENT] >= m.flows[f + END]
            ):
                return NONE
            return 0
    paused = m.ports[p + PAUSED]
    chosen, dead = NONE, False
    place = m.ports[p + QP_LAST]
    if count > 0:
        place %= count
    for _ in range(count):
        place += 1
        if place == count:
            place = 0
        f = m.qps[first + place]
        if f == DEAD:
            dead = True
        elif (
            not paused
            and m.flows[f + SENT] < m.flows[f + END]
            and m.flows[f + NEXT_AVAILABLE] <= now
        ):
            chosen = place
            break
    if dead:
        chosen = clear_dead(m, p, chosen)
    return chosen


@inline
def serve_host(m: Memory, p: int, now: int, since: int) -> None:
    """Let an idle NIC send: ACKs first, then queue pairs whose time has come.

    ``since`` is when the event that led here was scheduled.
    """
    node = m.ports[p + Q0_HEAD]
    if node >= 0:
        m.ports[p + Q0_HEAD] = m.nodes[node + NEXT]
        start(m, p, node, ACK_BYTES, now)
        return
    place = choose(m, p, now)
    first = m.ports[p + QP_FIRST]
    if place != NONE:
        m.ports[p + QP_LAST] = place
        f = m.qps[first + place]
        if m.flows[f + CUT_DUE] == now or m.flows[f + RAISE_DUE] == now:
            settle(m, f, now, since)
        sent = m.flows[f + SENT]
        payload = min(m.settings[PAYLOAD], m.flows[f + END] - sent)
        size = payload + HEADER_BYTES
        node = take(m)
        m.nodes[node + INFO] = DATA | size << SIZE_SHIFT | f << FLOW_SHIFT
        m.nodes[node + AT] = m.flows[f + OUT_PATH]
        m.nodes[node + SEQ] = sent
        m.flows[f + SENT] = sent + payload
        m.settings[DATA_HOPS] += 1
        start(m, p, node, size, now)
        gap = m.flows[f + GAP]
        if payload != m.settings[PAYLOAD]:
            gap = nanoseconds(size * 8.0 / m.flows[f + RATE])
        elif gap < 0:
            gap = nanoseconds(size * 8.0 / m.flows[f + RATE])
            m.flows[f + GAP] = gap
        m.flows[f + NEXT_AVAILABLE] = now + gap
        return
    if m.ports[p + SEND_PENDING]:
        return
    soonest = NEVER
    for at in range(first, first + m.ports[p + QP_COUNT]):
        f = m.qps[at]
        if f != DEAD and m.flows[f + SENT] < m.flows[f + END]:
            soonest = min(soonest, m.flows[f + NEXT_AVAILABLE])
    if soonest > now and soonest != NEVER:
        m.ports[p + SEND_PENDING] = 1
        m.ports[p + SEND_SINCE] = now
        put(m, m.ports[p + SEND_NODE], soonest)


@inline
def receive_data(m: Memory, node: int, info: int, now: int) -> int:
    """Data at its receiver: acknowledge, or ask to go back; returns the NIC's port or NONE."""
    p: int = m.hops[m.nodes[node + AT] + 1]
    f = info >> FLOW_SHIFT
    sequence, expected = m.nodes[node + SEQ], m.flows[f + EXPECTED]
    kind = ACK
    if sequence == expected:
        payload = (info >> SIZE_SHIFT & SIZE_MASK) - HEADER_BYTES
        expected += payload
        m.flows[f + EXPECTED] = expected
        m.flows[f + RECEIVED] += payload
    elif sequence > expected and (
        now >= m.flows[f + NACK_NOT_BEFORE] or m.flows[f + LAST_NACK] != expected
    ):
        m.flows[f + NACK_NOT_BEFORE] = now + NACK_INTERVAL_NS
        m.flows[f + LAST_NACK] = expected
        kind = NACK
    else:
        give(m, node)
        return NONE
    m.nodes[node + INFO] = kind | info & CE | ACK_BYTES << SIZE_SHIFT | f << FLOW_SHIFT
    m.nodes[node + SEQ] = expected
    m.nodes[node + AT] = m.flows[f + BACK_PATH]
    append(m, p, Q0_HEAD, node)
    return p


@inline
def receive_ack(m: Memory, node: int, info: int, now: int) -> int:
    """An ACK or NACK at its sender; returns the NIC's port, or NONE where it is outdated."""
    f = info >> FLOW_SHIFT
    sequence = m.nodes[node + SEQ]
    kind = info & 15
    give(m, node)
    message = m.flows[f + MESSAGE]
    if sequence >> MESSAGE_SHIFT < message:
        return NONE
    p: int = m.flows[f + HOST]
    m.flows[f + ACKED] = max(m.flows[f + ACKED], sequence)
    if m.flows[f + ACKED] >= m.flows[f + END]:
        close_message(m, f, now)
        return p
    if kind == NACK:
        m.flows[f + SENT] = m.flows[f + ACKED]
    if info & CE:
        notify(m, f, now, now - m.ports[p + LATENCY_ACK])
    return p
