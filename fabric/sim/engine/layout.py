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
    EVENT_RECEIVED,  # packet
    EVENT_WATCHDOG,  # ingress
    EVENT_STORM,  # ingress
    EVENT_STORM_END,  # ingress
    EVENT_LINK_DOWN,  # port
    EVENT_LINK_UP,  # port
) = range(16)

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
    TCP_TIMEOUT,  # picoseconds, the shortest
) = range(29)
HEAD_WORDS = 32
LOG_WORDS = 2

# Packet kinds. Data comes first.
DATA, SEGMENT, ACK, NAK, CNP, TCP_ACK = range(6)

# A packet is one cache line.
(
    PACKET_NEXT,  # next packet of its queue, or of the free list
    PACKET_TOS,  # kind << 8 | the IP header's TOS byte
    PACKET_QP,
    PACKET_PSN,  # DATA, SEGMENT: its number; ACK, NAK: the next that is expected; TCP_ACK: tcp.py
    PACKET_IP,  # IP packet in bytes
    PACKET_AT,  # on the wire: the port it arrives at; in a device: its ingress or NONE
    PACKET_ROUTE,  # word that holds the egress port to take next
    PACKET_READY,  # when it may leave its queue
) = range(8)
PACKET_WORDS = 8
PACKET_KIND_SHIFT = 8

# One egress queue (traffic class) of a port. The first eight words are those that
# every packet touches, here and in the other records: a cache line.
(
    QUEUE_HEAD,
    QUEUE_TAIL,
    QUEUE_BYTES,
    QUEUE_KMIN,  # NEVER where nothing is marked
    QUEUE_TAG,  # ETS: virtual time at which it may be served next
    QUEUE_COST,  # ETS: virtual time of one byte
    QUEUE_TX_PACKETS,
    QUEUE_TX_BYTES,
    QUEUE_KMAX,
    QUEUE_PMAX,  # of 2^32
    QUEUE_DROPS,
    QUEUE_MARKED,
    QUEUE_BYTE_TIME,  # of a class that is capped, as PORT_BYTE_TIME; 0: it is not
    QUEUE_OPEN,  # a capped class may send from then on
) = range(14)
QUEUE_WORDS = 16

# The receiving side of one priority of a port, and its pause state.
(
    INGRESS_RX_PACKETS,
    INGRESS_MTU,
    INGRESS_SIZE,  # 0: no buffer of its own, packets are lossy
    INGRESS_ALPHA,  # of 1024; 0: the thresholds are static
    INGRESS_BYTES,
    INGRESS_XOFF,
    INGRESS_MAX,
    INGRESS_PAUSING,  # 1: XOFF was sent, no XON since
    INGRESS_XON,
    INGRESS_HEADROOM_USED,  # dynamic thresholds: bytes that came in while pausing
    INGRESS_PFC,  # 1: this port sends and obeys PFC in this priority
    INGRESS_PORT,
    INGRESS_PRIORITY,
    INGRESS_CLASS,  # this port's traffic class of the priority
    INGRESS_SHARERS,  # bit mask of the priorities with PFC in the same class
    INGRESS_TX_PACKETS,
    INGRESS_PAUSING_SINCE,
    INGRESS_REFRESH,  # 1: a refresh is scheduled
    INGRESS_PAUSED_UNTIL,  # the peer has paused our sending; 0: it has not
    INGRESS_PAUSED_SINCE,
    INGRESS_EXPIRY,  # 1: an end of pause is scheduled
    INGRESS_DISCARDS,
    INGRESS_RX_PAUSES,
    INGRESS_TX_PAUSES,
    INGRESS_RX_PAUSE_TIME,
    INGRESS_TX_PAUSE_TIME,
    # Watchdog of the egress queue that the peer's pause frames stop
    INGRESS_DETECT,  # picoseconds of pause that are a storm; 0: no watchdog
    INGRESS_RESTORE,  # picoseconds without a pause frame that end it
    INGRESS_ACTION,
    INGRESS_WATCHED,  # 1: a look of the watchdog is scheduled
    INGRESS_STUCK_SINCE,  # when the pause that still holds began
    INGRESS_LAST_XOFF,
    INGRESS_STORM,  # 1: the watchdog has acted and not restored
    INGRESS_STORMS,
    # A NIC that pauses its switch
    INGRESS_STORMING,  # 1: it does so whatever its buffer holds
    INGRESS_STALL_SINCE,  # when XOFF was first sent without an XON since
    INGRESS_STALL,  # 1: that was counted as a warning; 2: as an error, pauses are off
) = range(37)
INGRESS_WORDS = 40

