"""All collectives of a job, for one rank, over whichever engine connects the ranks."""

from __future__ import annotations

import functools
import zlib
from pathlib import Path
from typing import Literal

import numpy as np

from fabric.errors import InputError, PaisoarError, PeerError
from trainer.collective.direct import DirectEngine
from trainer.collective.dtypes import ReduceOp, dtype_code
from trainer.collective.engine import Engine, address_of
from trainer.collective.errors import MismatchError
from trainer.collective.membership import Membership
from trainer.collective.party import Party
from trainer.collective.ring import SEGMENT_BYTES, RingEngine
from trainer.collective.stamp import Kind, Stamp
from trainer.collective.transport import Region
from trainer.collective.transports.tcp import TcpTransport

TransportName = Literal["auto", "shm", "tcp"]
TRANSPORTS: tuple[TransportName, ...] = ("auto", "shm", "tcp")

_BYTES = dtype_code(np.dtype(np.uint8))
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def connect(
    membership: Membership,
    transport: TransportName = "auto",
    *,
    segment_bytes: int = SEGMENT_BYTES,
) -> Communicator:
    """Connect this rank to the others; all ranks call it with the same transport.

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
    party = Party(membership, range(membership.size))
    if transport == "tcp" or not one_host:
        engine: Engine = RingEngine(TcpTransport(party), party, segment_bytes=segment_bytes)
    else:
        engine = DirectEngine(party)
    return Communicator(engine, membership)


def alone() -> Communicator:
    """A communicator of one rank, without a job around it."""
    return Communicator(None, None)


class Communicator:
    """The collectives; every rank calls the same ones in the same order.

    One thread at a time may use it (see :class:`~trainer.collective.courier.Courier`).
    After an error every further call raises that error again: the ranks are no
    longer in step.
    """

    def __init__(self, engine: Engine | None, membership: Membership | None) -> None:
        self.membership = membership
        self.rank = membership.rank if membership else 0
        self.size = membership.size if membership else 1
        self.transport = engine.name if engine else "none"
        self.failure: PaisoarError | None = None
        self._engine = engine
        self._buffers: dict[int, Region] = {}
        self._sequence = 0

    def buffer(self, count: int, dtype: np.dtype | type = np.float32) -> np.ndarray:
        """A new array in registered memory, page-aligned, zeroed: collectives use it in place.

        So they use slices of it.
        """
        element = np.dtype(dtype)
        if self._engine is None:
            return np.zeros(count, element)
        region = self._engine.allocate(max(1, count * element.itemsize))
        self._buffers[address_of(region.memory)] = region
        return region.memory[: count * element.itemsize].view(element)

    def release(self, array: np.ndarray) -> None:
        """Give back what :meth:`buffer` returned; the array must no longer be used."""
        region = self._buffers.pop(address_of(array), None)
        if region is not None and self._engine is not None:
            self._engine.free(region)

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
        engine = self._engine_or_alone()
        if engine is not None:
            layout = layout or _layout(array)
            stamp = self._begin(Kind.ALLREDUCE, doing, op, code, 0, flat.size, layout)
            with self._guard():
                engine.allreduce(flat, op, stamp)
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
        engine = self._engine_or_alone()
        if engine is not None:
            layout = layout or _layout(array)
            stamp = self._begin(Kind.REDUCE, doing, op, code, root, flat.size, layout)
            with self._guard():
                engine.reduce(flat, root, op, stamp)
        return array

    def broadcast(
        self, array: np.ndarray, root: int = 0, *, doing: str = "broadcast"
    ) -> np.ndarray:
        """Overwrite the array with the root's, in place, and return it; of any type."""
        self._check_root(root)
        flat = _flat(array).view(np.uint8)
        engine = self._engine_or_alone()
        if engine is not None:
            stamp = self._begin(Kind.BROADCAST, doing, 0, _BYTES, root, flat.size, _layout(array))
            with self._guard():
                engine.broadcast(flat, root, stamp)
        return array

    def allgather(self, array: np.ndarray, *, doing: str = "allgather") -> np.ndarray:
        """Every rank's array, by rank: shape (size, *array.shape); all have the same shape."""
        block = _flat(np.ascontiguousarray(array)).view(np.uint8)
        into = np.empty((self.size, block.size), np.uint8)
        engine = self._engine_or_alone()
        if engine is None:
            into[0] = block
        else:
            stamp = self._begin(Kind.ALLGATHER, doing, 0, _BYTES, 0, block.size, _layout(array))
            with self._guard():
                engine.allgather(block, into, stamp)
        return into.view(array.dtype).reshape(self.size, *array.shape)

    def barrier(self, *, doing: str = "barrier") -> None:
        """Return when every rank has called it."""
        engine = self._engine_or_alone()
        if engine is not None:
            stamp = self._begin(Kind.BARRIER, doing, 0, 0, 0, 0, 0)
            with self._guard():
                engine.barrier(stamp)

    def close(self) -> None:
        """Give all memory and connections back; no array of :meth:`buffer` is used after it."""
        self._buffers.clear()
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _engine_or_alone(self) -> Engine | None:
        if self._engine is not None:
            return self._engine
        if self.size > 1:
            raise InputError(f"rank {self.rank}: this communicator has been closed")
        if self.membership:
            self.membership.raise_if_failed()
        return None

    def _check_root(self, root: int) -> None:
        if not 0 <= root < self.size:
            raise InputError(f"there is no rank {root} in a job of {self.size}", key="root")

    def _begin(
        self, kind: Kind, doing: str, op: int, dtype: int, root: int, count: int, layout: int
    ) -> Stamp:
        if self.failure is not None:
            raise self.failure
        self._sequence += 1
        if self.membership:
            self.membership.enter(self._sequence, doing)
        return Stamp(self._sequence, kind, op, dtype, root, count, layout)

    def _guard(self) -> _Guard:
        return _Guard(self)


class _Guard:
    """Leaves a collective's place in the heartbeat, and remembers the error that broke the job."""

    def __init__(self, communicator: Communicator) -> None:
        self._communicator = communicator

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        communicator = self._communicator
        if isinstance(error, PaisoarError):
            communicator.failure = error
        elif error is not None:
            communicator.failure = PeerError(
                f"a collective of rank {communicator.rank} was interrupted: {error!r}"
            )
        if communicator.membership:
            communicator.membership.leave_collective()


def _flat(array: np.ndarray) -> np.ndarray:
    if not array.flags.c_contiguous:
        raise InputError("collectives need C-contiguous arrays", advice="Pass a copy of it.")
    return array.reshape(-1)


def _layout(array: np.ndarray) -> int:
    return _checksum(array.dtype, array.shape)


@functools.lru_cache(maxsize=4096)
def _checksum(dtype: np.dtype, shape: tuple[int, ...]) -> int:
    return zlib.crc32(f"{dtype} {shape}".encode())


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""
