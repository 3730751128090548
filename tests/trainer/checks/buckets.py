"""Gradients travel in buckets: in which order, how large, whose memory."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.trainer.checks.helpers import (
    examples,
    small_model,
    stepper,
)
from trainer.bucket_size import CANDIDATES_BYTES, choose_bucket_bytes
from trainer.collective.fusion import BUCKET_BYTES, BucketLine
from trainer.optimizer import ReplicatedVarsOptimizer
from trainer.rank import RankContext


def check_bucket_size_is_measured_and_the_same_on_all_ranks(context: RankContext) -> None:
    chosen = context.courier.call(lambda c: choose_bucket_bytes(c, 64 << 20))
    assert chosen in CANDIDATES_BYTES
    every = context.courier.call(lambda c: c.allgather(np.array([chosen])))
    assert (every == chosen).all()
    # A small model is not worth it: nothing is sent, so the other ranks need not take part.
    if context.membership.rank == 0:
        assert context.courier.call(lambda c: choose_bucket_bytes(c, 1 << 20)) == BUCKET_BYTES


def check_posts_go_out_in_reverse_layer_order_before_any_wait(context: RankContext) -> None:
    calls: list[tuple[str, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in ("post", "wait", "release"):
            original = getattr(BucketLine, name)

            def record(line: BucketLine, *args: Any, _name=name, _original=original) -> Any:
                calls.append((_name, line.bucket.index))
                return _original(line, *args)

            patch.setattr(BucketLine, name, record)
        model = small_model(seed=0)
        optimizer = ReplicatedVarsOptimizer(
            keras.optimizers.SGD(0.1), bucket_bytes=64, first_bucket_bytes=64
        )
        step = tf.function(stepper(model, optimizer), jit_compile=False)
        for _ in range(3):
            step(*examples(8, context.membership.rank))
    count = len({index for _, index in calls})
    assert count >= 4
    in_order = [(name, i) for name in ("post", "wait", "release") for i in range(count)]
    assert calls == in_order * 3


def check_a_kept_gradient_is_not_changed_by_the_next_step(context: RankContext) -> None:
    # assign() does not copy: a gradient that still lay in the bucket would change.
    class Keeper(keras.optimizers.Optimizer):
        def build(self, variables: Any) -> None:
            super().build(variables)
            self.kept = [self.add_variable_from_reference(v, name="kept") for v in variables]

        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            self.assign(self.kept[self._get_variable_index(variable)], gradient)

    model = small_model(seed=0)
    inner = Keeper(0.1)
    optimizer = ReplicatedVarsOptimizer(inner, check_every=0)
    step = tf.function(stepper(model, optimizer), jit_compile=False)
    step(*examples(8, context.membership.rank))
    kept = [v.numpy().copy() for v in inner.kept]
    (carriers,) = optimizer.exchange._carriers.values()
    for carrier in carriers:
        for slot in carrier.line._slots:
            slot[:] = 1e9
    for before, variable in zip(kept, inner.kept, strict=True):
        assert (variable.numpy() == before).all()
