"""The models that come along."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from fabric.errors import InputError
from trainer.models import catalogue
from trainer.models.greennet import greennet
from trainer.rank import RankContext


def check_greennet_is_a_multilayer_cnn_of_any_size(context: RankContext) -> None:
    model = greennet((8, 8, 1), 10)
    kinds = [type(layer).__name__ for layer in model.layers]
    assert kinds.count("Conv2D") == 4
    assert model(np.zeros((2, 8, 8, 1), np.float32)).shape == (2, 10)
    assert greennet((32, 32, 3), 100, stages=3)(np.zeros((1, 32, 32, 3))).shape == (1, 100)
    with pytest.raises(InputError, match="halved"):
        greennet((4, 4, 1), 10, stages=3)


def check_the_benchmark_models_have_their_published_sizes(context: RankContext) -> None:
    # Trainable parameters and tensors, as shared by the papers' common implementations.
    published = [
        ("resnet152", 299, 60_268_520, 622),
        ("inception_v3", 299, 23_817_352, 190),
        ("resnet50", 224, 25_583_592, 214),
        ("vgg16", 224, 138_357_544, 32),
        ("alexnet", 224, 61_100_840, 16),
    ]
    for name, side, parameters, tensors in published[context.membership.rank :: 2]:
        with tf.device("/cpu:0"):
            model = catalogue.build(name, (side, side, 3), 1000)
        variables = model.trainable_variables
        assert sum(int(np.prod(v.shape)) for v in variables) == parameters, name
        assert len(variables) == tensors, name
        # Logits, not probabilities: the loss of the job expects them.
        assert getattr(model.layers[-1].activation, "__name__", "") == "linear"
    with pytest.raises(InputError, match="at least 75 pixels") as caught:
        catalogue.build("inception_v3", (64, 64, 3), 10)
    assert caught.value.key == "image_size"
    assert catalogue.build("greennet", (20, 20, 3), 7).output_shape == (None, 7)
