"""The ring algorithms over one transport.

Allreduce is reduce-scatter then allgather (Patarasuk & Yuan, "Bandwidth
optimal all-reduce algorithms", JPDC 2009): with n ranks every rank sends and
receives 2(n-1)/n of the array. The array is cut into n chunks, a chunk into
segments; a segment is passed on as soon as it has been combined, so that all
links carry data while kernels run. A chunk is combined along one path only,
whose order depends on n and the chunk alone: all ranks end with the same bits,
and so does a second run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trainer.collective import kernels
from trainer.collective.dtypes import ReduceOp
from trainer.collective.errors import MismatchError
from trainer.collective.stamp import Stamp
from trainer.collective.transport import Incoming, Patience, Region, Transport

CACHE_LINE_BYTES = 64


@dataclass(frozen=True)
class Ring:
    """A transport with what every collective needs beside it.

    ``segment_bytes`` is how much is passed on at once.
    """

    transport: Transport
    patience: Patience
    segment_bytes: int

    def take(self, into: np.ndarray | None, stamp: Stamp, nbytes: int) -> Incoming:
        """The next segment; MismatchError if the left neighbour is doing something else."""
        incoming = self.transport.take(into, self.patience)
        if incoming.stamp != stamp.packed or incoming.view.size != nbytes:
            left = (self.transport.rank - 1) % self.transport.size
            theirs = Stamp.unpack(incoming.stamp)
            raise MismatchError(
                f"rank {left} and rank {self.transport.rank} disagree: "
                f"rank {left} is in {theirs}, rank {self.transport.rank} in {stamp}."
            )
        return incoming


def split(count: int, parts: int, itemsize: int) -> list[tuple[int, int]]:
    """Cut ``count`` elements into ``parts`` ranges on cache lines; some may be empty."""
    grain = max(1, CACHE_LINE_BYTES // itemsize)
    step = -(-count // (parts * grain)) * grain
    return [(min(i * step, count), min((i + 1) * step, count)) for i in range(parts)]


def _segments(span: tuple[int, int], step: int) -> Iterator[tuple[int, int]]:
    """Ranges of at most ``step``; an empty span is one empty segment, so that ranks still meet."""
    start, stop = span
    yield (start, min(start + step, stop))
    for at in range(start + step, stop, step):
        yield (at, min(at + step, stop))


def allreduce(
    ring: Ring, region: Region, offset: int, count: int, dtype: np.dtype, op: ReduceOp, stamp: Stamp
) -> None:
    """Combine ``count`` elements at byte ``offset`` of every rank's region, in place."""
    transport = ring.transport
    n, rank, itemsize = transport.size, transport.rank, dtype.itemsize
    storage = kernels.storage_dtype(dtype)
    combine, divide = kernels.combiner(dtype, op), kernels.divider(dtype)
    octets = region.memory[offset : offset + count * itemsize]
    mine = octets.view(storage)
    chunks = split(count, n, itemsize)
    step = max(1, ring.segment_bytes // itemsize)

    def post(a: int, b: int) -> None:
        transport.post(region, offset + a * itemsize, offset + b * itemsize, stamp.packed)

    for a, b in _segments(chunks[rank], step):
        post(a, b)
    for hop in range(1, n):
        for a, b in _segments(chunks[(rank - hop) % n], step):
            incoming = ring.take(None, stamp, (b - a) * itemsize)
            combine(mine[a:b], incoming.view.view(storage))
            transport.done()
            if hop == n - 1 and op is ReduceOp.AVERAGE:
                divide(mine[a:b], n)
            post(a, b)
    for hop in range(n - 1):
        for a, b in _segments(chunks[(rank - hop) % n], step):
            target = octets[a * itemsize : b * itemsize]
            incoming = ring.take(target, stamp, target.size)
            if not incoming.placed:
                np.copyto(target, incoming.view)
            transport.done()
            if hop < n - 2:
                post(a, b)
    transport.drain(ring.patience)


def reduce(
    ring: Ring,
    region: Region,
    offset: int,
    count: int,
    dtype: np.dtype,
    op: ReduceOp,
    root: int,
    stamp: Stamp,
) -> None:
    """Combine ``count`` elements of every rank into the root's region.

    Segments travel from the root's right neighbour around to the root, each
    rank adding its own; the other ranks' regions are used up by that.
    """
    transport = ring.transport
    n, rank, itemsize = transport.size, transport.rank, dtype.itemsize
    storage = kernels.storage_dtype(dtype)
    combine, divide = kernels.combiner(dtype, op), kernels.divider(dtype)
    mine = region.memory[offset : offset + count * itemsize].view(storage)
    for a, b in _segments((0, count), max(1, ring.segment_bytes // itemsize)):
        if rank != (root + 1) % n:
            incoming = ring.take(None, stamp, (b - a) * itemsize)
            combine(mine[a:b], incoming.view.view(storage))
            transport.done()
        if rank != root:
            transport.post(region, offset + a * itemsize, offset + b * itemsize, stamp.packed)
        elif op is ReduceOp.AVERAGE:
            divide(mine[a:b], n)
    transport.drain(ring.patience)


def broadcast(
    ring: Ring, region: Region, offset: int, nbytes: int, root: int, stamp: Stamp
) -> None:
    """Copy the root's bytes to every rank, passed on from neighbour to neighbour."""
    transport = ring.transport
    octets = region.memory[offset : offset + nbytes]
    last = (root - 1) % transport.size
    for a, b in _segments((0, nbytes), ring.segment_bytes):
        if transport.rank != root:
            incoming = ring.take(octets[a:b], stamp, b - a)
            if not incoming.placed:
                np.copyto(octets[a:b], incoming.view)
            transport.done()
        if transport.rank != last:
            transport.post(region, offset + a, offset + b, stamp.packed)
    transport.drain(ring.patience)


def allgather(ring: Ring, region: Region, block_bytes: int, stamp: Stamp) -> None:
    """Fill a region of ``size`` blocks: block i comes from rank i, who has put it there."""
    transport = ring.transport
    n, rank = transport.size, transport.rank

    def span(block: int) -> tuple[int, int]:
        return (block * block_bytes, (block + 1) * block_bytes)

    for a, b in _segments(span(rank), ring.segment_bytes):
        transport.post(region, a, b, stamp.packed)
    for hop in range(1, n):
        for a, b in _segments(span((rank - hop) % n), ring.segment_bytes):
            target = region.memory[a:b]
            incoming = ring.take(target, stamp, b - a)
            if not incoming.placed:
                np.copyto(target, incoming.view)
            transport.done()
            if hop < n - 1:
                transport.post(region, a, b, stamp.packed)
    transport.drain(ring.patience)
