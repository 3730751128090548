"""What goes into a simulation and what comes out; plain values only.

The engine behind ``fabric.sim.run`` may change; this does not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fabric.counters import Counter
from fabric.topology import PortRef


@dataclass(frozen=True, slots=True)
class Flow:
    """One sender to one receiver, on ``qps`` queue pairs.

    ``message_bytes`` is what one work request carries; each QP sends
    ``messages`` of them back to back (None: until the simulation ends), the
    first at ``start_us``. ``gap_us`` waits between a message's completion and
    the next. A ``ping`` flow sends the next message only when the peer has
    answered with one of the same size, as ib_send_lat does.

    ``transport`` "rdma" is RoCE, marked as the sending NIC is set; "tcp" is CUBIC
    without ECN and "dctcp" is DCTCP with it, both marked with ``dscp``, ``qps``
    connections of stream messages. ``path`` pins every queue pair to the egress
    ports of one of ``Topology.paths``, or of any other way, from the sending NIC's
    own port on; answers come back the same way. None: ECMP by hash. ``tos`` and
    ``tos_back`` are the TOS bytes that the applications at both ends set themselves
    (perftest ``--tclass``); they count where the NIC sets none.
    """

    source: PortRef
    target: PortRef
    dscp: int
    message_bytes: int = 65536
    messages: int | None = None
    qps: int = 1
    start_us: float = 0.0
    gap_us: float = 0.0
    kind: Literal["stream", "ping"] = "stream"
    transport: Literal["rdma", "tcp", "dctcp"] = "rdma"
    path: tuple[PortRef, ...] | None = None
    tos: int | None = None
    tos_back: int | None = None


@dataclass(frozen=True, slots=True)
class PauseStorm:
    """A NIC that pauses its switch in one priority, whatever it receives.

    ``end_us`` None: until the simulation ends, or the NIC's own stall prevention
    stops it.
    """

    port: PortRef
    priority: int
    start_us: float = 0.0
    end_us: float | None = None


@dataclass(frozen=True, slots=True)
class SlowReceiver:
    """A host that takes packets out of its NIC's receive buffer at ``rate_bps`` only."""

    port: PortRef
    rate_bps: float


@dataclass(frozen=True, slots=True)
class LinkDown:
    """A cable that is out from ``down_us`` to ``up_us`` (None: for good); either port names it."""

    port: PortRef
    down_us: float
    up_us: float | None = None


Fault = PauseStorm | SlowReceiver | LinkDown


@dataclass(frozen=True, slots=True)
class SimOptions:
    """Times of a simulation, and what breaks in it. Goodput counts from ``warmup_us`` on."""

    duration_us: float
    warmup_us: float = 0.0
    sample_us: float = 10.0
    seed: int = 1
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class PortQueueStats:
    """Egress queue of one switch port over the run, all classes together, in bytes."""

    port: PortRef
    mean_bytes: float
    p50_bytes: float
    p99_bytes: float
    max_bytes: float


@dataclass(frozen=True)
class SimResult:
    """What a simulation saw.

    ``goodput_bps`` has one entry a flow; ``goodput_series_bps`` is (flows,
    samples), each over one ``sample_us``; ``messages_us`` holds one array a
    flow: the time that each completed message took, from its first packet to its
    ACK (stream), or half the round trip (ping), in microseconds. ``counters`` are
    the deltas that this traffic adds to the devices' counters, from the first
    microsecond on; what did not move is left out. ``queue_series_bytes`` is
    (ports, samples) in the order of ``queues``. ``notes`` are for people: what was not
    as the flows asked, and each PFC deadlock with the ports that wait for each other.
    """

    flows: tuple[Flow, ...]
    options: SimOptions
    goodput_bps: NDArray[np.float64]
    goodput_series_bps: NDArray[np.float64]
    messages_us: tuple[NDArray[np.float64], ...]
    queues: tuple[PortQueueStats, ...]
    queue_series_bytes: NDArray[np.float64]
    counters: tuple[Counter, ...]
    data_hops: int
    wall_s: float
    notes: tuple[str, ...] = field(default=())
