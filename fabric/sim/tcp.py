"""From a TCP flow to a queue pair of the engine: one connection each.

TCP marks its packets with the flow's own DSCP, in both directions. Connections are
established before the simulation starts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fabric.sim.api import Flow
from fabric.sim.engine.layout import (
    CUBIC,
    DCTCP,
    NEVER,
    QP_ACK_PRIORITY,
    QP_ACK_TOS,
    QP_CLASS,
    QP_PRIORITY,
    QP_TOS,
    QP_TRANSPORT,
    TCP_HELD,
    TCP_MARKS,
    TCP_MASK,
    TCP_STAMP,
    WINDOW_ALPHA,
    WINDOW_MOST,
    WINDOW_NOW,
    WINDOW_THRESHOLD,
)
from fabric.sim.engine.memory import Arena
from fabric.sim.engine.tcp import TCP_HEADER_BYTES
from fabric.sim.engine.window import FIRST_WINDOW
from fabric.sim.model import TCP_MAX_WINDOW_BYTES
from fabric.sim.network import Network

_ECT0 = 2


def segment_bytes(flow: Flow, network: Network) -> int:
    """Payload of a full segment: what the smaller MTU of both ends leaves."""
    mtu = min(network.of(end).mtu_bytes for end in (flow.source, flow.target))
    return mtu - TCP_HEADER_BYTES


def words_of(flow: Flow, network: Network) -> int:
    """Words beside its queue pairs that a flow needs in the arena; 0 for RDMA."""
    if flow.transport == "rdma":
        return 0
    return flow.qps * 2 * _window_words(segment_bytes(flow, network))


def fill_connection(arena: Arena, row: NDArray[np.int64], flow: Flow, network: Network) -> None:
    """Write what differs from an RDMA queue pair, messages aside."""
    priority = network.of(flow.source).priority_of_dscp(flow.dscp)
    row[QP_TRANSPORT] = DCTCP if flow.transport == "dctcp" else CUBIC
    row[QP_TOS] = flow.dscp << 2 | (_ECT0 if flow.transport == "dctcp" else 0)
    row[QP_PRIORITY], row[QP_CLASS] = priority, network.of(flow.source).priority_to_class[priority]
    row[QP_ACK_TOS] = flow.dscp << 2
    row[QP_ACK_PRIORITY] = network.of(flow.target).priority_of_dscp(flow.dscp)
    payload = segment_bytes(flow, network)
    words = _window_words(payload)
    row[TCP_MARKS], row[TCP_HELD] = arena.spare(words), arena.spare(words)
    row[TCP_MASK] = words - 1
    row[TCP_STAMP] = NEVER
    window = row.view(np.float64)
    window[WINDOW_NOW] = FIRST_WINDOW
    window[WINDOW_MOST] = window[WINDOW_THRESHOLD] = max(2, TCP_MAX_WINDOW_BYTES // payload)
    # RFC 8257, 3.3: the first window's marks count in full.
    window[WINDOW_ALPHA] = 1.0


def _window_words(payload: int) -> int:
    most: int = max(2, TCP_MAX_WINDOW_BYTES // payload)
    return 1 << most.bit_length()
