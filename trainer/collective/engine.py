"""What carries out collectives: an algorithm together with the memory it can reach.

Engines are :class:`~trainer.collective.direct.DirectEngine` (ranks of one
host work on each other's memory), :class:`~trainer.collective.ring.RingEngine`
(neighbours pass segments on) and
:class:`~trainer.collective.hierarchy.HierarchicalEngine` (one inside hosts,
the other between them).
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from trainer.collective.dtypes import ReduceOp
from trainer.collective.stamp import Stamp
from trainer.collective.transport import Region

# What does not lie in registered memory goes through a workspace of at most this size.
WORKSPACE_BYTES = 4 << 20


class Engine(Protocol):
    """The collectives over flat, contiguous arrays. Used by one thread at a time.

    All ranks call the same ones in the same order; ``stamp`` says which.
    Errors are those of :mod:`~trainer.collective.errors`.
    """

    @property
    def name(self) -> str:
        """What connects the ranks: ``shm``, ``tcp``, ``verbs``, ``shm+tcp``, ..."""

    def allocate(self, nbytes: int) -> Region:
        """New memory that all collectives use in place: page-aligned, zeroed."""

    def free(self, region: Region) -> None:
        """Give a region of :meth:`allocate` back."""

    def allreduce(self, array: np.ndarray, op: ReduceOp, stamp: Stamp) -> None:
        """Combine with all ranks' arrays, in place; all get the same bits."""

    def reduce(self, array: np.ndarray, root: int, op: ReduceOp, stamp: Stamp) -> None:
        """Combine into the root's array; the others' may be used up."""

    def broadcast(self, array: np.ndarray, root: int, stamp: Stamp) -> None:
        """Overwrite the array (uint8) with the root's."""

    def allgather(self, block: np.ndarray, into: np.ndarray, stamp: Stamp) -> None:
        """Every rank's block (uint8) into row ``rank`` of ``into`` (size, block)."""

    def barrier(self, stamp: Stamp) -> None:
        """Return when every rank has come."""

    def close(self) -> None:
        """Give everything back; safe to call twice, and after a failure."""


@dataclass(frozen=True)
class Place:
    """Where an array lies: ``offset`` bytes into a region."""

    region: Region
    offset: int


class Regions:
    """Finds the registered memory in which an array lies."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._regions: list[Region] = []

    def add(self, region: Region) -> None:
        """Remember a region."""
        start = address_of(region.memory)
        at = bisect.bisect(self._starts, start)
        self._starts.insert(at, start)
        self._regions.insert(at, region)

    def remove(self, region: Region) -> None:
        """Forget a region."""
        at = self._regions.index(region)
        del self._starts[at], self._regions[at]

    def discard(self, region: Region) -> None:
        """Forget a region if it is known."""
        if region in self._regions:
            self.remove(region)

    def find(self, array: np.ndarray) -> Place | None:
        """Where the whole of a contiguous array lies; None if in no region."""
        start = address_of(array)
        at = bisect.bisect(self._starts, start) - 1
        if at < 0:
            return None
        offset = start - self._starts[at]
        region = self._regions[at]
        return Place(region, offset) if offset + array.nbytes <= region.memory.size else None


def address_of(array: np.ndarray) -> int:
    """Where the array's data begins."""
    return int(array.__array_interface__["data"][0])


def parts_in(array: np.ndarray, limit_bytes: int) -> int:
    """How many slices :func:`parts_of` gives."""
    return max(1, -(-array.size // max(1, limit_bytes // array.itemsize)))


def parts_of(array: np.ndarray, limit_bytes: int) -> Iterator[np.ndarray]:
    """Slices of at most ``limit_bytes``; an empty array is one empty slice."""
    step = max(1, limit_bytes // array.itemsize)
    yield array[:step]
    for start in range(step, array.size, step):
        yield array[start : start + step]
