"""Half precision."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.trainer.checks.helpers import (
    examples,
    same_everywhere,
    share,
    small_model,
    stepper,
)
from trainer.optimizer import ReplicatedVarsOptimizer
from trainer.rank import RankContext


def check_half_precision_with_loss_scaling_inside(context: RankContext) -> None:
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = small_model(seed=3)
    finally:
        keras.config.set_dtype_policy("float32")
    optimizer = ReplicatedVarsOptimizer(
        keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=64.0)
    )
    model.compile(
        optimizer,
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        auto_scale_loss=False,
    )
    x, y = examples(32, 5)
    if context.membership.rank == 1:
        x = x.copy()
        x[0] = np.inf  # one rank's overflow must make both skip that step
    model.fit(share(context, x), share(context, y), batch_size=8, epochs=2, verbose=0)
    assert same_everywhere(context, model.get_weights())
    wrong = keras.optimizers.LossScaleOptimizer(ReplicatedVarsOptimizer(keras.optimizers.SGD(0.1)))
    step = tf.function(stepper(small_model(seed=0), wrong), jit_compile=False)
    with pytest.raises(Exception, match=r"ReplicatedVarsOptimizer\(LossScaleOptimizer"):
        step(*examples(8, 0))


def check_bfloat16_models_end_with_identical_weights_near_those_of_one_rank(
    context: RankContext,
) -> None:
    x, y = examples(64, 8)
    for policy, gradients in (("mixed_bfloat16", "float32"), ("bfloat16", "bfloat16")):
        keras.config.set_dtype_policy(policy)
        try:
            model, alone = small_model(seed=context.membership.rank), small_model(seed=0)
        finally:
            keras.config.set_dtype_policy("float32")
        optimizer = ReplicatedVarsOptimizer(keras.optimizers.SGD(0.2), check_every=2)
        step = tf.function(stepper(model, optimizer), jit_compile=False)
        alone_step = tf.function(stepper(alone, keras.optimizers.SGD(0.2)), jit_compile=False)
        losses = []
        for _ in range(12):
            losses.append(float(step(share(context, x), share(context, y))))
            alone_step(x, y)
        # What travels is of the variables' own type, not widened on the way.
        (described,) = optimizer.exchange._carriers
        assert {str(gradient.dtype) for gradient in described} == {gradients}
        assert losses[-1] < losses[0]
        assert same_everywhere(context, [v.numpy() for v in model.trainable_variables])
        for ours, theirs in zip(model.get_weights(), alone.get_weights(), strict=True):
            difference = np.abs(ours.astype(np.float32) - theirs.astype(np.float32))
            assert difference.max() < 0.05
