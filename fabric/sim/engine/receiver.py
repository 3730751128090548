"""What the receiving NIC does: order, ACK, NAK, CNP, whole messages.

ACKs are coalesced: one at the end of each message, and one every few packets
within a long one. A gap is answered by one NAK; what follows is dropped until
the missing packet comes (go-back-N). CE-marked packets are answered by a CNP, at
most one per queue pair and interval.
"""

from __future__ import annotations

from fabric.sim.engine.answer import answer
from fabric.sim.engine.dcqcn import on_cnp
from fabric.sim.engine.egress import free_packet
from fabric.sim.engine.intake import take_in, take_out
from fabric.sim.engine.jit import jit
from fabric.sim.engine.layout import (
    ACK,
    ACK_EVERY,
    CNP,
    DATA,
    FLOW_BYTES,
    INGRESS_PORT,
    INGRESS_PRIORITY,
    NAK,
    NONE,
    PACKET_AT,
    PACKET_KIND_SHIFT,
    PACKET_PSN,
    PACKET_QP,
    PACKET_TOS,
    PONG,
    PORT_DUPLICATE_REQUEST,
    PORT_NP_CNP_SENT,
    PORT_NP_MARKED,
    PORT_NP_MASK,
    PORT_OUT_OF_SEQUENCE,
    PORT_RX_BYTE_TIME,
    QP_ACK_PRIORITY,
    QP_ACK_TOS,
    QP_CNP_INTERVAL,
    QP_CNP_PRIORITY,
    QP_CNP_TOS,
    QP_EXPECTED,
    QP_FLOW,
    QP_LAST_CNP,
    QP_LAST_PAYLOAD,
    QP_MODE,
    QP_NAK_SENT,
    QP_PAYLOAD,
    QP_PER_MESSAGE,
    QP_UNACKED,
    SEGMENT,
    STREAM,
    Memory,
)
from fabric.sim.engine.sender import on_ack, on_nak, on_ping_message
from fabric.sim.engine.switch import count_arrival
from fabric.sim.engine.tcp_ack import on_tcp_ack
from fabric.sim.engine.tcp_receiver import receive_segment

# IPv4 20, UDP 8, BTH 12, ICRC 4; an ACK's AETH 4, a CNP's 16 reserved bytes.
ACK_BYTES = 48
CNP_BYTES = 60
_CE = 3


@jit
def _acknowledge(m: Memory, q: int, kind: int, now: int) -> None:
    m[q + QP_UNACKED] = 0
    priority, tos = m[q + QP_ACK_PRIORITY], m[q + QP_ACK_TOS]
    answer(m, q, kind, ACK_BYTES, priority, tos, m[q + QP_EXPECTED], now)


@jit
def _receive_data(m: Memory, p: int, q: int, psn: int, now: int) -> None:
    expected = m[q + QP_EXPECTED]
    if psn < expected:
        m[p + PORT_DUPLICATE_REQUEST] += 1
        _acknowledge(m, q, ACK, now)
        return
    if psn > expected:
        m[p + PORT_OUT_OF_SEQUENCE] += 1
        if m[q + QP_NAK_SENT] == 0:
            m[q + QP_NAK_SENT] = 1
            _acknowledge(m, q, NAK, now)
        return
    m[q + QP_EXPECTED] = psn + 1
    m[q + QP_NAK_SENT] = 0
    m[q + QP_UNACKED] += 1
    last = (psn + 1) % m[q + QP_PER_MESSAGE] == 0
    if m[q + QP_MODE] != PONG:
        m[m[q + QP_FLOW] + FLOW_BYTES] += m[q + QP_LAST_PAYLOAD] if last else m[q + QP_PAYLOAD]
    if last or m[q + QP_UNACKED] >= m[ACK_EVERY]:
        _acknowledge(m, q, ACK, now)
    if last and m[q + QP_MODE] != STREAM:
        on_ping_message(m, q, now)


@jit
def arrive_at_host(m: Memory, p: int, k: int, now: int) -> None:
    """Packet ``k`` has been received by the NIC with port ``p``."""
    ingress = count_arrival(m, p, k)
    if ingress == NONE:
        return
    if m[p + PORT_RX_BYTE_TIME]:
        take_in(m, p, ingress, k, now)
        return
    _receive(m, p, ingress, k, now)


@jit
def on_received(m: Memory, k: int, now: int) -> None:
    """A slow host has come to packet ``k``."""
    ingress = m[k + PACKET_AT]
    take_out(m, ingress, k, now)
    _receive(m, m[ingress + INGRESS_PORT], ingress, k, now)


@jit
def _receive(m: Memory, p: int, ingress: int, k: int, now: int) -> None:
    q, psn, tos = m[k + PACKET_QP], m[k + PACKET_PSN], m[k + PACKET_TOS]
    kind, marked = tos >> PACKET_KIND_SHIFT, tos & _CE == _CE
    free_packet(m, k)
    if kind == DATA:
        if marked:
            m[p + PORT_NP_MARKED] += 1
            if (
                m[p + PORT_NP_MASK] >> m[ingress + INGRESS_PRIORITY] & 1
                and now - m[q + QP_LAST_CNP] >= m[q + QP_CNP_INTERVAL]
            ):
                m[q + QP_LAST_CNP] = now
                m[p + PORT_NP_CNP_SENT] += 1
                priority, tos = m[q + QP_CNP_PRIORITY], m[q + QP_CNP_TOS]
                answer(m, q, CNP, CNP_BYTES, priority, tos, m[q + QP_EXPECTED], now)
        _receive_data(m, p, q, psn, now)
    elif kind == ACK:
        on_ack(m, q, psn, now)
    elif kind == NAK:
        on_nak(m, q, psn, now)
    elif kind == CNP:
        on_cnp(m, q, now)
    elif kind == SEGMENT:
        receive_segment(m, q, psn, marked, now)
    else:
        on_tcp_ack(m, q, psn, now)
