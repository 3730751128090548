"""Batch statistics, metrics and the learning rate."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.trainer.checks.helpers import (
    examples,
    same_everywhere,
    seeded,
    share,
    stepper,
)
from trainer.callbacks import (
    AverageBatchStatistics,
    AverageMetrics,
    SmoothExponentialDecayCallback,
    average_figures,
)
from trainer.learning_rate import SmoothExponentialDecay
from trainer.optimizer import ReplicatedVarsOptimizer
from trainer.rank import RankContext
from trainer.schedule import SmoothExponentialDecaySchedule, smooth_exponential_decay
from trainer.statistics import SyncBatchNormalization, sync_batch_normalization


def check_synced_batch_norm_is_that_of_one_rank_with_the_whole_batch(context: RankContext) -> None:
    def build() -> Any:
        return keras.Sequential(
            [
                keras.Input((6,)),
                keras.layers.Dense(8, name="first"),
                keras.layers.BatchNormalization(momentum=0.9, name="norm"),
                keras.layers.Dense(3, name="last"),
            ]
        )

    x, y = examples(64, 4)
    x[:32] += 2.0
    alone = seeded(build, 1)
    model = sync_batch_normalization(seeded(build, 1))
    assert isinstance(model.get_layer("norm"), SyncBatchNormalization)
    optimizer = ReplicatedVarsOptimizer(keras.optimizers.SGD(0.1))
    step = tf.function(stepper(model, optimizer), jit_compile=False)
    alone_step = tf.function(stepper(alone, keras.optimizers.SGD(0.1)), jit_compile=False)
    half = slice(context.membership.rank * 32, (context.membership.rank + 1) * 32)
    for _ in range(10):
        step(x[half], y[half])
        alone_step(x, y)
    for ours, theirs in zip(model.get_weights(), alone.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def check_callbacks_average_metrics_and_statistics_and_set_the_rate(context: RankContext) -> None:
    rank, size = context.membership.rank, context.membership.size
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((6,)), keras.layers.BatchNormalization(), keras.layers.Dense(3)]
    )
    model.compile(
        ReplicatedVarsOptimizer(keras.optimizers.SGD(0.5)),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    x, y = examples(64, 11)
    plan = SmoothExponentialDecay(0.01, 0.1, warmup_steps=4, decay_rate=0.5, decay_steps=4)
    seen: list[dict[str, float]] = []
    keep = keras.callbacks.LambdaCallback(on_epoch_end=lambda _, logs: seen.append(dict(logs)))
    history = model.fit(
        share(context, x) + rank,
        share(context, y),
        batch_size=8,
        epochs=2,
        verbose=0,
        callbacks=[
            AverageMetrics(),
            AverageBatchStatistics(),
            SmoothExponentialDecayCallback(plan),
            keep,
        ],
    ).history
    figures = np.array([[entry["loss"], entry["accuracy"]] for entry in seen])
    every = context.courier.call(lambda c: c.allgather(figures))
    assert (every == every[0]).all()
    assert history["loss"] == [entry["loss"] for entry in seen]
    assert [entry["learning_rate"] for entry in seen] == pytest.approx([plan(3), plan(7)])
    statistics = [v.numpy() for v in model.non_trainable_variables if "moving" in v.path]
    assert len(statistics) == 2
    assert same_everywhere(context, statistics)
    # Their weights differ: an average by batches, not by ranks.
    mean = average_figures({"loss": float(rank)}, float(1 + 2 * rank), context.courier)
    assert mean["loss"] == pytest.approx(sum(r * (1 + 2 * r) for r in range(size)) / size**2)


def check_keras_schedule_is_the_plain_one(context: RankContext) -> None:
    schedule = smooth_exponential_decay(0.001, 0.1, decay_rate=0.7, warmup_steps=20, decay_steps=15)
    for step in (0, 1, 7, 19, 20, 34, 35, 1000):
        np.testing.assert_allclose(float(schedule(tf.constant(step))), schedule.plan(step), 1e-5)
    again = SmoothExponentialDecaySchedule.from_config(schedule.get_config())
    assert again.plan == schedule.plan
    sudden = smooth_exponential_decay(0.0, 0.1, decay_rate=0.7, warmup_steps=0, decay_steps=5)
    assert float(sudden(0)) == pytest.approx(0.1)
