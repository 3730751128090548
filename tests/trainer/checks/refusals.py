"""What cannot work is refused, with words."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from fabric.errors import InputError
from tests.trainer.checks.helpers import (
    examples,
    same_everywhere,
    small_model,
    stepper,
)
from tests.trainer.checks.resuming import orders
from trainer import job
from trainer.callbacks import AverageBatchStatistics, AverageMetrics, Checkpoints
from trainer.collective.errors import MismatchError, WeightsDifferError
from trainer.optimizer import ReplicatedVarsOptimizer
from trainer.rank import RankContext
from trainer.uneven import common_steps


def check_xla_is_refused_with_a_clear_message(context: RankContext) -> None:
    model = small_model(seed=0)
    step = tf.function(
        stepper(model, ReplicatedVarsOptimizer(keras.optimizers.SGD(0.1))), jit_compile=True
    )
    with pytest.raises(Exception, match="Pass jit_compile=False"):
        step(*examples(8, 0))
    model = small_model(seed=0)
    model.compile(ReplicatedVarsOptimizer(keras.optimizers.SGD(0.1)), "mse", jit_compile=True)
    with pytest.raises(Exception, match="Pass jit_compile=False"):
        model.fit(examples(8, 0)[0], np.zeros((8, 3)), verbose=0)


def check_an_eager_loop_needs_build_only_where_weights_differ(context: RankContext) -> None:
    model = small_model(seed=context.membership.rank)
    optimizer = ReplicatedVarsOptimizer(keras.optimizers.SGD(0.1))
    step = stepper(model, optimizer)
    with pytest.raises(InputError, match="optimizer.build"):
        step(*examples(8, 0))
    for seed, build in ((0, False), (context.membership.rank, True)):
        model = small_model(seed=seed)
        optimizer = ReplicatedVarsOptimizer(keras.optimizers.SGD(0.1), check_every=1)
        if build:
            optimizer.build(model.trainable_variables)
        for turn in range(3):
            stepper(model, optimizer)(*examples(8, 10 * turn + context.membership.rank))
        assert same_everywhere(context, model.get_weights())


def check_different_models_are_refused_with_both_sides_shown(context: RankContext) -> None:
    model = small_model(seed=0, width=8 + context.membership.rank)
    optimizer = ReplicatedVarsOptimizer(keras.optimizers.SGD(0.1))
    with pytest.raises(MismatchError) as caught:
        optimizer.build(model.trainable_variables)
    assert "first/kernel float32[6, 9] on rank 1" in str(caught.value)
    assert "first/kernel float32[6, 8] on rank 0" in str(caught.value)


def check_weights_that_drift_apart_are_noticed(context: RankContext) -> None:
    model = small_model(seed=0)
    optimizer = ReplicatedVarsOptimizer(keras.optimizers.SGD(0.1), check_every=2)
    step = tf.function(stepper(model, optimizer), jit_compile=False)
    step(*examples(8, 0))
    if context.membership.rank == 1:
        model.trainable_variables[0].assign_add(tf.ones((6, 8)) * 1e-6)
    with pytest.raises(tf.errors.OpError, match="the weights of rank 1 are not those of rank 0"):
        step(*examples(8, 0))
    assert isinstance(optimizer.failure, WeightsDifferError)
    context.communicator.failure = None  # the ring itself is in step


def check_ranks_started_for_different_jobs_are_refused(context: RankContext) -> None:
    payload = orders(Path("unused"), seed=context.membership.rank).payload()
    with pytest.raises(MismatchError, match="seed 1 on rank 1 and 0 on rank 0"):
        job.run(context, payload)


def check_different_optimizers_are_refused_with_both_sides_shown(context: RankContext) -> None:
    first = context.membership.rank == 0

    def refused(mine: Any, **options: Any) -> str:
        optimizer = ReplicatedVarsOptimizer(mine, **options)
        with pytest.raises(MismatchError) as caught:
            optimizer.build(small_model(seed=0).trainable_variables)
        return str(caught.value)

    sgd, adam = keras.optimizers.SGD, keras.optimizers.Adam
    said = refused(sgd(0.1) if first else adam(0.1))
    assert "kind is Adam on rank 1, SGD on rank 0" in said
    said = refused(sgd(0.1, momentum=0.9 if first else 0.5))
    assert "momentum is 0.5 on rank 1, 0.9 on rank 0" in said
    said = refused(sgd(0.1), accumulate=1 if first else 2)
    assert "replicated accumulate is 2 on rank 1, 1 on rank 0" in said
    # Rank 0's rate is taken over, as its other variables are.
    rate = ReplicatedVarsOptimizer(sgd(0.1 if first else 0.5))
    rate.build(small_model(seed=0).trainable_variables)
    assert float(rate.learning_rate) == pytest.approx(0.1)


def check_fit_with_data_of_different_lengths_says_how_many_steps_there_are(
    context: RankContext,
) -> None:
    def compiled() -> Any:
        model = small_model(seed=0)
        optimizer = ReplicatedVarsOptimizer(keras.optimizers.SGD(0.1))
        model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return model

    model = compiled()
    x, y = examples(32 + 16 * context.membership.rank, 1)
    with pytest.raises(Exception, match="rank 0 has 4, rank 1 has more and is in step 5"):
        model.fit(x, y, batch_size=8, verbose=0)
    failure = model.optimizer.failure
    assert isinstance(failure, MismatchError)
    assert "take(common_steps(n))" in failure.advice
    context.communicator.failure = None  # both have left the same collective
    for callback in (AverageMetrics(), AverageBatchStatistics(), Checkpoints(tempfile.mkdtemp())):
        with pytest.raises(Exception, match="in an epoch: rank 0 has 4, rank 1 has more"):
            compiled().fit(x, y, batch_size=8, verbose=0, callbacks=[callback])
        context.communicator.failure = None
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
    data = data.take(common_steps(len(data)))
    model = compiled()
    model.fit(data, epochs=3, verbose=0, callbacks=[AverageMetrics()])
    assert same_everywhere(context, model.get_weights())
