"""What Keras saves of an optimizer."""

from __future__ import annotations

import keras

from tests.trainer.checks.helpers import (
    small_model,
)
from trainer.optimizer import ReplicatedVarsOptimizer
from trainer.rank import RankContext
from trainer.schedule import smooth_exponential_decay


def check_optimizer_is_serialised_and_saves_what_the_inner_one_saves(context: RankContext) -> None:
    rate = smooth_exponential_decay(
        0.001, 0.1, decay_rate=0.5, warmup_epochs=1, decay_epochs=2, steps_per_epoch=10
    )
    optimizer = ReplicatedVarsOptimizer(keras.optimizers.SGD(rate, momentum=0.9), check_every=7)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(optimizer))
    assert again.get_config() == optimizer.get_config()
    inner = keras.optimizers.SGD(rate, momentum=0.9)
    model = small_model(seed=0)
    inner.build(model.trainable_variables)
    optimizer.build(model.trainable_variables)
    assert [v.shape for v in optimizer.variables] == [v.shape for v in inner.variables]
    fixed = ReplicatedVarsOptimizer(keras.optimizers.SGD(0.1))
    fixed.learning_rate = 0.25
    assert float(fixed.inner_optimizer.learning_rate) == 0.25
