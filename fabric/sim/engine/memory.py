"""Laying out the memory of a simulation, and letting it grow.

Records never move. What needs more room gets it at the end: packets are added
to the free list, the heap and the log are copied and leave their old place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabric.sim.engine.layout import (
    EVENT_KIND_SHIFT,
    EVENT_ORDER_SHIFT,
    EVENT_WORDS,
    FLOW_COUNT,
    FLOW_WORDS,
    FLOWS,
    FREE,
    FREE_COUNT,
    HEAD_WORDS,
    HEAP,
    HEAP_ROOM,
    HEAP_SIZE,
    INGRESS_PORT,
    INGRESS_PRIORITY,
    INGRESS_WORDS,
    LOG,
    LOG_CAPPED,
    LOG_ROOM,
    LOG_SIZE,
    LOG_WORDS,
    NEVER,
    NODE_WORDS,
    NONE,
    ORDER,
    PACKET_NEXT,
    PACKET_WORDS,
    PORT_COUNT,
    PORT_INGRESSES,
    PORT_KICK,
    PORT_NODE,
    PORT_QUEUES,
    PORT_WORDS,
    PORTS,
    QP_DEPTH,
    QP_STARTS,
    QP_WORDS,
    QUEUE_HEAD,
    QUEUE_KMIN,
    QUEUE_TAIL,
    QUEUE_WORDS,
    RANDOM,
    SAMPLE_AT,
    SAMPLE_DEPTHS,
    SAMPLE_GOODPUT,
    SAMPLE_ROOM,
    WARMUP,
    Memory,
)
from fabric.sim.engine.loop import SLACK

# Completed messages that are kept; 16 bytes each.
MAX_LOGGED = 1 << 22
_LINE_WORDS = 8


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many of each thing a simulation has.

    ``hops`` is the length of all routes together, ``depth`` how many messages a
    queue pair may have outstanding, ``spare`` how many words :meth:`Arena.spare` gives.
    """

    ports: int = 0
    nodes: int = 0
    qps: int = 0
    flows: int = 0
    hops: int = 0
    depth: int = 1
    samples: int = 0
    spare: int = 0
    packets: int = 8 * SLACK
    events: int = 4 * SLACK
    logged: int = 64 * SLACK


