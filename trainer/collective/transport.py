"""What a transport must do: carry segments of memory one step around the ring.

Every rank has one neighbour to send to (``rank + 1``) and one to receive from
(``rank - 1``). A message is a segment of a *region* (memory the transport can
reach from outside: page-aligned, registered) plus a *stamp*, 32 bytes that say
which collective it belongs to, so that ranks which disagree find out.

The life of a segment: its owner ``post``s it; the right neighbour ``take``s
it, uses it, says ``done``; the owner's ``drain`` returns when all that it
posted has been used. Between post and drain the owner writes to a posted
segment only what follows from what its neighbour has already read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

STAMP_BYTES = 32
PAGE_BYTES = 4096


@dataclass(eq=False)
class Region:
    """Memory that a transport can send from and receive into.

    ``memory`` is a writable uint8 array that starts on a page. ``key`` is the
    transport's own name for it.
    """

    key: int
    memory: np.ndarray


@dataclass(frozen=True)
class Incoming:
    """One message of the left neighbour, valid until ``done``.

    ``view`` (uint8) is the data. ``placed`` says that it already lies in the
    ``into`` that was passed to ``take``.
    """

    view: np.ndarray
    stamp: bytes
    placed: bool


class Patience(Protocol):
    """Decides how long a transport waits for a peer."""

    def number(self, peer: int) -> int:
        """The peer's number in the job, as people know it."""

    def check(self, peer: int, waited_s: float) -> None:
        """Raise PeerError when the job has failed, or ``peer`` has kept us waiting too long."""

    def lost(self, peer: int, cause: str) -> Exception:
        """The error to raise when the connection to ``peer`` broke; names the real culprit."""


class Transport(Protocol):
    """One step around the ring. Used by one thread at a time."""

    @property
    def name(self) -> str:
        """``tcp``, ``verbs``."""

    @property
    def rank(self) -> int:
        """Our place in the ring."""

    @property
    def size(self) -> int:
        """How many ranks there are."""

    @property
    def reaches_all_memory(self) -> bool:
        """Whether it can send from any memory, so that nothing need be copied to a region."""

    def allocate(self, nbytes: int) -> Region:
        """New registered memory of at least ``nbytes``, zeroed."""

    def register(self, memory: np.ndarray) -> Region:
        """Make memory (uint8, from a page on) that is not ours one that we can send from."""

    def free(self, region: Region) -> None:
        """Give a region back; only when everything posted from it is drained."""

    def post(self, region: Region, start: int, stop: int, stamp: bytes) -> None:
        """Queue bytes ``start:stop`` of a region for the right neighbour; never waits."""

    def take(self, into: np.ndarray | None, nbytes: int, patience: Patience) -> Incoming:
        """The left neighbour's next message; placed in ``into`` (uint8) if that saves a copy.

        ``nbytes`` is how long it should be; what comes may be of another length.
        """

    def done(self) -> None:
        """The view of the last ``take`` is no longer used."""

    def drain(self, patience: Patience) -> None:
        """Wait until the right neighbour has all that was posted."""

    def close(self) -> None:
        """Give everything back; safe to call twice, and after a failure."""


@runtime_checkable
class Circulating(Protocol):
    """A transport that carries out a whole ring allreduce by itself, faster than step by step."""

    def circulate(
        self, array: np.ndarray, op: int, form: int, divisor: int, stamp: bytes, patience: Patience
    ) -> tuple[int, bytes] | None:
        """Allreduce a flat array in place, then divide it; None when that is done.

        Elements are those of :func:`~trainer.collective.kernels.storage_dtype`.
        Where a rank is in another collective, that rank and that one's stamp.
        """