(
    # Serving the queues
    PORT_KICK,  # when the egress is looked at next; NEVER when nothing is scheduled
    PORT_NODE,  # switch, or NONE for a host
    PORT_BUSY,  # the wire is taken until then
    PORT_WAITING,  # bit mask of classes with packets in their queue
    PORT_PAUSED,  # bit mask of paused classes
    PORT_STRICT,  # bit mask of strict classes
    PORT_WEIGHTED,  # bit mask of classes with an ETS share
    PORT_VIRTUAL,  # virtual time of the ETS scheduler
    # The wire
    PORT_BYTE_TIME,
    PORT_FLIGHT,  # PORT_DELAY plus what a host at the far end needs to handle a packet
    PORT_PEER,
    PORT_DEPTH,  # bytes in all queues
    PORT_DEPTH_MAX,
    PORT_CLASSES,  # traffic class by priority, 8 bits each
    PORT_DISCARD,  # bit mask of classes whose packets are dropped instead of queued
    PORT_DELAY,  # picoseconds on the cable
    # Receiving
    PORT_REFUSE,  # bit mask of priorities whose packets are dropped; LINK_IS_DOWN
    PORT_MTU,
    PORT_RX_BYTES,
    PORT_LATENCY,  # picoseconds from a packet's last bit until it may leave the switch
    PORT_RX_BYTE_TIME,  # hosts: how fast the NIC empties its buffer; 0: at once
    PORT_RX_FREE,  # hosts: when it has emptied what is in it
    PORT_NP_MASK,  # hosts: priorities with a notification point
    PORT_NP_MARKED,
    # Hosts: the queue pairs
    PORT_QP_FIRST,  # the first of its queue pairs, which lie one after the other
    PORT_QP_COUNT,
    PORT_QP_TURN,  # the number of the one whose turn it is
    PORT_NP_CNP_SENT,
    PORT_RP_CNP_HANDLED,
    PORT_RP_CNP_IGNORED,
    PORT_OUT_OF_SEQUENCE,
    PORT_PACKET_SEQ_ERR,
    PORT_ACK_TIMEOUT_ERR,
    PORT_DUPLICATE_REQUEST,
    # Everything else
    PORT_REACTION,  # picoseconds until a received pause frame acts
    PORT_QUANTUM,  # picoseconds of one pause quantum
    PORT_STALL_LIMIT,  # hosts: picoseconds of pausing after which a NIC stops it
    PORT_RX_DISCARDS,
    PORT_TX_DISCARDS,
    PORT_RX_MTU_DROPS,
    PORT_LINK_DOWNS,
    PORT_LOST,  # packets that were on the cable when the link went down
    PORT_STALL_WARNINGS,
    PORT_STALL_ERRORS,
    PORT_CAPPED,  # bit mask of classes that may send less than the wire takes
) = range(45)
PORT_QUEUES = 48  # 8 queues by traffic class
PORT_INGRESSES = PORT_QUEUES + 8 * QUEUE_WORDS  # 8 by priority
PORT_PRIORITY_OF_DSCP = PORT_INGRESSES + 8 * INGRESS_WORDS  # 64 words
PORT_WORDS = PORT_PRIORITY_OF_DSCP + 64
# In PORT_REFUSE, beside eight bits for the priorities.
LINK_IS_DOWN = 1 << 8
# A mask of every traffic class.
ALL_CLASSES = 255

