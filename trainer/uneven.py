"""Ranks whose data end at different times: nobody waits for a batch that does not come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import numpy as np

from trainer.collective.courier import Courier, Ticket, current
from trainer.collective.dtypes import ReduceOp

T = TypeVar("T")


def common_steps(mine: int, courier: Courier | None = None) -> int:
    """The least of all ranks' numbers of steps, of which ``mine`` is ours; all must call it.

    ``model.fit`` then gets so many batches on every rank, such as
    ``dataset.take(common_steps(n))``. ``steps_per_epoch`` alone does not do:
    Keras goes on in the same data in the next epoch, and ends that one early.
    """
    steps = np.array([mine], np.int64)
    (courier or current()).call(lambda c: c.allreduce(steps, ReduceOp.MIN, doing="steps"))
    return int(steps[0])


def in_step(batches: Iterable[T], courier: Courier | None = None) -> Iterator[T]:
    """Yield this rank's batches until any rank has no more; all ranks must use it, in their loops.

    The question whether all have another batch travels while the step before
    is computed. Not for ``model.fit``, which fetches ahead in another thread:
    see :func:`common_steps`.
    """
    chosen = courier or current()
    iterator = iter(batches)
    missing = object()

    def ask(has_one: bool) -> Ticket[np.ndarray]:
        flag = np.array([has_one], np.uint8)
        return chosen.submit(lambda c: c.allreduce(flag, ReduceOp.MIN, doing="is there a batch"))

    following: T | object = next(iterator, missing)
    answer = ask(following is not missing)
    while answer.wait()[0]:
        batch = following
        following = next(iterator, missing)
        answer = ask(following is not missing)
        yield batch  # type: ignore[misc] # all ranks have one: it is not the marker
