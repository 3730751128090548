"""All collectives of a job, for one rank, over whichever transport connects the ranks."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from fabric.errors import InputError, PaisoarError, PeerError
from trainer.collective import ring
from trainer.collective.dtypes import ReduceOp, dtype_code
from trainer.collective.errors import MismatchError
from trainer.collective.membership import Membership
from trainer.collective.ring import Ring
from trainer.collective.stamp import Kind, Stamp
from trainer.collective.transport import Region, Transport
from trainer.collective.transports.shm import ShmTransport
from trainer.collective.transports.tcp import TcpTransport

TransportName = Literal["auto", "shm", "tcp"]
TRANSPORTS: tuple[TransportName, ...] = ("auto", "shm", "tcp")

# Small enough to stay in a core's cache between being received and combined.
SEGMENT_BYTES = 512 << 10
# What is not in registered memory goes through a workspace of at most this size.
_WORKSPACE_BYTES = 16 << 20
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def connect(
    membership: Membership,
    transport: TransportName = "auto",
    *,
    segment_bytes: int = SEGMENT_BYTES,
) -> Communicator:
    """Connect this rank to its neighbours; all ranks call it with the same transport.

    ``auto`` is shared memory where all ranks run on one host, else TCP.
    """
    hosts = membership.gather("transport", [transport, membership.host, _boot_id()])
    wanted = {host[0] for host in hosts}
    if wanted != {transport}:
        raise MismatchError(f"the ranks ask for different transports: {', '.join(sorted(wanted))}")
    if membership.size == 1:
        return Communicator(None, membership)
    one_host = len({tuple(host[1:]) for host in hosts}) == 1
    if transport == "shm" and not one_host:
        names = ", ".join(sorted({host[1] for host in hosts}))
        raise InputError(
            f"shared memory cannot connect ranks on several hosts ({names})",
            advice="Use the transport auto or tcp.",
        )
    if transport == "tcp" or not one_host:
        return Communicator(TcpTransport(membership), membership, segment_bytes=segment_bytes)
    return Communicator(ShmTransport(membership), membership, segment_bytes=segment_bytes)


def alone() -> Communicator:
    """A communicator of one rank, without a job around it."""
    return Communicator(None, None)


class Communicator:
    """The collectives; every rank calls the same ones in the same order.

    One thread at a time may use it (see :class:`~trainer.collective.courier.Courier`).
    After an error every further call raises that error again: the ranks are no
    longer in step.
    """

    def __init__(
        self,
        transport: Transport | None,
        membership: Membership | None,
        *,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self.membership = membership
        self.rank = membership.rank if membership else 0
        self.size = membership.size if membership else 1
        self.transport = transport.name if transport else "none"
        self.failure: PaisoarError | None = None
        self._transport = transport
        self._ring = (
            Ring(transport, membership, segment_bytes) if transport and membership else None
        )
        self._regions: dict[int, Region] = {}
        self._workspace: Region | None = None
        self._sequence = 0

    def buffer(self, count: int, dtype: np.dtype | type = np.float32) -> np.ndarray:
        """A new array in registered memory, page-aligned, zeroed: collectives use it in place."""
        element = np.dtype(dtype)
        nbytes = max(1, count * element.itemsize)
        if self._transport is None:
            return np.zeros(count, element)
        region = self._transport.allocate(nbytes)
        self._regions[region.memory.ctypes.data] = region
        return region.memory[: count * element.itemsize].view(element)

    def release(self, array: np.ndarray) -> None:
        """Give back what :meth:`buffer` returned; the array must no longer be used."""
        region = self._regions.pop(array.ctypes.data, None)
        if region is not None and self._transport is not None:
            self._transport.free(region)

    def allreduce(
        self,
        array: np.ndarray,
        op: ReduceOp = ReduceOp.SUM,
        *,
        layout: int = 0,
        doing: str = "allreduce",
    ) -> np.ndarray:
        """Combine the array with all ranks', in place, and return it.

        The array is C-contiguous and writable, of a type in
        :mod:`~trainer.collective.dtypes`. All ranks get identical bits.
        """
        code = dtype_code(array.dtype)
        flat = _flat(array)
        layout = layout or zlib.crc32(repr(array.shape).encode())
        if self._ring is None:
            self._alone()
            return array
        region = self._regions.get(flat.ctypes.data)
        if region is not None:
            stamp = self._begin(Kind.ALLREDUCE, doing, op, code, 0, flat.size, layout)
            with self._guard():
                ring.allreduce(self._ring, region, 0, flat.size, flat.dtype, op, stamp)
            return array
        step = max(1, _WORKSPACE_BYTES // flat.itemsize)
        for start in range(0, max(1, flat.size), step):
            part = flat[start : start + step]
            region = self._work_in(part.nbytes)
            held = region.memory[: part.nbytes].view(part.dtype)
            np.copyto(held, part)
            stamp = self._begin(Kind.ALLREDUCE, doing, op, code, 0, flat.size, layout)
            with self._guard():
                ring.allreduce(self._ring, region, 0, part.size, part.dtype, op, stamp)
            np.copyto(part, held)
        return array

    def reduce(
        self,
        array: np.ndarray,
        root: int = 0,
        op: ReduceOp = ReduceOp.SUM,
        *,
        layout: int = 0,
        doing: str = "reduce",
    ) -> np.ndarray:
        """Combine all ranks' arrays into the root's, in place, and return the array.

        What it holds afterwards on the other ranks is undefined. With
        :meth:`broadcast` this is a parameter server's push and pull.
        """
        self._check_root(root)
        code = dtype_code(array.dtype)
        flat = _flat(array)
        layout = layout or zlib.crc32(repr(array.shape).encode())
        if self._ring is None:
            self._alone()
            return array
        region = self._regions.get(flat.ctypes.data)
        step = flat.size if region else _WORKSPACE_BYTES // flat.itemsize
        for start in range(0, max(1, flat.size), max(1, step)):
            part = flat[start : start + step]
            used = region or self._work_in(part.nbytes)
            held = used.memory[: part.nbytes].view(part.dtype)
            if region is None:
                np.copyto(held, part)
            stamp = self._begin(Kind.REDUCE, doing, op, code, root, flat.size, layout)
            with self._guard():
                ring.reduce(self._ring, used, 0, part.size, part.dtype, op, root, stamp)
            if region is None and self.rank == root:
                np.copyto(part, held)
        return array

    def broadcast(
        self, array: np.ndarray, root: int = 0, *, doing: str = "broadcast"
    ) -> np.ndarray:
        """Overwrite the array with the root's, in place, and return it."""
        self._check_root(root)
        flat = _flat(array).view(np.uint8)
        layout = zlib.crc32(f"{array.dtype} {array.shape}".encode())
        if self._ring is None:
            self._alone()
            return array
        for start in range(0, max(1, flat.size), _WORKSPACE_BYTES):
            part = flat[start : start + _WORKSPACE_BYTES]
            region = self._work_in(part.size)
            held = region.memory[: part.size]
            if self.rank == root:
                np.copyto(held, part)
            stamp = self._begin(
                Kind.BROADCAST, doing, 0, dtype_code(flat.dtype), root, flat.size, layout
            )
            with self._guard():
                ring.broadcast(self._ring, region, 0, part.size, root, stamp)
            np.copyto(part, held)
        return array

    def allgather(self, array: np.ndarray, *, doing: str = "allgather") -> np.ndarray:
        """Every rank's array, by rank: shape (size, *array.shape); all have the same shape."""
        block = _flat(np.ascontiguousarray(array)).view(np.uint8)
        layout = zlib.crc32(f"{array.dtype} {array.shape}".encode())
        if self._ring is None:
            self._alone()
            return array[np.newaxis].copy()
        region = self._work_in(block.size * self.size)
        held = region.memory[: block.size * self.size]
        held[self.rank * block.size : (self.rank + 1) * block.size] = block
        stamp = self._begin(
            Kind.ALLGATHER, doing, 0, dtype_code(block.dtype), 0, block.size, layout
        )
        with self._guard():
            ring.allgather(self._ring, region, block.size, stamp)
        return held.copy().view(array.dtype).reshape(self.size, *array.shape)

    def barrier(self, *, doing: str = "barrier") -> None:
        """Return when every rank has called it."""
        if self._ring is None:
            self._alone()
            return
        region = self._work_in(self.size)
        stamp = self._begin(Kind.BARRIER, doing, 0, 0, 0, 0, 0)
        with self._guard():
            ring.allgather(self._ring, region, 1, stamp)

    def close(self) -> None:
        """Give all memory and connections back; no array of :meth:`buffer` is used after it."""
        self._regions.clear()
        self._workspace = None
        self._ring = None
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def _check_root(self, root: int) -> None:
        if not 0 <= root < self.size:
            raise InputError(f"there is no rank {root} in a job of {self.size}", key="root")

    def _alone(self) -> None:
        if self.size > 1:
            raise InputError(f"rank {self.rank}: this communicator has been closed")
        if self.membership:
            self.membership.raise_if_failed()

    def _begin(
        self, kind: Kind, doing: str, op: int, dtype: int, root: int, count: int, layout: int
    ) -> Stamp:
        if self.failure is not None:
            raise self.failure
        self._sequence += 1
        if self.membership:
            self.membership.enter(self._sequence, doing)
        return Stamp(self._sequence, kind, op, dtype, root, count, layout)

    @contextlib.contextmanager
    def _guard(self) -> Iterator[None]:
        """Leave our place in the heartbeat, and remember the error that broke the ring."""
        try:
            yield
        except PaisoarError as error:
            self.failure = error
            raise
        except BaseException as error:
            self.failure = PeerError(f"a collective of rank {self.rank} was interrupted: {error!r}")
            raise
        finally:
            if self.membership:
                self.membership.leave_collective()

    def _work_in(self, nbytes: int) -> Region:
        assert self._transport is not None
        if self._workspace is None or self._workspace.memory.size < nbytes:
            if self._workspace is not None:
                self._transport.free(self._workspace)
            self._workspace = self._transport.allocate(nbytes)
        return self._workspace


def _flat(array: np.ndarray) -> np.ndarray:
    if not array.flags.c_contiguous:
        raise InputError("collectives need C-contiguous arrays", advice="Pass a copy of it.")
    return array.reshape(-1)


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""
