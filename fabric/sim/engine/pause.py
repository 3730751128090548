"""PFC (IEEE 802.1Qbb): sending pause frames, obeying, refreshing and expiring them.

A pause frame goes ahead of everything but the frame that is on the wire. Its
quanta are the longest (65535); while the receiver still wants quiet it repeats
the frame at half that time. It acts when the cable and the peer's reaction time
(``fabric.headroom.reaction_bytes``) have passed.

A NIC that has paused its switch for too long counts a warning, then an error
and stops pausing: mlx5's PFC stall prevention (Linux en_ethtool.c, MLX5E_PFC_PREVEN_*
and the counters tx_pause_storm_*_events).
"""

from __future__ import annotations

from fabric.headroom import MAX_PAUSE_QUANTA
from fabric.sim.engine.egress import schedule_kick
from fabric.sim.engine.heap import push
from fabric.sim.engine.jit import jit
from fabric.sim.engine.layout import (
    BYTE_TIME_SHIFT,
    EVENT_PAUSE_END,
    EVENT_PAUSE_REFRESH,
    EVENT_WATCHDOG,
    EVENT_XOFF,
    EVENT_XON,
    INGRESS_CLASS,
    INGRESS_DETECT,
    INGRESS_EXPIRY,
    INGRESS_LAST_XOFF,
    INGRESS_PAUSED_SINCE,
    INGRESS_PAUSED_UNTIL,
    INGRESS_PAUSING,
    INGRESS_PAUSING_SINCE,
    INGRESS_PFC,
    INGRESS_PORT,
    INGRESS_PRIORITY,
    INGRESS_REFRESH,
    INGRESS_RX_PAUSE_TIME,
    INGRESS_RX_PAUSES,
    INGRESS_SHARERS,
    INGRESS_STALL,
    INGRESS_STALL_SINCE,
    INGRESS_STORM,
    INGRESS_STORMING,
    INGRESS_STUCK_SINCE,
    INGRESS_TX_PAUSE_TIME,
    INGRESS_TX_PAUSES,
    INGRESS_WATCHED,
    LINK_IS_DOWN,
    NONE,
    PFC_WIRE_BYTES,
    PORT_BUSY,
    PORT_BYTE_TIME,
    PORT_DELAY,
    PORT_NODE,
    PORT_PAUSED,
    PORT_PEER,
    PORT_QUANTUM,
    PORT_REACTION,
    PORT_REFUSE,
    PORT_STALL_ERRORS,
    PORT_STALL_LIMIT,
    PORT_STALL_WARNINGS,
    Memory,
)
from fabric.sim.engine.records import ingress_of

# Of PORT_STALL_LIMIT: MLX5E_PFC_PREVEN_MINOR_PRECENT.
STALL_WARNING_PERCENT = 85
# INGRESS_STALL of a NIC whose pause frames are off until its buffer drains.
_MUTE = 2


@jit
def _send_frame(m: Memory, ingress: int, kind: int, now: int) -> None:
    p, priority = m[ingress + INGRESS_PORT], m[ingress + INGRESS_PRIORITY]
    start = max(now, m[p + PORT_BUSY])
    end = start + (PFC_WIRE_BYTES * m[p + PORT_BYTE_TIME] >> BYTE_TIME_SHIFT)
    m[p + PORT_BUSY] = end
    m[ingress + INGRESS_TX_PAUSES] += 1
    peer = m[p + PORT_PEER]
    acts = end + m[p + PORT_DELAY] + m[peer + PORT_REACTION]
    push(m, acts, kind, ingress_of(peer, priority))


@jit
def send_xoff(m: Memory, ingress: int, now: int) -> None:
    """Ask the peer to stop this priority."""
    if m[ingress + INGRESS_STALL] == _MUTE:
        return
    m[ingress + INGRESS_PAUSING] = 1
    m[ingress + INGRESS_PAUSING_SINCE] = now
    m[ingress + INGRESS_STALL_SINCE] = now
    _send_frame(m, ingress, EVENT_XOFF, now)
    if m[ingress + INGRESS_REFRESH] == 0:
        m[ingress + INGRESS_REFRESH] = 1
        half = MAX_PAUSE_QUANTA * m[m[ingress + INGRESS_PORT] + PORT_QUANTUM] >> 1
        push(m, now + half, EVENT_PAUSE_REFRESH, ingress)


@jit
def _stop_pausing(m: Memory, ingress: int, now: int) -> None:
    m[ingress + INGRESS_PAUSING] = 0
    m[ingress + INGRESS_TX_PAUSE_TIME] += now - m[ingress + INGRESS_PAUSING_SINCE]


