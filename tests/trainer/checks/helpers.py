"""What several checks use."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from trainer.rank import RankContext
from trainer.replication import digest


def small_model(seed: int, width: int = 8) -> Any:
    keras.utils.set_random_seed(seed)
    return keras.Sequential(
        [
            keras.Input((6,)),
            keras.layers.Dense(width, activation="tanh", name="first"),
            keras.layers.Dense(width, activation="tanh", name="second"),
            keras.layers.Dense(3, name="third"),
        ]
    )


def examples(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((count, 6)).astype(np.float32)
    return images, rng.integers(0, 3, count).astype(np.int32)


def share(context: RankContext, array: np.ndarray) -> np.ndarray:
    return array[context.membership.rank :: context.membership.size]


def same_everywhere(context: RankContext, values: list[np.ndarray]) -> bool:
    mine = np.frombuffer(digest(values), np.uint8)
    every = context.courier.call(lambda c: c.allgather(mine))
    return bool((every == every[0]).all())


def loss_of(labels: Any, logits: Any) -> Any:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, logits)


def stepper(model: Any, optimizer: Any) -> Any:
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return step


def seeded(build: Any, seed: int) -> Any:
    keras.utils.set_random_seed(seed)
    return build()
