"""Columns of the engine's arrays: one row of words for each port, flow and node.

Rows are addressed by the offset of their first word, so that ``ports[p + BUSY]``
needs no multiplication. All times are integer nanoseconds, all sizes bytes, all
rates bits a second, as in the simulator that is reproduced.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]
Reals = NDArray[np.float64]
Links = NDArray[np.int32]

NEVER = 1 << 62
NONE = -1

# Kinds of nodes: packets first, then what only the event wheel holds.
DATA, ACK, NACK, PAUSE, RESUME, TX_DONE, NEXT_SEND, CUT, RAISE = range(9)
SAMPLE_QUEUES, SAMPLE_SERIES, INPUT, INSTALL, START, WARM = range(9, 15)
KIND_MASK = 15
CE = 16  # congestion experienced on a data packet; on its ACK: congestion echoed
SIZE_SHIFT, SIZE_MASK = 8, 0xFFFF
FLOW_SHIFT = 24  # the flow's row, or the port's row of TX_DONE and NEXT_SEND

# Node rows: packets and timers.
NODE_WORDS = 4
NEXT, INFO, AT, SEQ = range(NODE_WORDS)
# AT: of a packet the place in ``hops`` of the port that it is queued at, or is
# sent to; of a pause frame the port that it stops; of a timer its time.

# Port rows.
PORT_WORDS = 40
(
    BUSY,
    Q0_HEAD,
    Q0_TAIL,
    Q3_HEAD,
    Q3_TAIL,
    PAUSED,
    DEPTH,
    TX_TIMES,
    DELAY,
    SWITCH,
    KMIN,
    KMAX,
    INGRESS,
    HEADROOM_USED,
    HEADROOM,
    SHIFT,
    PAUSING,
    PEER,
    TX_NODE,
    TX_SINCE,
    QP_FIRST,
    QP_COUNT,
    QP_LAST,
    QP_ROOM,
    SEND_NODE,
    SEND_PENDING,
    SEND_SINCE,
    PAUSES_RX,
    PAUSED_SINCE,
    PAUSED_NS,
    MARKS,
    DROPS,
    LATENCY_ACK,
    NEXT_UDP_PORT,
) = range(34)

# Flow rows.
FLOW_WORDS = 40
(
    SENT,
    END,
    ACKED,
    NEXT_AVAILABLE,
    GAP,
    RATE,
    TARGET,
    STAGE,
    FIRST_CNP,
    CNP_SINCE_TICK,
    TICKED,
    CHECK_BASE,
    CUT_DUE,
    RAISE_DUE,
    CUT_NODE,
    RAISE_NODE,
    CUT_PENDING,
    RAISE_PENDING,
    EXPECTED,
    RECEIVED,
    RECEIVED_BEFORE,
    NACK_NOT_BEFORE,
    LAST_NACK,
    HOST,
    OUT_PATH,
    BACK_PATH,
    STARTED,
    MESSAGE_BYTES,
    MESSAGES_LEFT,
    MESSAGE,
    CUTS,
    LINE_RATE,
    SOURCE_NUMBER,
    TARGET_NUMBER,
    SOURCE_PORT,
    TARGET_PORT,
    PINNED,
    FLOW_NUMBER,
    ALPHA,  # a real number: see Memory.alphas
) = range(39)

# Rate control and other settings: the words of ``settings``.
SETTINGS = 64
(
    NOW,
    END_TIME,
    SLOT_START,
    NEAR_END,
    FREE,
    FREE_COUNT,
    FREE_LOW,
    ALPHA_EVERY,
    CUT_EVERY,
    RAISE_EVERY,
    STAGES,
    RATE_AI,
    RATE_HAI,
    MIN_RATE,
    CLAMP,
    ECN,
    ACK_FIRST,
    RESERVE,
    RESUME_OFFSET,
    PAYLOAD,
    SERIES_EVERY,
    SERIES_PORT,
    SERIES_COUNT,
    SERIES_ROOM,
    SAMPLE_EVERY,
    SAMPLE_COUNT,
    SAMPLE_ROOM,
    LOG_COUNT,
    LOG_ROOM,
    SWITCH_PORTS,
    FLOWS,
    DATA_HOPS,
    EVENTS,
    INPUTS,
    INPUT_NEXT,
    NODE_COUNT,
) = range(36)

OUT_PINNED, BACK_PINNED = 1, 2  # bits of PINNED
LOG_WORDS = 3
MAX_HOPS = 16  # ports on one path, the sender's own not counted


class Arrays(NamedTuple):
    """All state of a run: arrays only, so that a stopped run can go on.

    ``near`` holds head and tail of each bucket of one nanosecond, ``bits`` which
    of them are not empty, ``far`` head and tail of each slot beyond. ``hops`` are
    paths: pairs of (egress port, ingress port) rows, ended by (NONE, receiver's
    port). ``shares`` is each switch's unused shared buffer.
    """

    settings: Words
    gains: Reals
    random: NDArray[np.uint64]
    ports: Words
    flows: Words
    alphas: Reals
    nodes: Words
    near: Links
    bits: Words
    far: Links
    hops: Words
    tx_times: Words
    shares: Words
    qps: Words
    inputs: Words
    switch_ports: Words
    routes: Words
    choices: Words
    samples: Links
    series: Words
    series_alphas: Reals
    log: Words


class Memory(NamedTuple):
    """The same as pointers, for compiled code: see ``pointer``.

    ``slot_ns`` is the length of a slot of the event wheel, a power of two.
    """

    settings: Words
    gains: Reals
    random: NDArray[np.uint64]
    ports: Words
    flows: Words
    alphas: Reals
    nodes: Words
    near: Links
    bits: Words
    far: Links
    hops: Words
    tx_times: Words
    shares: Words
    qps: Words
    inputs: Words
    switch_ports: Words
    routes: Words
    choices: Words
    samples: Links
    series: Words
    series_alphas: Reals
    log: Words
    slot_ns: int
