"""One pair's test, whatever measures it."""

from __future__ import annotations

from dataclasses import dataclass

from fabric.topology import PortRef
from validation.probes.hosts.options import PINGS, Tool
from validation.traffic import Stream

# perftest refuses fewer (MIN_ITER).
MIN_ITERATIONS = 5


@dataclass(frozen=True, slots=True)
class PairTest:
    """One pair of one stream: what runs between a client (its source) and a server."""

    name: str
    source: PortRef
    target: PortRef
    stream: Stream
    tool: Tool
    iterations: int | None
    seconds: int | None


@dataclass(frozen=True, slots=True)
class End:
    """One end of a pair: its verbs device, GID index and the TOS that it sets itself.

    ``ack_timeout`` is InfiniBand's code of what a queue pair waits for an acknowledgement
    (4.096 us * 2**code); None: as the instrument has it.
    """

    rdma: str
    gid_index: str
    tos: int | None
    ack_timeout: int | None = None


def iterations_of(stream: Stream, pings: int = PINGS) -> int | None:
    """How many messages are sent: as many as are planned, or more."""
    if stream.kind == "ping":
        return max(pings, stream.messages or 0)
    return None if stream.messages is None else max(MIN_ITERATIONS, stream.messages)