def _zeros(words: int) -> Memory:
    """Memory that starts on a cache line, so that records of whole lines keep to theirs."""
    room = np.zeros(words + _LINE_WORDS, dtype=np.int64)
    skip = -(room.ctypes.data // room.itemsize) % _LINE_WORDS
    return room[skip : skip + words]


class Arena:
    """The memory ``m`` of one simulation, and where its tables lie.

    ``ports``, ``nodes``, ``qps``, ``flows`` and ``routes`` are the handles of the
    first record of each table; records follow each other. ``packets`` counts all
    packets that there are, free or not.
    """

    def __init__(self, sizes: Sizes, seed: int) -> None:
        self.sizes = sizes
        self.packets = 0
        self._end = HEAD_WORDS
        self.ports = self._reserve(sizes.ports * PORT_WORDS)
        self.nodes = self._reserve(sizes.nodes * NODE_WORDS)
        self.qps = self._reserve(sizes.qps * QP_WORDS)
        self.flows = self._reserve(sizes.flows * FLOW_WORDS)
        self.routes = self._reserve(sizes.hops)
        self._spare = self._reserve(sizes.spare)
        starts = self._reserve(sizes.qps * sizes.depth)
        depths = self._reserve(sizes.samples * sizes.ports)
        goodput = self._reserve(sizes.samples * sizes.flows)
        heap = self._reserve(sizes.events * EVENT_WORDS)
        log = self._reserve(sizes.logged * LOG_WORDS)
        packets = self._reserve(sizes.packets * PACKET_WORDS)
        self.m: Memory = _zeros(self._end)
        m = self.m
        m[HEAP], m[HEAP_ROOM] = heap, sizes.events
        m[LOG], m[LOG_ROOM] = log, sizes.logged
        m[SAMPLE_DEPTHS], m[SAMPLE_GOODPUT], m[SAMPLE_ROOM] = depths, goodput, sizes.samples
        m[PORTS], m[PORT_COUNT] = self.ports, sizes.ports
        m[FLOWS], m[FLOW_COUNT] = self.flows, sizes.flows
        m[WARMUP] = m[SAMPLE_AT] = NEVER
        m[RANDOM] = seed
        m[FREE] = NONE
        self._free(packets, sizes.packets)
        self._start_ports()
        for number in range(sizes.qps):
            m[self.qp(number) + QP_STARTS] = starts + number * sizes.depth
            m[self.qp(number) + QP_DEPTH] = sizes.depth

    def _reserve(self, words: int) -> int:
        at = self._end
        self._end += -(-words // _LINE_WORDS) * _LINE_WORDS
        return at

    def spare(self, words: int) -> int:
        """The next ``words`` spare words, all 0."""
        at = self._spare
        self._spare += words
        return at

    def port(self, number: int) -> int:
        """Handle of this port."""
        return self.ports + PORT_WORDS * number

    def node(self, number: int) -> int:
        """Handle of this switch."""
        return self.nodes + NODE_WORDS * number

    def qp(self, number: int) -> int:
        """Handle of this queue pair."""
        return self.qps + QP_WORDS * number

    def flow(self, number: int) -> int:
        """Handle of this flow."""
        return self.flows + FLOW_WORDS * number

    def table(self, start: int, rows: int, words: int) -> NDArray[np.int64]:
        """Records as the rows of an array that shares the memory."""
        return self.m[start : start + rows * words].reshape(rows, words)

    def port_table(self) -> NDArray[np.int64]:
        """All ports: (ports, PORT_WORDS)."""
        return self.table(self.ports, self.sizes.ports, PORT_WORDS)

    def queue_table(self) -> NDArray[np.int64]:
        """All egress queues: (ports, classes, QUEUE_WORDS)."""
        part = self.port_table()[:, PORT_QUEUES : PORT_QUEUES + 8 * QUEUE_WORDS]
        return part.reshape(self.sizes.ports, 8, QUEUE_WORDS, copy=False)

    def ingress_table(self) -> NDArray[np.int64]:
        """All ingresses: (ports, priorities, INGRESS_WORDS)."""
        part = self.port_table()[:, PORT_INGRESSES : PORT_INGRESSES + 8 * INGRESS_WORDS]
        return part.reshape(self.sizes.ports, 8, INGRESS_WORDS, copy=False)

    def qp_table(self) -> NDArray[np.int64]:
        """All queue pairs: (queue pairs, QP_WORDS)."""
        return self.table(self.qps, self.sizes.qps, QP_WORDS)

    def schedule(self, events: Sequence[tuple[int, int, int]]) -> None:
        """Put the first events, each (time, kind, handle), into the empty heap.

        The heap must have room for them. Equal times keep their order.
        """
        heap = self.table(int(self.m[HEAP]), int(self.m[HEAP_ROOM]), EVENT_WORDS)
        for order, (time, kind, handle) in enumerate(sorted(events, key=lambda event: event[0])):
            # A sorted list is a heap.
            heap[order] = time, order << EVENT_ORDER_SHIFT | kind << EVENT_KIND_SHIFT | handle
        self.m[HEAP_SIZE] = self.m[ORDER] = len(events)

    def grow(self) -> None:
        """Twice the room wherever room is short."""
        if self.m[HEAP_SIZE] + SLACK > self.m[HEAP_ROOM]:
            self._move(HEAP, HEAP_ROOM, EVENT_WORDS)
        if self.m[LOG_SIZE] + SLACK > self.m[LOG_ROOM]:
            if 2 * self.m[LOG_ROOM] > MAX_LOGGED:
                self.m[LOG_CAPPED] = 1
            else:
                self._move(LOG, LOG_ROOM, LOG_WORDS)
        if self.m[FREE_COUNT] < SLACK:
            count = max(self.sizes.packets, (len(self.m) // 4) // PACKET_WORDS)
            self._free(self._append(count * PACKET_WORDS), count)

    def _append(self, words: int) -> int:
        at = self._reserve(words)
        grown = _zeros(self._end)
        grown[: len(self.m)] = self.m
        self.m = grown
        return at

    def _move(self, place: int, room: int, words: int) -> None:
        old, size = int(self.m[place]), int(self.m[room]) * words
        new = self._append(2 * size)
        self.m[new : new + size] = self.m[old : old + size]
        self.m[place] = new
        self.m[room] *= 2

    def _free(self, start: int, count: int) -> None:
        """Add these packets to the free list."""
        if count == 0:
            return
        handles = start + PACKET_WORDS * np.arange(count)
        self.m[handles[:-1] + PACKET_NEXT] = handles[1:]
        self.m[handles[-1] + PACKET_NEXT] = self.m[FREE]
        self.m[FREE] = start
        self.m[FREE_COUNT] += count
        self.packets += count

    def _start_ports(self) -> None:
        ports = self.port_table()
        ports[:, PORT_KICK] = NEVER
        ports[:, PORT_NODE] = NONE
        queues = self.queue_table()
        queues[..., [QUEUE_HEAD, QUEUE_TAIL]] = NONE
        queues[..., QUEUE_KMIN] = NEVER
        ingresses = self.ingress_table()
        ingresses[..., INGRESS_PRIORITY] = np.arange(8)
        ingresses[..., INGRESS_PORT] = (
            self.ports + PORT_WORDS * np.arange(self.sizes.ports)[:, np.newaxis]
        )
