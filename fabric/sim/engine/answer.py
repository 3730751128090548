"""What a receiver sends back: ACK, NAK and CNP, in the class of each."""

from __future__ import annotations

from fabric.sim.engine.egress import enqueue, schedule_kick, take_packet
from fabric.sim.engine.jit import jit
from fabric.sim.engine.layout import (
    INGRESS_CLASS,
    INGRESS_TX_PACKETS,
    PACKET_IP,
    PACKET_KIND_SHIFT,
    PACKET_PSN,
    PACKET_QP,
    PACKET_ROUTE,
    PACKET_TOS,
    PORT_BUSY,
    QP_ROUTE_BACK,
    QP_TARGET,
    Memory,
)
from fabric.sim.engine.records import ingress_of


@jit
def answer(
    m: Memory, q: int, kind: int, size: int, priority: int, tos: int, psn: int, now: int
) -> None:
    """Queue an answer of queue pair ``q`` at its receiver; ``psn`` is what it carries."""
    p = m[q + QP_TARGET]
    k = take_packet(m)
    m[k + PACKET_QP] = q
    m[k + PACKET_PSN] = psn
    m[k + PACKET_IP] = size
    m[k + PACKET_TOS] = kind << PACKET_KIND_SHIFT | tos
    m[k + PACKET_ROUTE] = m[q + QP_ROUTE_BACK]
    ingress = ingress_of(p, priority)
    m[ingress + INGRESS_TX_PACKETS] += 1
    enqueue(m, p, m[ingress + INGRESS_CLASS], k, now)
    schedule_kick(m, p, max(now, m[p + PORT_BUSY]))
