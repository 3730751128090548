"""How large a bucket must be for this transport, found by measuring it.

Small buckets start earlier and hide better behind backpropagation, but each
pays the latency of a ring again. The smallest size that still moves data at
nearly the best rate is the one to take.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from trainer.collective.communicator import Communicator
from trainer.collective.dtypes import ReduceOp
from trainer.collective.fusion import BUCKET_BYTES

CANDIDATES_BYTES = tuple((256 << 10) << power for power in range(7))
# A model below this goes out in few buckets whatever their size.
_WORTH_MEASURING_BYTES = 4 << 20
_NEARLY_BEST = 0.8
_TURNS = 3


def choose_bucket_bytes(communicator: Communicator, total_bytes: int) -> int:
    """The bucket size for a model with ``total_bytes`` of gradients, the same on every rank.

    All ranks must call it. It moves about 100 MB once, and nothing for a small
    model or a single rank.
    """
    if communicator.size == 1 or total_bytes < _WORTH_MEASURING_BYTES:
        return BUCKET_BYTES
    # At least four buckets, or there is nothing left to overlap.
    sizes = [size for size in CANDIDATES_BYTES if size <= max(total_bytes // 4, BUCKET_BYTES)]
    seconds = np.array([_measure(communicator, size) for size in sizes], np.float64)
    # The slowest rank's view, which is also how all ranks come to the same answer.
    communicator.allreduce(seconds, ReduceOp.MAX, doing="choice of the bucket size")
    return smallest_good(sizes, seconds.tolist())


def smallest_good(sizes: Sequence[int], seconds: Sequence[float]) -> int:
    """The smallest size that reaches nearly the best rate in bytes per second."""
    rates = [size / spent for size, spent in zip(sizes, seconds, strict=True)]
    return next(
        size for size, rate in zip(sizes, rates, strict=True) if rate >= _NEARLY_BEST * max(rates)
    )


def _measure(communicator: Communicator, nbytes: int) -> float:
    buffer = communicator.buffer(nbytes // 4)
    doing = f"measuring buckets of {nbytes >> 10} KiB"
    communicator.allreduce(buffer, doing=doing)
    best = np.inf
    for _ in range(_TURNS):
        began = time.perf_counter()
        communicator.allreduce(buffer, doing=doing)
        best = min(best, time.perf_counter() - began)
    communicator.release(buffer)
    return float(best)