@jit
def send_xon(m: Memory, ingress: int, now: int) -> None:
    """Let the peer send this priority again."""
    _stop_pausing(m, ingress, now)
    m[ingress + INGRESS_STALL] = 0
    _send_frame(m, ingress, EVENT_XON, now)


@jit
def _prevent_stall(m: Memory, ingress: int, now: int) -> None:
    p = m[ingress + INGRESS_PORT]
    limit, held = m[p + PORT_STALL_LIMIT], now - m[ingress + INGRESS_STALL_SINCE]
    if m[ingress + INGRESS_STALL] == 0 and 100 * held >= STALL_WARNING_PERCENT * limit:
        m[ingress + INGRESS_STALL] = 1
        m[p + PORT_STALL_WARNINGS] += 1
    if held >= limit:
        m[ingress + INGRESS_STALL] = _MUTE
        m[ingress + INGRESS_STORMING] = 0
        m[p + PORT_STALL_ERRORS] += 1
        _stop_pausing(m, ingress, now)


@jit
def on_refresh(m: Memory, ingress: int, now: int) -> None:
    """Half the quanta have passed: repeat XOFF where it still holds."""
    if m[ingress + INGRESS_PAUSING] and m[m[ingress + INGRESS_PORT] + PORT_NODE] == NONE:
        _prevent_stall(m, ingress, now)
    if m[ingress + INGRESS_PAUSING] == 0:
        m[ingress + INGRESS_REFRESH] = 0
        return
    _send_frame(m, ingress, EVENT_XOFF, now)
    half = MAX_PAUSE_QUANTA * m[m[ingress + INGRESS_PORT] + PORT_QUANTUM] >> 1
    push(m, now + half, EVENT_PAUSE_REFRESH, ingress)


@jit
def on_xoff(m: Memory, ingress: int, now: int) -> None:
    """A pause frame acts; a port without PFC in this priority only counts it."""
    p = m[ingress + INGRESS_PORT]
    if m[p + PORT_REFUSE] & LINK_IS_DOWN:
        return
    m[ingress + INGRESS_RX_PAUSES] += 1
    m[ingress + INGRESS_LAST_XOFF] = now
    if m[ingress + INGRESS_PFC] == 0 or m[ingress + INGRESS_STORM]:
        return
    if m[ingress + INGRESS_PAUSED_UNTIL] == 0:
        m[ingress + INGRESS_PAUSED_SINCE] = now
        m[ingress + INGRESS_STUCK_SINCE] = now
        if m[ingress + INGRESS_DETECT] and m[ingress + INGRESS_WATCHED] == 0:
            m[ingress + INGRESS_WATCHED] = 1
            push(m, now + m[ingress + INGRESS_DETECT], EVENT_WATCHDOG, ingress)
    until = now + MAX_PAUSE_QUANTA * m[p + PORT_QUANTUM]
    m[ingress + INGRESS_PAUSED_UNTIL] = until
    m[p + PORT_PAUSED] |= 1 << m[ingress + INGRESS_CLASS]
    if m[ingress + INGRESS_EXPIRY] == 0:
        m[ingress + INGRESS_EXPIRY] = 1
        push(m, until, EVENT_PAUSE_END, ingress)


@jit
def release_pause(m: Memory, ingress: int, now: int) -> None:
    """The peer does not pause this priority any more."""
    p = m[ingress + INGRESS_PORT]
    m[ingress + INGRESS_RX_PAUSE_TIME] += now - m[ingress + INGRESS_PAUSED_SINCE]
    m[ingress + INGRESS_PAUSED_UNTIL] = 0
    sharers = m[ingress + INGRESS_SHARERS]
    for priority in range(8):
        if sharers >> priority & 1 and m[ingress_of(p, priority) + INGRESS_PAUSED_UNTIL]:
            return
    m[p + PORT_PAUSED] &= ~(1 << m[ingress + INGRESS_CLASS])
    schedule_kick(m, p, max(now, m[p + PORT_BUSY]))


@jit
def on_xon(m: Memory, ingress: int, now: int) -> None:
    """A frame with no quanta acts."""
    if m[m[ingress + INGRESS_PORT] + PORT_REFUSE] & LINK_IS_DOWN:
        return
    m[ingress + INGRESS_RX_PAUSES] += 1
    if m[ingress + INGRESS_PAUSED_UNTIL]:
        release_pause(m, ingress, now)


@jit
def on_pause_end(m: Memory, ingress: int, now: int) -> None:
    """The quanta of some pause frame have passed; a later one may still hold."""
    until = m[ingress + INGRESS_PAUSED_UNTIL]
    if until > now:
        push(m, until, EVENT_PAUSE_END, ingress)
        return
    m[ingress + INGRESS_EXPIRY] = 0
    if until:
        release_pause(m, ingress, now)
