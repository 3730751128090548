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

import numpy as np

from trainer.collective import kernels
from trainer.collective.disagreement import disagreement
from trainer.collective.dtypes import ReduceOp
from trainer.collective.engine import (
    WORKSPACE_BYTES,
    Place,
    Regions,
    parts_in,
    parts_of,
)
from trainer.collective.errors import MismatchError
from trainer.collective.stamp import Stamp
from trainer.collective.transport import Circulating, Incoming, Patience, Region, Transport

CACHE_LINE_BYTES = 64
# Fewer calls to the kernel against what stays in a core's cache until it is combined.
SEGMENT_BYTES = 1 << 20


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


class RingEngine:
    """See :class:`~trainer.collective.engine.Engine`; ``segment_bytes`` is passed on at once."""

    def __init__(
        self, transport: Transport, patience: Patience, *, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        self.name = transport.name
        self.rank = transport.rank
        self.size = transport.size
        self._transport = transport
        self._circulating = transport if isinstance(transport, Circulating) else None
        self._patience = patience
        self._segment_bytes = segment_bytes
        self._regions = Regions()
        self._workspace: Region | None = None

    def allocate(self, nbytes: int) -> Region:
        """See :class:`~trainer.collective.engine.Engine`."""
        region = self._transport.allocate(nbytes)
        self._regions.add(region)
        return region

    def free(self, region: Region) -> None:
        """See :class:`~trainer.collective.engine.Engine`."""
        self._regions.discard(region)
        self._transport.free(region)

    def adopt(self, memory: np.ndarray) -> Region:
        """Make memory of somebody else's (uint8, from a page on) reachable; freed like any."""
        return self._transport.register(memory)

    def allreduce(self, array: np.ndarray, op: ReduceOp, stamp: Stamp) -> None:
        """See :class:`~trainer.collective.engine.Engine`."""
        divisor = self.size if op is ReduceOp.AVERAGE else 1
        for part, place, held, said in self._placed(array, stamp):
            self.combine(place, held, op, said, divisor=divisor)
            if held is not part:
                np.copyto(part, held)

    def combine(
        self, place: Place, array: np.ndarray, op: ReduceOp, stamp: Stamp, *, divisor: int
    ) -> None:
        """Allreduce an array that lies at ``place``, then divide it by ``divisor``."""
        n, rank, itemsize = self.size, self.rank, array.itemsize
        mine = array.view(kernels.storage_dtype(array.dtype))
        form = kernels.form_of(array.dtype)
        if self._circulating is not None:
            differs = self._circulating.circulate(
                mine, int(op), form, divisor, stamp.packed, self._patience
            )
            if differs is not None:
                raise self._disagreement(Stamp.unpack(differs[1]), stamp, differs[0])
            return
        octets = array.view(np.uint8)
        chunks = split(array.size, n, itemsize)
        step = max(1, self._segment_bytes // itemsize)
        for a, b in _segments(chunks[rank], step):
            self._post(place, a * itemsize, b * itemsize, stamp)
        for hop in range(1, n):
            for a, b in _segments(chunks[(rank - hop) % n], step):
                incoming = self._take(None, (b - a) * itemsize, stamp)
                kernels.combine(mine[a:b], incoming.view.view(mine.dtype), int(op), form)
                self._transport.done()
                if hop == n - 1 and divisor > 1:
                    kernels.divide(mine[a:b], divisor, form)
                self._post(place, a * itemsize, b * itemsize, stamp)
        for hop in range(n - 1):
            for a, b in _segments(chunks[(rank - hop) % n], step):
                self._fetch(octets[a * itemsize : b * itemsize], stamp)
                if hop < n - 2:
                    self._post(place, a * itemsize, b * itemsize, stamp)
        self._transport.drain(self._patience)

    def reduce(self, array: np.ndarray, root: int, op: ReduceOp, stamp: Stamp) -> None:
        """See :class:`~trainer.collective.engine.Engine`.

        Segments travel from the root's right neighbour around to the root,
        each rank adding its own.
        """
        for part, place, held, said in self._placed(array, stamp):
            divisor = self.size if op is ReduceOp.AVERAGE else 1
            self.reduce_at(place, held, root, op, said, divisor=divisor)
            if held is not part and self.rank == root:
                np.copyto(part, held)

    def broadcast(self, array: np.ndarray, root: int, stamp: Stamp) -> None:
        """See :class:`~trainer.collective.engine.Engine`; passed on from neighbour to neighbour."""
        for part, place, held, said in self._placed(array, stamp, filled=self.rank == root):
            self.broadcast_at(place, held, root, said)
            if held is not part and self.rank != root:
                np.copyto(part, held)

    def allgather(self, block: np.ndarray, into: np.ndarray, stamp: Stamp) -> None:
        """See :class:`~trainer.collective.engine.Engine`."""
        into[self.rank] = block
        done = 0
        for part in parts_of(block, max(1, WORKSPACE_BYTES // self.size)):
            wanted = into[:, done : done + part.size]
            held = self._stage(self.size * part.size)
            rows = held.memory[: self.size * part.size].reshape(self.size, part.size)
            rows[self.rank] = part
            self._gather_part(Place(held, 0), rows, stamp)
            np.copyto(wanted, rows)
            done += part.size

    def barrier(self, stamp: Stamp) -> None:
        """See :class:`~trainer.collective.engine.Engine`."""
        place = Place(self._stage(self.size), 0)
        self._gather_part(place, place.region.memory[: self.size].reshape(self.size, 1), stamp)

    def close(self) -> None:
        """See :class:`~trainer.collective.engine.Engine`."""
        self._workspace = None
        self._transport.close()

    def broadcast_at(self, place: Place, array: np.ndarray, root: int, stamp: Stamp) -> None:
        """Overwrite the bytes (uint8) at ``place`` with the root's."""
        last = (root - 1) % self.size
        for a, b in _segments((0, array.size), self._segment_bytes):
            if self.rank != root:
                self._fetch(array[a:b], stamp)
            if self.rank != last:
                self._post(place, a, b, stamp)
        self._transport.drain(self._patience)

    def reduce_at(
        self,
        place: Place,
        array: np.ndarray,
        root: int,
        op: ReduceOp,
        stamp: Stamp,
        *,
        divisor: int,
    ) -> None:
        """Combine arrays that lie at ``place`` into the root's, then divide it."""
        itemsize = array.itemsize
        mine = array.view(kernels.storage_dtype(array.dtype))
        form = kernels.form_of(array.dtype)
        for a, b in _segments((0, array.size), max(1, self._segment_bytes // itemsize)):
            if self.rank != (root + 1) % self.size:
                incoming = self._take(None, (b - a) * itemsize, stamp)
                kernels.combine(mine[a:b], incoming.view.view(mine.dtype), int(op), form)
                self._transport.done()
            if self.rank != root:
                self._post(place, a * itemsize, b * itemsize, stamp)
            elif divisor > 1:
                kernels.divide(mine[a:b], divisor, form)
        self._transport.drain(self._patience)

    def _gather_part(self, place: Place, rows: np.ndarray, stamp: Stamp) -> None:
        """Fill row i from rank i, who has put it there."""
        n, rank, width = self.size, self.rank, rows.shape[1]
        for a, b in _segments((0, width), self._segment_bytes):
            self._post(place, rank * width + a, rank * width + b, stamp)
        for hop in range(1, n):
            row = (rank - hop) % n
            for a, b in _segments((0, width), self._segment_bytes):
                self._fetch(rows[row, a:b], stamp)
                if hop < n - 1:
                    self._post(place, row * width + a, row * width + b, stamp)
        self._transport.drain(self._patience)

    def _post(self, place: Place, start: int, stop: int, stamp: Stamp) -> None:
        offset = place.offset
        self._transport.post(place.region, offset + start, offset + stop, stamp.packed)

    def _fetch(self, target: np.ndarray, stamp: Stamp) -> None:
        """The next segment into ``target`` (uint8)."""
        incoming = self._take(target, target.size, stamp)
        if not incoming.placed:
            np.copyto(target, incoming.view)
        self._transport.done()

    def _take(self, into: np.ndarray | None, nbytes: int, stamp: Stamp) -> Incoming:
        """The next segment; MismatchError if the left neighbour is doing something else."""
        incoming = self._transport.take(into, nbytes, self._patience)
        if incoming.stamp != stamp.packed or incoming.view.size != nbytes:
            left = (self.rank - 1) % self.size
            raise self._disagreement(Stamp.unpack(incoming.stamp), stamp, left)
        return incoming

    def _disagreement(self, theirs: Stamp, stamp: Stamp, peer: int) -> MismatchError:
        number = self._patience.number
        return disagreement(number(self.rank), stamp, number(peer), theirs)

    def _placed(
        self, array: np.ndarray, stamp: Stamp, *, filled: bool = True
    ) -> Iterator[tuple[np.ndarray, Place, np.ndarray, Stamp]]:
        """The array where it is if the transport can reach it, else its parts, copied."""
        place = self._regions.find(array)
        if place is None and self._transport.reaches_all_memory:
            place = Place(Region(-1, array.view(np.uint8)), 0)
        if place is not None:
            yield array, place, array, stamp
            return
        if array.nbytes > WORKSPACE_BYTES:
            stamp = stamp._replace(parts=parts_in(array, WORKSPACE_BYTES) & 0xFFFF)
        for part in parts_of(array, WORKSPACE_BYTES):
            region = self._stage(part.nbytes)
            held = region.memory[: part.nbytes].view(part.dtype)
            if filled:
                np.copyto(held, part)
            yield part, Place(region, 0), held, stamp

    def _stage(self, nbytes: int) -> Region:
        if self._workspace is None or self._workspace.memory.size < nbytes:
            if self._workspace is not None:
                self._transport.free(self._workspace)
            self._workspace = self._transport.allocate(max(nbytes, WORKSPACE_BYTES))
        return self._workspace
