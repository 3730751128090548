"""All collectives of a job, for one rank, over whichever engine connects the ranks."""

from __future__ import annotations

import functools
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from fabric.errors import InputError, PaisoarError, PeerError
from trainer.collective import kernels
from trainer.collective.direct import DirectEngine
from trainer.collective.dtypes import BFLOAT16, ReduceOp, dtype_code
from trainer.collective.engine import WORKSPACE_BYTES, Engine, address_of, parts_of
from trainer.collective.errors import MismatchError
from trainer.collective.hierarchy import HierarchicalEngine
from trainer.collective.membership import Membership
from trainer.collective.party import Party
from trainer.collective.ring import RingEngine
from trainer.collective.settings import NetworkSettings, WireType
from trainer.collective.stamp import Kind, Stamp
from trainer.collective.transport import Region, Transport
from trainer.collective.transports.tcp import TcpTransport
from trainer.collective.transports.verbs import VerbsTransport

TransportName = Literal["auto", "shm", "tcp", "verbs"]
TRANSPORTS: tuple[TransportName, ...] = ("auto", "shm", "tcp", "verbs")

WIRE_DTYPES: dict[WireType, np.dtype | None] = {
    "native": None,
    "fp16": np.dtype(np.float16),
    "bf16": BFLOAT16,
}
_BYTES = dtype_code(np.dtype(np.uint8))
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def connect(
    membership: Membership,
    transport: TransportName = "auto",
    *,
    segment_bytes: int | None = None,
    settings: NetworkSettings | None = None,
) -> Communicator:
    """Connect this rank to the others; all ranks call it with the same transport and settings.

    ``auto`` is shared memory where all ranks run on one host. Between hosts it
    is TCP; ranks that share a host then use its memory among themselves, and
    so they do where ``tcp`` or ``verbs`` is asked for on several hosts.
    ``settings`` are those of the environment by default. MismatchError, with
    both sides, where ranks differ in what must be equal.
    """
    settings = settings or NetworkSettings.from_environment()
    if segment_bytes is not None:
        settings = replace(settings, segment_bytes=segment_bytes)
    _agree(membership, {"transport": transport, **settings.shared()})
    places = [tuple(place) for place in membership.gather("host", [membership.host, _boot_id()])]
    if membership.size == 1:
        return Communicator(None, membership)
    hosts = [
        tuple(rank for rank, other in enumerate(places) if other == place)
        for place in dict.fromkeys(places)
    ]
    if transport == "shm" and len(hosts) > 1:
        names = ", ".join(sorted({host for host, _ in places}))
        raise InputError(
            f"shared memory cannot connect ranks on several hosts ({names})",
            advice="Use the transport auto, tcp or verbs.",
        )
    everyone = Party(membership, range(membership.size))
    if len(hosts) == 1 and transport in ("auto", "shm"):
        return Communicator(DirectEngine(everyone), membership)
    between: Literal["tcp", "verbs"] = "verbs" if transport == "verbs" else "tcp"
    if len(hosts) == 1 or len(hosts) == membership.size:
        engine: Engine = _ring(everyone, between, settings)
    else:
        engine = _hierarchy(membership, hosts, between, settings)
    return Communicator(engine, membership, wire=settings.wire)


def _agree(membership: Membership, mine: dict[str, str | int]) -> None:
    """MismatchError unless all ranks say the same."""
    every = membership.gather("settings", mine)
    for rank, theirs in enumerate(every):
        differing = [key for key in {**every[0], **theirs} if theirs.get(key) != every[0].get(key)]
        if differing:
            raise MismatchError(
                f"rank {rank} and rank 0 have different settings: "
                + "; ".join(
                    f"{key} is {theirs.get(key)!r} on rank {rank}, {every[0].get(key)!r} on rank 0"
                    for key in differing
                ),
                advice="Start all ranks with one launcher, from one site.",
            )


