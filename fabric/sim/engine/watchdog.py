"""PFC watchdog of a switch port: finding a pause that does not end, and what it does.

A priority that its peer has paused for the detection time is in a storm, whether
or not a packet waits. *Drop* discards what is in the queue, what comes for it,
and what comes in at the same port in the same priority; *forward* sends in spite
of the pauses; *shutdown* takes the link down for good. Pause frames are counted
and ignored until none has come for the restoration time. Source: sonic-net/sonic-mgmt
docs/pfcwd/PFCWD_MMU_Change.md. A real watchdog polls, so that it acts up to one
polling interval later than this one.
"""

from __future__ import annotations

from fabric.sim.engine.heap import push
from fabric.sim.engine.jit import jit
from fabric.sim.engine.layout import (
    ACTION_DROP,
    ACTION_SHUTDOWN,
    EVENT_WATCHDOG,
    INGRESS_ACTION,
    INGRESS_CLASS,
    INGRESS_DETECT,
    INGRESS_LAST_XOFF,
    INGRESS_PAUSED_UNTIL,
    INGRESS_PORT,
    INGRESS_PRIORITY,
    INGRESS_RESTORE,
    INGRESS_STORM,
    INGRESS_STORMS,
    INGRESS_STUCK_SINCE,
    INGRESS_WATCHED,
    PORT_REFUSE,
    Memory,
)
from fabric.sim.engine.link import on_link_down, settle_discards
from fabric.sim.engine.pause import release_pause
from fabric.sim.engine.switch import drop_queue


@jit
def _act(m: Memory, ingress: int, now: int) -> None:
    p, traffic_class = m[ingress + INGRESS_PORT], m[ingress + INGRESS_CLASS]
    m[ingress + INGRESS_STORM] = 1
    m[ingress + INGRESS_STORMS] += 1
    if m[ingress + INGRESS_ACTION] == ACTION_SHUTDOWN:
        on_link_down(m, p, now)
        return
    if m[ingress + INGRESS_ACTION] == ACTION_DROP:
        settle_discards(m, p)
        m[p + PORT_REFUSE] |= 1 << m[ingress + INGRESS_PRIORITY]
        drop_queue(m, p, traffic_class, now)
    release_pause(m, ingress, now)


@jit
def on_watchdog(m: Memory, ingress: int, now: int) -> None:
    """Look whether a pause has become a storm, or a storm has ended."""
    if m[ingress + INGRESS_STORM]:
        quiet = m[ingress + INGRESS_LAST_XOFF] + m[ingress + INGRESS_RESTORE]
        if quiet > now:
            push(m, quiet, EVENT_WATCHDOG, ingress)
            return
        p = m[ingress + INGRESS_PORT]
        m[ingress + INGRESS_STORM] = m[ingress + INGRESS_WATCHED] = 0
        m[p + PORT_REFUSE] &= ~(1 << m[ingress + INGRESS_PRIORITY])
        settle_discards(m, p)
        return
    if m[ingress + INGRESS_PAUSED_UNTIL] == 0:
        m[ingress + INGRESS_WATCHED] = 0
        return
    due = m[ingress + INGRESS_STUCK_SINCE] + m[ingress + INGRESS_DETECT]
    if due > now:
        push(m, due, EVENT_WATCHDOG, ingress)
        return
    _act(m, ingress, now)
    if m[ingress + INGRESS_ACTION] != ACTION_SHUTDOWN:
        push(m, now + m[ingress + INGRESS_RESTORE], EVENT_WATCHDOG, ingress)
