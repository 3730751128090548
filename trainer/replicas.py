"""Replication for a loop that has no Keras optimizer: a ``tf.Module`` and its own update.

::

    replicas = Replicas(module.trainable_variables)
    for batch in batches:
        gradients = step(batch)
        for variable, gradient in zip(module.trainable_variables, replicas.average(gradients)):
            variable.assign_sub(0.1 * gradient)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from fabric.errors import InputError
from trainer.collective.courier import Courier, current
from trainer.exchange import GradientExchange, describe, value_of
from trainer.replication import agree_on, broadcast_variables, check_equal


class Replicas:
    """The same variables on every rank: rank 0's values at the start, averaged gradients after.

    ``variables`` are those that get gradients; ``state`` are others that all
    ranks must start with (an optimizer's slots, counters). Every rank must
    make it with the same ones; MismatchError where they differ.
    """

    def __init__(
        self,
        variables: Iterable[Any],
        state: Iterable[Any] = (),
        *,
        courier: Courier | None = None,
        bucket_bytes: int | None = None,
    ) -> None:
        self.variables = list(variables)
        self._state = list(state)
        self._courier = courier or current()
        self._exchange = GradientExchange(self._courier, bucket_bytes=bucket_bytes)
        everything = [*self.variables, *self._state]
        agree_on(self._courier, [describe(variable) for variable in everything])
        broadcast_variables(self._courier, everything)

    def average(self, gradients: Sequence[Any]) -> list[Any]:
        """The gradients averaged over all ranks, in the order of the variables.

        Works eagerly and in a ``tf.function`` without XLA; None stays None.
        """
        if len(gradients) != len(self.variables):
            raise InputError(f"{len(gradients)} gradients for {len(self.variables)} variables")
        post = tf.autograph.experimental.do_not_convert(self._exchange.post)
        return list(post(gradients, self.variables)())

    def check(self) -> None:
        """WeightsDifferError unless all ranks hold the same bits; every rank must call it."""
        values = [np.asarray(value_of(v)) for v in [*self.variables, *self._state]]
        doing = f"step {self._exchange.step}, check"
        self._courier.call(lambda c: check_equal(c, values, doing))


def share(*arrays: Any, courier: Courier | None = None) -> Any:  # noqa: ANN401 (arrays)
    """The part of this rank of arrays of one length; no two ranks get the same element.

    All parts have one length, so that no rank waits for a batch that another
    does not have; up to ``size - 1`` elements are left out. One array gives an
    array, several a tuple.
    """
    communicator = (courier or current()).communicator
    count = len(arrays[0]) // communicator.size * communicator.size
    if any(len(array) != len(arrays[0]) for array in arrays):
        raise InputError("the arrays have different lengths")
    parts = tuple(array[communicator.rank : count : communicator.size] for array in arrays)
    return parts if len(parts) > 1 else parts[0]