def _ring(party: Party, between: Literal["tcp", "verbs"], settings: NetworkSettings) -> RingEngine:
    transport: Transport
    if between == "verbs":
        transport = VerbsTransport(party, settings)
    else:
        transport = TcpTransport(
            party,
            host=settings.address or party.address,
            channels=settings.channels,
            traffic_class=settings.tcp_traffic_class,
            congestion_control=settings.tcp_congestion_control,
        )
    return RingEngine(transport, party, segment_bytes=settings.segment_bytes)


def _hierarchy(
    membership: Membership,
    hosts: list[tuple[int, ...]],
    between: Literal["tcp", "verbs"],
    settings: NetworkSettings,
) -> HierarchicalEngine:
    mine = next(ranks for ranks in hosts if membership.rank in ranks)
    local = DirectEngine(Party(membership, mine))
    place = mine.index(membership.rank)
    lane = None
    if place < min(map(len, hosts)):
        lane = _ring(Party(membership, [ranks[place] for ranks in hosts]), between, settings)
    return HierarchicalEngine(hosts, membership.rank, local, lane, between)


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
        engine: Engine | None,
        membership: Membership | None,
        *,
        wire: WireType = "native",
    ) -> None:
        self.membership = membership
        self.rank = membership.rank if membership else 0
        self.size = membership.size if membership else 1
        self.transport = engine.name if engine else "none"
        self.failure: PaisoarError | None = None
        self._engine = engine
        self._wire = WIRE_DTYPES[wire]
        self._compressed: np.ndarray | None = None
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
                if self._wire is None or flat.dtype != np.float32 or op is ReduceOp.PRODUCT:
                    engine.allreduce(flat, op, stamp)
                else:
                    self._allreduce_rounded(engine, self._wire, flat, op, stamp)
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

    def end_training(self, steps: int) -> None:
        """A barrier after so many steps; MismatchError, with the number, where a rank has more."""
        self._end(Kind.END_OF_TRAINING, steps, f"end of training after step {steps}")

    def end_epoch(self, steps: int) -> None:
        """The same at the end of an epoch of so many steps."""
        self._end(Kind.END_OF_EPOCH, steps, f"end of epoch after its step {steps}")

    def end_program(self) -> None:
        """The last barrier of a rank; MismatchError where another goes on."""
        self._end(Kind.END_OF_PROGRAM, 0, "end of the job")

    def close(self) -> None:
        """Give all memory and connections back; no array of :meth:`buffer` is used after it."""
        self._buffers.clear()
        self._compressed = None
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _end(self, kind: Kind, steps: int, doing: str) -> None:
        engine = self._engine_or_alone()
        if engine is not None:
            stamp = self._begin(kind, doing, 0, 0, 0, steps, 0)
            with self._guard():
                engine.barrier(stamp)

    def _engine_or_alone(self) -> Engine | None:
        if self._engine is not None:
            return self._engine
        if self.size > 1:
            raise InputError(f"rank {self.rank}: this communicator has been closed")
        if self.membership:
            self.membership.raise_if_failed()
        return None

    def _allreduce_rounded(
        self, engine: Engine, dtype: np.dtype, flat: np.ndarray, op: ReduceOp, stamp: Stamp
    ) -> None:
        """Let fp32 travel as 16 bits. An average is scaled first: a sum may not fit in fp16."""
        if self._compressed is None:
            self._compressed = self.buffer(WORKSPACE_BYTES // 2, np.uint16)
        scale = 1.0 / self.size if op is ReduceOp.AVERAGE else 1.0
        what = ReduceOp.SUM if op is ReduceOp.AVERAGE else op
        stamp = stamp._replace(wire=dtype_code(dtype))
        for part in parts_of(flat, 2 * self._compressed.nbytes):
            held = self._compressed[: part.size]
            kernels.to_sixteen(held, part, scale, kernels.form_of(dtype))
            engine.allreduce(held.view(dtype), what, stamp)
            kernels.from_sixteen(part, held, kernels.form_of(dtype))

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
            # Who never waits for long would learn of a failure in no other way.
            if self.membership.failed:
                with self._guard():
                    self.membership.raise_if_failed()
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
