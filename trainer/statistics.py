"""Batch normalisation on several ranks: statistics averaged now and then, or in every step.

*Averaged* (the default of ``paisoar train``): each rank normalises with the
mean and variance of its own batch, as one GPU of Horovod or DDP does; the
moving statistics, which only inference uses, are averaged over the ranks
before each test and each checkpoint. The averaged variance is the mean of the
ranks' variances and leaves out how much their means differ.

*Synced* (``SyncBatchNormalization``): mean and variance are those of all
ranks' batches together, so n ranks of batch B train as one rank of n * B. It
costs two small allreduces a layer and step, one forward, one backward, and
these stand in line with the gradients' buckets.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from trainer.collective.courier import Courier, current
from trainer.collective.dtypes import ReduceOp


def average_statistics(model: Any, courier: Courier | None = None) -> None:  # noqa: ANN401
    """Average the model's floating-point state that no gradient reaches; all ranks must call it.

    That is the moving mean and variance of every batch normalisation.
    """
    courier = courier or current()
    chosen = [
        variable
        for variable in model.non_trainable_variables
        if np.issubdtype(tf.as_dtype(variable.dtype).as_numpy_dtype, np.floating)
    ]
    if courier.communicator.size == 1 or not chosen:
        return
    values = [variable.numpy() for variable in chosen]
    flat = np.concatenate([value.astype(np.float32).ravel() for value in values])
    courier.call(lambda c: c.allreduce(flat, ReduceOp.AVERAGE, doing="batch statistics"))
    parts = np.split(flat, np.cumsum([value.size for value in values])[:-1])
    for variable, value, part in zip(chosen, values, parts, strict=True):
        variable.assign(part.reshape(value.shape))


def average_over_ranks(tensor: Any, courier: Courier | None = None) -> Any:  # noqa: ANN401
    """The mean of an fp32 tensor over all ranks, with its gradient, in a graph without XLA."""
    chosen = courier or current()

    def average(values: np.ndarray) -> np.ndarray:
        mine = np.array(values)
        return chosen.call(lambda c: c.allreduce(mine, ReduceOp.AVERAGE, doing="batch moments"))

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def averaged(x: Any) -> Any:  # noqa: ANN401
        def apply(value: Any) -> Any:  # noqa: ANN401
            mean = tf.numpy_function(average, [value], value.dtype, stateful=True)
            return tf.ensure_shape(mean, value.shape)

        # Each rank's loss depends on all ranks' x; the optimizer averages what
        # follows from it, so what comes back is the mean of the gradients, too.
        return apply(x), apply

    return averaged(tensor)


@keras.saving.register_keras_serializable(package="paisoar")
class SyncBatchNormalization(keras.layers.BatchNormalization):  # type: ignore[misc]
    """Batch normalisation over the batches of all ranks, which must be of one size."""

    def _moments(self, inputs: Any, mask: Any) -> tuple[Any, Any]:  # noqa: ANN401
        mean, variance = super()._moments(inputs, mask)
        if current().communicator.size == 1:
            return mean, variance
        both = average_over_ranks(tf.stack([mean, variance + tf.square(mean)]))
        return both[0], tf.maximum(both[1] - tf.square(both[0]), 0.0)


def sync_batch_normalization(model: Any) -> Any:  # noqa: ANN401
    """A copy of a functional model whose batch normalisations are synced; weights are kept."""

    def clone(layer: Any) -> Any:  # noqa: ANN401
        plain = type(layer) is keras.layers.BatchNormalization
        kind = SyncBatchNormalization if plain else type(layer)
        return kind.from_config(layer.get_config())

    copy = keras.models.clone_model(model, clone_function=clone)
    copy.set_weights(model.get_weights())
    return copy
