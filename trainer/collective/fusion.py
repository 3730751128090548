"""Packing gradients into buckets, and sending a bucket while later ones are still computed.

Backpropagation yields the last layers' gradients first, so buckets are filled
in reverse layer order, with a small first one: its transfer starts early
(PyTorch DDP does the same: first bucket 1 MiB, then 25 MiB). All ranks derive
the same buckets from the same list of variables, without negotiating.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fabric.errors import PeerError
from trainer.collective.communicator import Communicator
from trainer.collective.courier import Courier, Ticket
from trainer.collective.dtypes import ReduceOp

# TensorFlow takes a NumPy array as a tensor without a copy only on this boundary.
ALIGN_BYTES = 64
FIRST_BUCKET_BYTES = 1 << 20
BUCKET_BYTES = 2 << 20
# Between a bucket's sum and its release lies only the optimizer's own step.
_RELEASE_WITHIN_S = 60.0


@dataclass(frozen=True)
class Gradient:
    """One variable's gradient: name, shape, and element type."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def count(self) -> int:
        """Elements."""
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True)
class Bucket:
    """Gradients that travel together. ``members`` are positions in the list of gradients.

    ``starts`` are the members' first elements in the bucket, each on a 64-byte
    boundary; ``layout`` is a checksum that ranks compare.
    """

    index: int
    dtype: np.dtype
    members: tuple[int, ...]
    starts: tuple[int, ...]
    count: int
    layout: int


def plan_buckets(
    gradients: Sequence[Gradient],
    *,
    first_bytes: int = FIRST_BUCKET_BYTES,
    bucket_bytes: int = BUCKET_BYTES,
) -> tuple[Bucket, ...]:
    """Buckets over ``gradients`` (in layer order), last layers first, one type to a bucket.

    A bucket is closed when the next gradient would take it over the limit; a
    gradient larger than the limit gets a bucket of its own.
    """
    buckets: list[Bucket] = []
    members: list[int] = []
    starts: list[int] = []
    end = 0

    def close() -> None:
        nonlocal end
        if members:
            names = [(gradients[i].name, gradients[i].shape) for i in members]
            dtype = gradients[members[0]].dtype
            layout = zlib.crc32(repr((str(dtype), names)).encode()) or 1
            bucket = Bucket(len(buckets), dtype, tuple(members), tuple(starts), end, layout)
            buckets.append(bucket)
        members.clear()
        starts.clear()
        end = 0

    for position in reversed(range(len(gradients))):
        gradient = gradients[position]
        grain = ALIGN_BYTES // gradient.dtype.itemsize
        limit = bucket_bytes if buckets else first_bytes
        start = -(-end // grain) * grain
        if members and (
            gradient.dtype != gradients[members[0]].dtype
            or (start + gradient.count) * gradient.dtype.itemsize > limit
        ):
            close()
            start = 0
        members.append(position)
        starts.append(start)
        end = start + gradient.count
    close()
    return tuple(buckets)


class BucketLine:
    """One bucket in registered memory, and its way through ``post``, ``wait``, ``release``.

    ``post`` packs the gradients and starts the sum over all ranks; ``wait``
    returns views of the sums, which stay valid until ``release``; the next
    ``post`` waits for that release, so that nobody's view changes under it.
    """

    def __init__(self, courier: Courier, bucket: Bucket, shapes: Sequence[tuple[int, ...]]) -> None:
        self.bucket = bucket
        self._courier = courier
        self._buffer = courier.call(lambda c: c.buffer(bucket.count, bucket.dtype))
        self._slots = [
            self._buffer[start : start + int(np.prod(shape, dtype=np.int64))].reshape(shape)
            for start, shape in zip(bucket.starts, shapes, strict=True)
        ]
        self._ticket: Ticket[np.ndarray] | None = None
        self._free = threading.Event()
        self._free.set()

    def post(self, gradients: Sequence[np.ndarray], step: int) -> None:
        """Pack this rank's gradients and start their sum; returns before it is done."""
        self._wait_until_free(step)
        self._free.clear()
        for slot, gradient in zip(self._slots, gradients, strict=True):
            np.copyto(slot, gradient)
        doing = f"step {step}, bucket {self.bucket.index}"
        self._ticket = self._courier.submit(lambda c: self._sum(c, doing))

    def wait(self) -> list[np.ndarray]:
        """The sums over all ranks, as views of the buffer."""
        assert self._ticket is not None, "wait follows post"
        self._ticket.wait()
        self._ticket = None
        return self._slots

    def release(self) -> None:
        """The views of ``wait`` are no longer used."""
        self._free.set()

    def _wait_until_free(self, step: int) -> None:
        """PeerError where the step before ended between ``post`` and ``release``."""
        communicator = self._courier.communicator
        deadline = time.monotonic() + _RELEASE_WITHIN_S
        while not self._free.wait(0.1):
            if communicator.failure is not None:
                raise communicator.failure
            if time.monotonic() > deadline:
                communicator.failure = PeerError(
                    f"rank {communicator.rank} in step {step}, bucket {self.bucket.index}: "
                    "the step before has not finished with its gradients.",
                    advice="A step that fails half-way cannot be repeated: start anew from the "
                    "last checkpoint.",
                )
                raise communicator.failure

    def _sum(self, communicator: Communicator, doing: str) -> np.ndarray:
        return communicator.allreduce(
            self._buffer, ReduceOp.SUM, layout=self.bucket.layout, doing=doing
        )
