"""The memory that holds a simulation, and what each of its words means.

All state is one array ``m`` of 64-bit words. A record (port, queue pair,
packet, ...) is a run of words, and its *handle* is the offset of its first word:
``m[p + PORT_BUSY]`` is a field of the port with handle ``p``. So every compiled
function takes one array, a handle costs nothing to follow, and the memory can
grow without moving a record.

Times are integer picoseconds: every Ethernet speed from 10 to 800 Gbit/s sends
a byte in a whole number of them. Sizes are bytes: ``IP`` is the IP packet, a
*frame* adds Ethernet header and FCS (18; what buffers hold and counters count),
*wire* bytes add preamble and inter-packet gap too (38).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fabric.headroom import ETHERNET_OVERHEAD_BYTES

# The memory of a simulation.
Memory = NDArray[np.int64]

PS_PER_US = 1_000_000
NEVER = 1 << 62
NONE = -1

WIRE_BYTES = ETHERNET_OVERHEAD_BYTES
FRAME_BYTES = 18
# A PFC frame: 64 bytes with FCS, preamble 8, inter-packet gap 12.
PFC_WIRE_BYTES = 84
# One byte takes (PORT_BYTE_TIME >> BYTE_TIME_SHIFT) picoseconds.
BYTE_TIME_SHIFT = 10

# Events, and what the handle of each stands for.
(
    EVENT_ARRIVE,  # packet
    EVENT_KICK,  # port
    EVENT_XOFF,  # ingress
    EVENT_XON,  # ingress
    EVENT_PAUSE_END,  # ingress
    EVENT_PAUSE_REFRESH,  # ingress
    EVENT_POST,  # queue pair
    EVENT_RATE_TIMER,  # queue pair
    EVENT_RATE_CUT,  # queue pair
    EVENT_RETRANSMIT,  # queue pair
) = range(10)

# An event is two words: its time, and order << 36 | kind << 32 | handle. Events
# of one time run in the order in which they were scheduled (until the order wraps,
# every 67 million events).
EVENT_KIND_SHIFT = 32
EVENT_ORDER_SHIFT = 36
EVENT_ORDER_MASK = (1 << 26) - 1
EVENT_KIND_MASK = 15
EVENT_HANDLE_MASK = (1 << 32) - 1
EVENT_WORDS = 2

# The head of the memory, handle 0.
(
    NOW,
    ORDER,
    HEAP,  # where the heap lies
    HEAP_SIZE,
    HEAP_ROOM,
    FREE,  # first free packet
    FREE_COUNT,
    EVENTS,
    DATA_HOPS,
    SAMPLE_AT,
    SAMPLE_EVERY,
    SAMPLES,  # taken
    SAMPLE_ROOM,
    SAMPLE_DEPTHS,  # where (samples, ports) depths lie
    SAMPLE_GOODPUT,  # where (samples, flows) received bytes lie
    WARMUP,  # NEVER once it has passed
    PORTS,  # where the ports lie
    PORT_COUNT,
    FLOWS,  # where the flows lie
    FLOW_COUNT,
    LOG,  # where completed messages lie: flow, picoseconds
    LOG_SIZE,
    LOG_ROOM,
    LOG_CAPPED,  # 1: the log may not grow any more
    LOG_LOST,
    RANDOM,  # state of the random numbers
    RETRANSMIT,  # picoseconds without an ACK
    ACK_EVERY,  # packets
) = range(28)
HEAD_WORDS = 32
LOG_WORDS = 2

# Packet kinds.
DATA, ACK, NAK, CNP = range(4)

(
    PACKET_NEXT,  # next packet of its queue, or of the free list
    PACKET_KIND,
    PACKET_QP,
    PACKET_PSN,  # DATA: its number; ACK, NAK: the next number that is expected
    PACKET_IP,  # IP packet in bytes
    PACKET_TOS,
    PACKET_AT,  # on the wire: the port it arrives at; in a switch: its ingress or NONE
    PACKET_ROUTE,  # word that holds the egress port to take next
    PACKET_READY,  # when it may leave its queue
) = range(9)
PACKET_WORDS = 16

# One egress queue (traffic class) of a port.
(
    QUEUE_HEAD,
    QUEUE_TAIL,
    QUEUE_BYTES,
    QUEUE_TAG,  # ETS: virtual time at which it may be served next
    QUEUE_COST,  # ETS: virtual time of one byte
    QUEUE_KMIN,  # NEVER where nothing is marked
    QUEUE_KMAX,
    QUEUE_PMAX,  # of 2^32
    QUEUE_TX_PACKETS,
    QUEUE_TX_BYTES,
    QUEUE_DROPS,
    QUEUE_MARKED,
) = range(12)
QUEUE_WORDS = 16

# The receiving side of one priority of a port, and its pause state.
(
    INGRESS_PORT,
    INGRESS_PRIORITY,
    INGRESS_BYTES,
    INGRESS_MAX,
    INGRESS_SIZE,  # 0: no buffer of its own, packets are lossy
    INGRESS_XOFF,
    INGRESS_XON,
    INGRESS_ALPHA,  # of 1024; 0: the thresholds are static
    INGRESS_HEADROOM_USED,  # dynamic thresholds: bytes that came in while pausing
    INGRESS_PFC,  # 1: this port sends and obeys PFC in this priority
    INGRESS_PAUSING,  # 1: XOFF was sent, no XON since
    INGRESS_PAUSING_SINCE,
    INGRESS_REFRESH,  # 1: a refresh is scheduled
    INGRESS_PAUSED_UNTIL,  # the peer has paused our sending; 0: it has not
    INGRESS_PAUSED_SINCE,
    INGRESS_EXPIRY,  # 1: an end of pause is scheduled
    INGRESS_CLASS,  # this port's traffic class of the priority
    INGRESS_SHARERS,  # bit mask of the priorities with PFC in the same class
    INGRESS_MTU,
    INGRESS_RX_PACKETS,
    INGRESS_TX_PACKETS,
    INGRESS_DISCARDS,
    INGRESS_RX_PAUSES,
    INGRESS_TX_PAUSES,
    INGRESS_RX_PAUSE_TIME,
    INGRESS_TX_PAUSE_TIME,
) = range(26)
INGRESS_WORDS = 32

(
    PORT_PEER,
    PORT_NODE,  # switch, or NONE for a host
    PORT_BYTE_TIME,
    PORT_DELAY,  # picoseconds on the cable
    PORT_FLIGHT,  # the same plus what a host at the far end needs to handle a packet
    PORT_REACTION,  # picoseconds until a received pause frame acts
    PORT_QUANTUM,  # picoseconds of one pause quantum
    PORT_LATENCY,  # picoseconds from a packet's last bit until it may leave the switch
    PORT_MTU,
    PORT_STRICT,  # bit mask of strict classes
    PORT_WEIGHTED,  # bit mask of classes with an ETS share
    PORT_BUSY,  # the wire is taken until then
    PORT_KICK,  # when the egress is looked at next; NEVER when nothing is scheduled
    PORT_WAITING,  # bit mask of classes with packets in their queue
    PORT_PAUSED,  # bit mask of paused classes
    PORT_VIRTUAL,  # virtual time of the ETS scheduler
    PORT_DEPTH,  # bytes in all queues
    PORT_DEPTH_MAX,
    PORT_QP_FIRST,  # hosts: the first of its queue pairs, which lie one after the other
    PORT_QP_COUNT,
    PORT_QP_TURN,  # hosts: the number of the one whose turn it is
    PORT_NP_MASK,  # hosts: priorities with a notification point
    PORT_RX_PACKETS,
    PORT_TX_PACKETS,
    PORT_RX_BYTES,
    PORT_TX_BYTES,
    PORT_RX_DISCARDS,
    PORT_TX_DISCARDS,
    PORT_RX_MTU_DROPS,
    PORT_NP_MARKED,
    PORT_NP_CNP_SENT,
    PORT_RP_CNP_HANDLED,
    PORT_RP_CNP_IGNORED,
    PORT_OUT_OF_SEQUENCE,
    PORT_PACKET_SEQ_ERR,
    PORT_ACK_TIMEOUT_ERR,
    PORT_DUPLICATE_REQUEST,
) = range(37)
PORT_QUEUES = 40  # 8 queues by traffic class
PORT_INGRESSES = PORT_QUEUES + 8 * QUEUE_WORDS  # 8 by priority
PORT_PRIORITY_OF_DSCP = PORT_INGRESSES + 8 * INGRESS_WORDS  # 64 words
PORT_WORDS = PORT_PRIORITY_OF_DSCP + 64

# A switch.
(
    NODE_POOL,  # shared buffer that no lossless buffer or headroom reserves
    NODE_USED,  # of it
) = range(2)
NODE_WORDS = 2

(
    FLOW_BYTES,  # payload received in order
    FLOW_WARMUP_BYTES,  # the same at the end of warm-up
) = range(2)
FLOW_WORDS = 2

STREAM, PING, PONG = range(3)
(
    QP_SOURCE,  # port
    QP_TARGET,  # port
    QP_FLOW,
    QP_MODE,  # STREAM, PING, PONG
    QP_PARTNER,  # of a PING its PONG and the other way round
    QP_PRIORITY,  # at the sender
    QP_CLASS,  # the sender's traffic class of it
    QP_TOS,
    QP_ACK_PRIORITY,  # at the receiver
    QP_ACK_TOS,
    QP_CNP_PRIORITY,
    QP_CNP_TOS,
    QP_CNP_INTERVAL,
    QP_ROUTE,  # of data: word that holds the first switch's egress port
    QP_ROUTE_BACK,  # of ACK, NAK and CNP
    QP_PAYLOAD,  # of a full packet
    QP_LAST_PAYLOAD,  # of a message's last packet
    QP_FIRST_EXTRA,  # header bytes that only a message's first packet has
    QP_PER_MESSAGE,  # packets
    QP_DEPTH,  # messages that may be outstanding
    QP_STARTS,  # where the start times of outstanding messages lie
    QP_LEFT,  # messages still to post one by one (gap, ping)
    QP_STEP,  # packets that one posting adds
    QP_GAP,
    # Sender
    QP_POSTED,  # packets that the application has handed over
    QP_LIMIT,  # packets that may be sent: posted, and not more than DEPTH messages ahead
    QP_ACKED,  # first packet that is not acknowledged
    QP_NEXT,  # packet to send next
    QP_SENT,  # highest packet ever sent, plus 1
    QP_NEXT_TIME,  # pacing
    QP_DEADLINE,  # retransmission
    QP_DEADLINE_SET,
    # Receiver
    QP_EXPECTED,
    QP_NAK_SENT,
    QP_UNACKED,  # packets since the last ACK
    QP_LAST_CNP,
    # Reaction point: parameters
    RP_ENABLED,
    RP_ALPHA_INTERVAL,
    RP_CUT_INTERVAL,
    RP_TIMER,
    RP_BYTE_RESET,  # 0: no byte counter
    RP_STAGES,
    # Reaction point: state
    RP_ACTIVE,
    RP_TIMER_AT,
    RP_TIMER_SET,  # 1: an event is scheduled for the timer
    RP_TIMER_STAGE,
    RP_BYTE_STAGE,
    RP_BYTES_LEFT,
    RP_CNP_SEEN,  # in the current alpha interval
    RP_ALPHA_AT,  # when the current alpha interval began
    RP_CUT_AT,  # time of the last cut
    RP_CUT_PENDING,
    RP_CUTS,
    # Float words: bits a second, and fractions
    RATE_NOW,
    RATE_TARGET,
    RATE_ALPHA,
    RATE_LINE,
    RATE_MIN,
    RATE_AI,
    RATE_HAI,
    RATE_FIRST,  # rate to set on the first CNP; 0: cut as always
    RATE_KEEP,  # 1 - g
    RATE_ALPHA_START,
) = range(63)
QP_WORDS = 64
