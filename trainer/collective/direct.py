"""Collectives of the ranks of one host, by working on each other's memory directly.

Allreduce: each rank combines its own share of the elements straight from all
ranks' memory, and stores the result straight into all ranks' memory. So every
rank's array is read once and written once, which is the least that an
allreduce in place can do, and the ranks wait for each other twice: until all
have come, and until all are done. A small array goes through slots on the
boards, and its ranks wait only once.

A share is combined in the order of the ring (from its owner on), so the bits
are those that the ring gives.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from trainer.collective import direct_kernels as kernels
from trainer.collective import kernels as elements
from trainer.collective.disagreement import disagreement
from trainer.collective.dtypes import ReduceOp
from trainer.collective.engine import (
    WORKSPACE_BYTES,
    Place,
    Regions,
    address_of,
    parts_in,
    parts_of,
)
from trainer.collective.errors import MismatchError
from trainer.collective.party import Party
from trainer.collective.stamp import Stamp
from trainer.collective.transport import Region
from trainer.collective.transports.shm import NO_TAG, SharedMemory

# Up to this size every rank computing everything is faster than sharing.
SMALL_BYTES = 16 << 10
# Who gets what reduce_part has combined.
MINE, ALL, ROOT = 0, 1, 2
_WORDS = np.empty(0, np.uint64)


@dataclass
class _Addresses:
    """Of which data of the others we know the address, by rank."""

    tags: np.ndarray
    bases: np.ndarray


class DirectEngine:
    """See :class:`~trainer.collective.engine.Engine`; all ranks of the party are on one host."""

    name = "shm"

    def __init__(self, party: Party) -> None:
        self.rank = party.rank
        self.size = party.size
        self._party = party
        self._memory = SharedMemory(party)
        self._regions = Regions()
        self._workspace: Region | None = None
        self._sequence = 0
        self._no_tags = np.full(party.size, NO_TAG, np.uint64)
        self._known: dict[int, _Addresses] = {}
        self._likes: dict[np.dtype, np.ndarray] = {}

    def allocate(self, nbytes: int) -> Region:
        """See :class:`~trainer.collective.engine.Engine`."""
        region = self._memory.allocate(nbytes)
        self._regions.add(region)
        return region

    def free(self, region: Region) -> None:
        """See :class:`~trainer.collective.engine.Engine`."""
        self._regions.remove(region)
        self._memory.free(region)
        self._known.clear()

    def allreduce(self, array: np.ndarray, op: ReduceOp, stamp: Stamp) -> None:
        """See :class:`~trainer.collective.engine.Engine`."""
        divisor = self.size if op is ReduceOp.AVERAGE else 1
        if array.nbytes <= SMALL_BYTES:
            self._small(array, op, divisor, stamp)
            return
        for part, place, held, said in self._placed(array, stamp):
            self.combine(place, held, op, said, divisor=divisor, spread=ALL)
            if held is not part:
                np.copyto(part, held)

    def reduce(self, array: np.ndarray, root: int, op: ReduceOp, stamp: Stamp) -> None:
        """See :class:`~trainer.collective.engine.Engine`."""
        divisor = self.size if op is ReduceOp.AVERAGE else 1
        for part, place, held, said in self._placed(array, stamp):
            self.combine(place, held, op, said, divisor=divisor, spread=ROOT, root=root)
            if held is not part and self.rank == root:
                np.copyto(part, held)

    def broadcast(self, array: np.ndarray, root: int, stamp: Stamp) -> None:
        """See :class:`~trainer.collective.engine.Engine`."""
        for part in parts_of(array, WORKSPACE_BYTES):
            place = None
            if self.rank == root:
                place = self._regions.find(part)
                if place is None:
                    place, held = self._stage(part)
                    np.copyto(held, part)
            sequence, addresses = self._meet(place, stamp)
            if self.rank != root:
                kernels.copy_bytes(address_of(part), int(addresses.bases[root]), part.nbytes)
            self._finish(sequence, everyone=self.rank == root)

    def allgather(self, block: np.ndarray, into: np.ndarray, stamp: Stamp) -> None:
        """See :class:`~trainer.collective.engine.Engine`."""
        done = 0
        for part in parts_of(block, WORKSPACE_BYTES):
            place, held = self._stage(part)
            np.copyto(held, part)
            sequence, addresses = self._meet(place, stamp)
            for peer in range(self.size):
                target = into[peer, done : done + part.size]
                kernels.copy_bytes(address_of(target), int(addresses.bases[peer]), part.nbytes)
            done += part.size
            self._finish(sequence)

    def barrier(self, stamp: Stamp) -> None:
        """See :class:`~trainer.collective.engine.Engine`."""
        self._meet(None, stamp)
        self._memory.forget()

    def combine(
        self,
        place: Place,
        array: np.ndarray,
        op: ReduceOp,
        stamp: Stamp,
        *,
        divisor: int,
        spread: int,
        root: int = 0,
        ways: int = 0,
    ) -> None:
        """Combine registered arrays; ``spread`` says who gets it: ALL, ROOT, or each its share.

        ``ways`` of the ranks share the work, all of them by default.
        """
        self._sequence += 1
        sequence, memory = self._sequence, self._memory
        tag = memory.describe(sequence, place, stamp.packed)
        addresses = self._known.get(tag) or self._remember(tag, place)
        like, form = self._like(array.dtype), elements.form_of(array.dtype)

        def work(phase: int) -> int:
            return kernels.allreduce(
                like,
                memory.boards,
                addresses.tags,
                _WORDS,
                addresses.bases,
                self.rank,
                sequence,
                array.size,
                int(op),
                form,
                divisor,
                spread,
                root,
                ways or self.size,
                phase,
                memory.habits,
                memory.timespec,
            )

        self._carry_out(work, sequence, stamp, tag)

    def copy_shares(self, place: Place, array: np.ndarray, stamp: Stamp, ways: int) -> None:
        """Fetch from each of the first ``ways`` ranks its share of a registered array."""
        sequence, addresses = self._meet(place, stamp)
        kernels.fetch_shares(addresses.bases, self.rank, ways, array.size, array.itemsize)
        self._finish(sequence)

    def close(self) -> None:
        """See :class:`~trainer.collective.engine.Engine`."""
        self._memory.close()
        self._known.clear()
        self._workspace = None

    def _small(self, array: np.ndarray, op: ReduceOp, divisor: int, stamp: Stamp) -> None:
        self._sequence += 1
        sequence, memory = self._sequence, self._memory
        memory.describe(sequence, None, stamp.packed)
        held = array.view(elements.storage_dtype(array.dtype))
        form = elements.form_of(array.dtype)

        def work(phase: int) -> int:
            return kernels.allreduce_small(
                held,
                memory.boards,
                self._no_tags,
                _WORDS,
                self.rank,
                sequence,
                int(op),
                form,
                divisor,
                phase,
                memory.habits,
                memory.timespec,
            )

        self._carry_out(work, sequence, stamp, NO_TAG)

    def _meet(self, place: Place | None, stamp: Stamp) -> tuple[int, _Addresses]:
        self._sequence += 1
        sequence, memory = self._sequence, self._memory
        tag = memory.describe(sequence, place, stamp.packed)
        addresses = self._known.get(tag) or self._remember(tag, place)

        def work(phase: int) -> int:
            if phase > kernels.ARRIVE:
                return 0
            return kernels.meet(
                memory.boards,
                addresses.tags,
                _WORDS,
                self.rank,
                sequence,
                memory.habits,
                memory.timespec,
            )

        self._carry_out(work, sequence, stamp, tag)
        return sequence, addresses

    def _finish(self, sequence: int, *, everyone: bool = True) -> None:
        memory = self._memory

        def work(_phase: int) -> int:
            return kernels.finish(
                memory.boards, self.rank, sequence, everyone, memory.habits, memory.timespec
            )

        self._carry_out(work, sequence, None, NO_TAG)

    def _carry_out(
        self,
        work: Callable[[int], int],
        sequence: int,
        stamp: Stamp | None,
        tag: int,
    ) -> None:
        """Call ``work`` until nothing stands in its way any more."""
        blocked = work(kernels.ARRIVE)
        if not blocked:
            return
        began = time.monotonic()
        while blocked:
            reason, peer = divmod(blocked, kernels.REASON)
            if reason == kernels.DIFFERS and stamp is not None:
                raise self._mismatch(peer, sequence, stamp)
            if reason == kernels.UNMAPPED:
                self._resolve(self._known[tag], sequence)
                blocked = work(kernels.WORK)
            else:
                self._party.check(peer, time.monotonic() - began)
                late = reason == kernels.LATE
                blocked = work(kernels.ARRIVE if late else kernels.FINISH)

    def _mismatch(self, peer: int, sequence: int, stamp: Stamp) -> MismatchError:
        theirs = Stamp.unpack(self._memory.stamp_of(peer, sequence))
        mine, other = self._party.number(self.rank), self._party.number(peer)
        return disagreement(mine, stamp, other, theirs)

    def _remember(self, tag: int, place: Place | None) -> _Addresses:
        addresses = _Addresses(np.full(self.size, NO_TAG, np.uint64), np.zeros(self.size, np.int64))
        if place is not None:
            addresses.bases[self.rank] = address_of(place.region.memory) + place.offset
        self._known[tag] = addresses
        return addresses

    def _resolve(self, addresses: _Addresses, sequence: int) -> None:
        self._memory.forget()
        for peer in range(self.size):
            if peer == self.rank:
                continue
            try:
                tag, base = self._memory.base_of(peer, sequence)
            except OSError as error:
                raise self._party.lost(peer, f"took its memory away ({error})") from error
            addresses.tags[peer], addresses.bases[peer] = tag, base

    def _placed(
        self, array: np.ndarray, stamp: Stamp
    ) -> Iterator[tuple[np.ndarray, Place, np.ndarray, Stamp]]:
        """The array where it is if it is registered, else its parts, copied to the workspace."""
        place = self._regions.find(array)
        if place is not None:
            yield array, place, array, stamp
            return
        if array.nbytes > WORKSPACE_BYTES:
            stamp = stamp._replace(parts=parts_in(array, WORKSPACE_BYTES) & 0xFFFF)
        for part in parts_of(array, WORKSPACE_BYTES):
            place, held = self._stage(part)
            np.copyto(held, part)
            yield part, place, held, stamp

    def _stage(self, part: np.ndarray) -> tuple[Place, np.ndarray]:
        if self._workspace is None:
            self._workspace = self._memory.allocate(WORKSPACE_BYTES)
        held = self._workspace.memory[: part.nbytes].view(part.dtype)
        return Place(self._workspace, 0), held

    def _like(self, dtype: np.dtype) -> np.ndarray:
        if dtype not in self._likes:
            self._likes[dtype] = np.empty(0, elements.storage_dtype(dtype))
        return self._likes[dtype]
