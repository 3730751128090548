"""A NIC that cannot empty its receive buffer as fast as packets come.

Its host takes bytes at a fixed rate (PCIe, memory or caches are the bottleneck),
first come first served. The buffer of a lossless priority pauses the switch at XOFF
and drops beyond its size, as a switch's does. A storming NIC pauses its switch
whatever the buffer holds.
"""

from __future__ import annotations

from fabric.sim.engine.egress import free_packet
from fabric.sim.engine.heap import push
from fabric.sim.engine.jit import jit
from fabric.sim.engine.layout import (
    BYTE_TIME_SHIFT,
    EVENT_RECEIVED,
    FRAME_BYTES,
    INGRESS_BYTES,
    INGRESS_DISCARDS,
    INGRESS_MAX,
    INGRESS_PAUSING,
    INGRESS_PFC,
    INGRESS_SIZE,
    INGRESS_STALL,
    INGRESS_STORMING,
    INGRESS_XOFF,
    INGRESS_XON,
    PACKET_AT,
    PACKET_IP,
    PORT_RX_BYTE_TIME,
    PORT_RX_DISCARDS,
    PORT_RX_FREE,
    Memory,
)
from fabric.sim.engine.pause import send_xoff, send_xon


@jit
def take_in(m: Memory, p: int, ingress: int, k: int, now: int) -> None:
    """Put packet ``k`` into the receive buffer of a slow NIC, or drop it."""
    frame = m[k + PACKET_IP] + FRAME_BYTES
    held = m[ingress + INGRESS_BYTES] + frame
    if held > m[ingress + INGRESS_SIZE]:
        m[p + PORT_RX_DISCARDS] += 1
        m[ingress + INGRESS_DISCARDS] += 1
        free_packet(m, k)
        return
    m[ingress + INGRESS_BYTES] = held
    m[ingress + INGRESS_MAX] = max(m[ingress + INGRESS_MAX], held)
    pauses = m[ingress + INGRESS_PFC] and not m[ingress + INGRESS_PAUSING]
    if pauses and held > m[ingress + INGRESS_XOFF]:
        send_xoff(m, ingress, now)
    m[k + PACKET_AT] = ingress
    start = max(now, m[p + PORT_RX_FREE])
    end = start + (frame * m[p + PORT_RX_BYTE_TIME] >> BYTE_TIME_SHIFT)
    m[p + PORT_RX_FREE] = end
    push(m, end, EVENT_RECEIVED, k)


@jit
def take_out(m: Memory, ingress: int, k: int, now: int) -> None:
    """The host has taken packet ``k`` out of the receive buffer."""
    m[ingress + INGRESS_BYTES] -= m[k + PACKET_IP] + FRAME_BYTES
    _resume(m, ingress, now)


@jit
def _resume(m: Memory, ingress: int, now: int) -> None:
    held = m[ingress + INGRESS_BYTES]
    if m[ingress + INGRESS_STORMING] or (held > 0 and held >= m[ingress + INGRESS_XON]):
        return
    m[ingress + INGRESS_STALL] = 0
    if m[ingress + INGRESS_PAUSING]:
        send_xon(m, ingress, now)


@jit
def on_storm(m: Memory, ingress: int, now: int) -> None:
    """A NIC begins to pause its switch, and goes on."""
    m[ingress + INGRESS_STORMING] = 1
    if not m[ingress + INGRESS_PAUSING]:
        send_xoff(m, ingress, now)


@jit
def on_storm_end(m: Memory, ingress: int, now: int) -> None:
    """The NIC recovers; a full buffer may still pause."""
    m[ingress + INGRESS_STORMING] = 0
    _resume(m, ingress, now)
