"""GreenNet: a multi-layer convolutional network, sized for the data it gets.

The article names GreenNet as a multi-layer CNN and gives no layers; this is
the plain form of one: pairs of convolutions, each pair at half the resolution
and twice the width of the one before, then two dense layers. It has no layer
with state beside its weights, so ranks with equal weights are equal models.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import layers

from fabric.errors import InputError


def greennet(
    image_shape: tuple[int, int, int] = (8, 8, 1),
    classes: int = 10,
    *,
    width: int = 16,
    stages: int = 2,
) -> Any:  # noqa: ANN401 (keras ships no types)
    """A built Keras model from images (batch, *image_shape) to logits (batch, classes).

    Each of the ``stages`` halves height and width, which therefore must be at
    least 2**stages; InputError if they are not.
    """
    if min(image_shape[:2]) < 2**stages:
        raise InputError(
            f"images of {image_shape[0]}x{image_shape[1]} cannot be halved {stages} times",
            key="stages",
        )
    inputs = keras.Input(image_shape, name="image")
    x = inputs
    for stage in range(stages):
        filters = width << stage
        for part in "ab":
            x = layers.Conv2D(
                filters, 3, padding="same", activation="relu", name=f"conv{stage + 1}{part}"
            )(x)
        x = layers.MaxPooling2D(name=f"pool{stage + 1}")(x)
    x = layers.Flatten(name="flatten")(x)
    x = layers.Dense(8 * width, activation="relu", name="dense")(x)
    outputs = layers.Dense(classes, name="logits")(x)
    return keras.Model(inputs, outputs, name="greennet")
