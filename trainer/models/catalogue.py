"""The benchmark models by name, untrained, from images to logits."""

from __future__ import annotations

from typing import Any

import keras

from fabric.errors import InputError
from trainer.models.alexnet import alexnet
from trainer.models.greennet import greennet
from trainer.spec import MODELS

_KERAS = {
    "inception_v3": "InceptionV3",
    "resnet50": "ResNet50",
    "resnet152": "ResNet152",
    "vgg16": "VGG16",
}


def build(name: str, image_shape: tuple[int, int, int], classes: int) -> Any:  # noqa: ANN401 (keras ships no types)
    """A built model from images (batch, *image_shape) to logits (batch, classes).

    InputError for an unknown name or images that are too small for its layers.
    """
    if name not in MODELS:
        raise InputError(f"{name!r} is not known", key="model")
    least = MODELS[name][1]
    if min(image_shape[:2]) < least:
        raise InputError(
            f"{name} needs images of at least {least} pixels a side, "
            f"these have {min(image_shape[:2])}",
            key="image_size",
            advice=f"Give --image-size {least} or more.",
        )
    if name == "greennet":
        # Down to 4 to 8 pixels a side, whatever the images' size.
        stages = max(2, min(6, min(image_shape[:2]).bit_length() - 3))
        return greennet(image_shape, classes, stages=min(stages, min(image_shape[:2]) // 2))
    if name == "alexnet":
        return alexnet(image_shape, classes)
    make = getattr(keras.applications, _KERAS[name])
    return make(weights=None, input_shape=image_shape, classes=classes, classifier_activation=None)
