"""A link goes down and comes up again.

What is on the cable is lost, what waits for it or comes for it is dropped, and
both ends forget each other's pauses. Nothing is routed around it: the queue
pairs keep their paths and retransmit until the link is back.
"""

from __future__ import annotations

from fabric.sim.engine.egress import schedule_kick
from fabric.sim.engine.jit import jit
from fabric.sim.engine.layout import (
    ACTION_DROP,
    ALL_CLASSES,
    INGRESS_ACTION,
    INGRESS_CLASS,
    INGRESS_PAUSED_UNTIL,
    INGRESS_PAUSING,
    INGRESS_STORM,
    LINK_IS_DOWN,
    PORT_BUSY,
    PORT_DISCARD,
    PORT_LINK_DOWNS,
    PORT_PAUSED,
    PORT_PEER,
    PORT_REFUSE,
    Memory,
)
from fabric.sim.engine.pause import release_pause, send_xoff, send_xon
from fabric.sim.engine.records import ingress_of
from fabric.sim.engine.switch import drop_queue


@jit
def settle_discards(m: Memory, p: int) -> None:
    """Drop at port ``p`` what its watchdog wants dropped, or everything on a dead link."""
    mask = ALL_CLASSES if m[p + PORT_REFUSE] & LINK_IS_DOWN else 0
    for priority in range(8):
        ingress = ingress_of(p, priority)
        if m[ingress + INGRESS_STORM] and m[ingress + INGRESS_ACTION] == ACTION_DROP:
            mask |= 1 << m[ingress + INGRESS_CLASS]
    m[p + PORT_DISCARD] = mask


@jit
def _end_down(m: Memory, p: int, now: int) -> None:
    m[p + PORT_REFUSE] |= LINK_IS_DOWN
    settle_discards(m, p)
    m[p + PORT_LINK_DOWNS] += 1
    for priority in range(8):
        ingress = ingress_of(p, priority)
        if m[ingress + INGRESS_PAUSED_UNTIL]:
            release_pause(m, ingress, now)
    m[p + PORT_PAUSED] = ALL_CLASSES
    for traffic_class in range(8):
        drop_queue(m, p, traffic_class, now)


@jit
def _end_up(m: Memory, p: int, now: int) -> None:
    m[p + PORT_REFUSE] &= ~LINK_IS_DOWN
    settle_discards(m, p)
    m[p + PORT_PAUSED] = 0
    schedule_kick(m, p, max(now, m[p + PORT_BUSY]))


@jit
def on_link_down(m: Memory, p: int, now: int) -> None:
    """The cable of port ``p`` is unplugged."""
    if m[p + PORT_REFUSE] & LINK_IS_DOWN == 0:
        peer = m[p + PORT_PEER]
        _end_down(m, p, now)
        _end_down(m, peer, now)


@jit
def on_link_up(m: Memory, p: int, now: int) -> None:
    """The cable of port ``p`` is plugged in again; who still wants quiet says so again."""
    if m[p + PORT_REFUSE] & LINK_IS_DOWN == 0:
        return
    peer = m[p + PORT_PEER]
    _end_up(m, p, now)
    _end_up(m, peer, now)
    for priority in range(8):
        for end in (p, peer):
            ingress = ingress_of(end, priority)
            if m[ingress + INGRESS_PAUSING]:
                send_xon(m, ingress, now)
                send_xoff(m, ingress, now)
