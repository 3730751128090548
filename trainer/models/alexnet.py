"""AlexNet in one column: Krizhevsky, "One weird trick for parallelizing CNNs", arXiv:1404.5997.

The form that today's libraries call AlexNet: five convolutions without local
response normalisation, three dense layers, dropout before the first two.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import layers


def alexnet(image_shape: tuple[int, int, int] = (224, 224, 3), classes: int = 1000) -> Any:  # noqa: ANN401 (keras ships no types)
    """A built Keras model from images (batch, *image_shape) to logits (batch, classes).

    Images have at least 63 pixels a side; 61.1 million parameters at 224 and 1000 classes.
    """
    inputs = keras.Input(image_shape, name="image")
    x = layers.ZeroPadding2D(2, name="pad1")(inputs)
    x = layers.Conv2D(64, 11, strides=4, activation="relu", name="conv1")(x)
    x = layers.MaxPooling2D(3, strides=2, name="pool1")(x)
    x = layers.Conv2D(192, 5, padding="same", activation="relu", name="conv2")(x)
    x = layers.MaxPooling2D(3, strides=2, name="pool2")(x)
    x = layers.Conv2D(384, 3, padding="same", activation="relu", name="conv3")(x)
    x = layers.Conv2D(256, 3, padding="same", activation="relu", name="conv4")(x)
    x = layers.Conv2D(256, 3, padding="same", activation="relu", name="conv5")(x)
    x = layers.MaxPooling2D(3, strides=2, name="pool5")(x)
    x = layers.Flatten(name="flatten")(x)
    for number in (6, 7):
        x = layers.Dropout(0.5, name=f"drop{number}")(x)
        x = layers.Dense(4096, activation="relu", name=f"dense{number}")(x)
    outputs = layers.Dense(classes, dtype="float32", name="logits")(x)
    return keras.Model(inputs, outputs, name="alexnet")