# What a watchdog does to a queue that it finds stuck (INGRESS_ACTION).
ACTION_DROP, ACTION_FORWARD, ACTION_SHUTDOWN = range(3)

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
RDMA, CUBIC, DCTCP = range(3)
(
    # What the NIC looks at to find who is next
    QP_NEXT,  # packet to send next
    QP_LIMIT,  # packets that may be sent: posted, and not more than DEPTH messages ahead
    QP_CLASS,  # the sender's traffic class
    QP_NEXT_TIME,  # pacing
    QP_TRANSPORT,  # RDMA, CUBIC, DCTCP
    QP_ACKED,  # first packet that is not acknowledged
    QP_SENT,  # highest packet ever sent, plus 1
    QP_SOURCE,  # port
    # Sending
    QP_PER_MESSAGE,  # packets
    QP_PAYLOAD,  # of a full packet
    QP_LAST_PAYLOAD,  # of a message's last packet
    QP_FIRST_EXTRA,  # header bytes that only a message's first packet has
    QP_TOS,
    QP_ROUTE,  # of data: word that holds the first switch's egress port
    QP_PRIORITY,  # at the sender
    QP_DEADLINE,  # retransmission
    QP_DEADLINE_SET,
    QP_MODE,  # STREAM, PING, PONG
    QP_DEPTH,  # messages that may be outstanding
    QP_STARTS,  # where the start times of outstanding messages lie
    QP_LEFT,  # messages still to post one by one (gap, ping)
    QP_STEP,  # packets that one posting adds
    QP_GAP,
    QP_POSTED,  # packets that the application has handed over
    # Receiving
    QP_EXPECTED,
    QP_NAK_SENT,
    QP_UNACKED,  # packets since the last ACK
    QP_LAST_CNP,
    QP_FLOW,
    QP_TARGET,  # port
    QP_ROUTE_BACK,  # of ACK, NAK and CNP
    QP_ACK_PRIORITY,  # at the receiver
    QP_ACK_TOS,
    QP_CNP_PRIORITY,
    QP_CNP_TOS,
    QP_CNP_INTERVAL,
    QP_PARTNER,  # of a PING its PONG and the other way round
) = range(37)

_RATE_CONTROL = 40
(
    # Reaction point: state
    RP_ACTIVE,
    RP_BYTE_RESET,  # 0: no byte counter
    RP_BYTES_LEFT,
    RP_CNP_SEEN,  # in the current alpha interval
    RP_ALPHA_AT,  # when the current alpha interval began
    RP_CUT_AT,  # time of the last cut
    RP_CUT_PENDING,
    RP_CUTS,
    RP_TIMER_AT,
    RP_TIMER_SET,  # 1: an event is scheduled for the timer
    RP_TIMER_STAGE,
    RP_BYTE_STAGE,
    # Reaction point: parameters
    RP_ENABLED,
    RP_PACED,  # 1: capped below the wire's speed, whether or not a CNP has come
    RP_CLAMPS,  # what makes the target follow a cut: CLAMP_ bits
    RP_ALPHA_INTERVAL,
    RP_CUT_INTERVAL,
    RP_TIMER,
    RP_STAGES,
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
    RATE_GD,  # of alpha, what a cut takes of the rate
    RATE_LEAST,  # fraction that a cut leaves at least
) = range(_RATE_CONTROL, _RATE_CONTROL + 31)
CLAMP_AFTER_TIME, CLAMP_ALWAYS = 1, 2

# A TCP connection is a queue pair whose reaction point makes room for this. RP_ACTIVE
# stays 0: TCP is clocked by its ACKs, not paced.
(
    TCP_MARKS,  # where the sender's word for each outstanding packet lies (tcp.py)
    TCP_HELD,  # where the receiver's word for each packet beyond a gap lies
    TCP_MASK,  # words of each, minus 1
    TCP_SACKED,  # outstanding packets that the receiver holds
    TCP_LOST,  # outstanding packets that are to be sent again
    TCP_AGAIN,  # none of those lies before this one
    TCP_HIGH,  # highest packet that the receiver has, plus 1
    TCP_JUDGED,  # packets before this one have been looked at for losses
    TCP_RECOVERY,  # the loss before this packet was answered
    TCP_BACKOFF,  # time-outs in a row
    TCP_WINDOW_END,  # DCTCP: where the current observation window ends
    TCP_WINDOW_ACKED,  # DCTCP: packets acknowledged in it
    TCP_WINDOW_MARKED,  # DCTCP: of them, with an echo of CE
    TCP_CE,  # receiver: whether the last packet was marked
    TCP_STAMP,  # of what was sent again, the least number of segments sent before; or NEVER
    TCP_FULL,  # until this packet is acknowledged the window counts as having been full
    TCP_EPOCH,  # CUBIC: when the current growth began; 0: with the next ACK
    # Float words, in packets but for alpha and K
    WINDOW_NOW,
    WINDOW_MOST,
    WINDOW_THRESHOLD,  # of slow start
    WINDOW_ALPHA,  # DCTCP: moving average of the fraction of marked packets
    WINDOW_BEFORE,  # CUBIC: W_max
    WINDOW_K,  # CUBIC: seconds from the epoch to W_max
    WINDOW_FRIENDLY,  # CUBIC: what Reno would have
) = range(_RATE_CONTROL + 1, _RATE_CONTROL + 25)
QP_WORDS = 72
