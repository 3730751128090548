"""Averaged gradients train as one rank with the whole batch does."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from fabric.errors import InputError
from tests.trainer.checks.helpers import (
    examples,
    same_everywhere,
    seeded,
    share,
    small_model,
    stepper,
)
from trainer.collective.dtypes import ReduceOp
from trainer.data import digits
from trainer.models.greennet import greennet
from trainer.optimizer import ReplicatedVarsOptimizer
from trainer.parameter_server import server_planner
from trainer.rank import RankContext
from trainer.replicas import Replicas


def check_custom_loop_equals_one_rank_with_the_whole_batch(context: RankContext) -> None:
    x, y = examples(64, 1)
    # Different weights on every rank: rank 0's must win.
    model = small_model(seed=context.membership.rank)
    optimizer = ReplicatedVarsOptimizer(keras.optimizers.Adam(0.01), check_every=3)
    step = tf.function(stepper(model, optimizer), jit_compile=False)
    alone = small_model(seed=0)
    alone_step = tf.function(stepper(alone, keras.optimizers.Adam(0.01)), jit_compile=False)
    for _ in range(10):
        mine = step(share(context, x), share(context, y))
        whole = alone_step(x, y)
        losses = np.array([float(mine)], np.float64)
        context.courier.call(lambda c, losses=losses: c.allreduce(losses, ReduceOp.AVERAGE))
        np.testing.assert_allclose(losses[0], float(whole), atol=1e-5)
    for ours, theirs in zip(model.get_weights(), alone.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert same_everywhere(context, model.get_weights())
    assert int(optimizer.iterations) == 10


def check_fifty_steps_on_real_data_are_those_of_one_rank_with_twice_the_batch(
    context: RankContext,
) -> None:
    data, batch = digits(7).train, 32
    model, alone = seeded(greennet, context.membership.rank), seeded(greennet, 0)

    def sgd() -> Any:
        return keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True, global_clipnorm=1.0)

    step = tf.function(stepper(model, ReplicatedVarsOptimizer(sgd())), jit_compile=False)
    alone_step = tf.function(stepper(alone, sgd()), jit_compile=False)
    size = context.membership.size
    worst = 0.0
    for turn in range(50):
        start = turn * batch * size % (len(data) - batch * size)
        x = data.images[start : start + batch * size]
        y = data.labels[start : start + batch * size]
        part = slice(context.membership.rank * batch, (context.membership.rank + 1) * batch)
        mine = np.array([float(step(x[part], y[part]))], np.float64)
        context.courier.call(lambda c, mine=mine: c.allreduce(mine, ReduceOp.AVERAGE))
        worst = max(worst, abs(mine[0] - float(alone_step(x, y))))
    assert worst < 1e-5
    assert same_everywhere(context, model.get_weights())


def check_a_raw_module_loop_with_its_own_update(context: RankContext) -> None:
    class Line(tf.Module):
        def __init__(self, at: float) -> None:
            super().__init__()
            self.slope, self.offset = tf.Variable(at, name="slope"), tf.Variable(at, name="offset")

    line, momentum = Line(float(context.membership.rank)), tf.Variable([5.0, 6.0], name="momentum")
    momentum.assign_add([float(context.membership.rank)] * 2)
    replicas = Replicas(line.trainable_variables, [momentum])
    assert [float(v) for v in line.trainable_variables] == [0.0, 0.0]
    assert momentum.numpy().tolist() == [5.0, 6.0]
    xs = tf.constant(np.linspace(-1, 1, 16, dtype=np.float32))
    mine = share(context, xs.numpy())

    @tf.function(jit_compile=False)
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(line.slope * x + line.offset - (3.0 * x + 1.0)))
        variables = line.trainable_variables
        averages = replicas.average(tape.gradient(loss, variables))
        for variable, gradient in zip(variables, averages, strict=True):
            variable.assign_sub(0.3 * gradient)
        return loss

    for _ in range(100):
        step(mine)
    found = {v.name.split(":")[0]: float(v) for v in line.trainable_variables}
    assert found == pytest.approx({"slope": 3.0, "offset": 1.0}, abs=1e-3)
    replicas.check()
    with pytest.raises(InputError, match="1 gradients for 2"):
        replicas.average([tf.constant(0.0)])


def _count_submissions(courier: Any) -> list[Any]:
    seen: list[Any] = []
    submit = type(courier).submit

    def counting(work: Any) -> Any:
        seen.append(work)
        return submit(courier, work)

    courier.submit = counting
    return seen


def check_accumulated_steps_are_one_step_of_the_whole_batch(context: RankContext) -> None:
    x, y = examples(64, 9)
    for compiled in (False, True):
        model, alone = small_model(seed=0), small_model(seed=0)
        optimizer = ReplicatedVarsOptimizer(
            keras.optimizers.SGD(0.2, momentum=0.9), accumulate=4, check_every=1, bucket_bytes=128
        )
        optimizer.build(model.trainable_variables)
        step, alone_step = stepper(model, optimizer), stepper(alone, keras.optimizers.SGD(0.2, 0.9))
        if compiled:
            step = tf.function(step, jit_compile=False)
        before = model.get_weights()
        sent = _count_submissions(context.courier)
        for round_ in range(3):
            for part in range(4):
                piece = slice(part, None, 4)
                step(share(context, x[piece]), share(context, y[piece]))
                changed = any(
                    (a != b).any() for a, b in zip(before, model.get_weights(), strict=True)
                )
                assert changed == (round_ > 0 or part == 3)
            alone_step(x, y)
        assert int(optimizer.iterations) == 3
        # Only every fourth step talks: the buckets, and the weights' check.
        buckets = len(next(iter(optimizer.exchange._carriers.values())))
        assert len(sent) == buckets + 3 * (buckets + 1)  # first, a buffer for each
        del context.courier.submit
        for ours, theirs in zip(model.get_weights(), alone.get_weights(), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-5)


def check_model_fit_keeps_ranks_equal(context: RankContext) -> None:
    x, y = examples(96, 2)
    for executions in (1, 3):
        model = small_model(seed=context.membership.rank)
        optimizer = ReplicatedVarsOptimizer(
            keras.optimizers.SGD(0.1, momentum=0.9), check_every=4, bucket_bytes=256
        )
        model.compile(
            optimizer,
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            steps_per_execution=executions,
        )
        before = model.get_weights()
        history = model.fit(
            share(context, x), share(context, y), batch_size=8, epochs=3, verbose=0, shuffle=False
        )
        losses = history.history["loss"]
        assert losses[-1] < losses[0]
        assert any((a != b).any() for a, b in zip(before, model.get_weights(), strict=True))
        assert same_everywhere(context, model.get_weights())
        assert same_everywhere(context, [v.numpy() for v in optimizer.variables])


def check_accumulation_clipping_sparse_and_missing_gradients(context: RankContext) -> None:
    keras.utils.set_random_seed(context.membership.rank)
    table = tf.Variable(tf.random.normal((20, 4)), name="table")
    unused = tf.Variable(tf.ones((3,)), name="unused")
    dense = tf.Variable(tf.random.normal((4, 1)), name="dense")
    optimizer = ReplicatedVarsOptimizer(
        keras.optimizers.SGD(0.1, gradient_accumulation_steps=2, global_clipnorm=1.0)
    )
    variables = [table, unused, dense]

    @tf.function(jit_compile=False, autograph=False)
    def step(rows: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.nn.embedding_lookup(table, rows) @ dense)
        gradients = tape.gradient(loss, variables)
        assert isinstance(gradients[0], tf.IndexedSlices)
        optimizer.apply(gradients, variables)

    with pytest.warns(UserWarning, match="Gradients do not exist"):
        step(tf.constant([1, 2, context.membership.rank + 5]))
    first = table.numpy().copy()
    for turn in range(3):
        step(tf.constant([turn, 2, context.membership.rank + 5]))
    assert same_everywhere(context, [v.numpy() for v in variables])
    assert (table.numpy() != first).any()
    # Rows that only the other rank has looked up must have moved here too.
    assert (table.numpy()[[5, 6]] != first[[5, 6]]).all()


def check_the_parameter_server_pushes_pulls_and_gives_the_rings_result(
    context: RankContext,
) -> None:
    x, y = examples(64, 21)
    weights: dict[str, list[np.ndarray]] = {}
    calls: list[tuple[str, int]] = []
    for sync in ("ring", "ps"):
        model = small_model(seed=context.membership.rank, width=40)
        optimizer = ReplicatedVarsOptimizer(
            keras.optimizers.SGD(0.1, momentum=0.9, global_clipnorm=1.0),
            planner=server_planner() if sync == "ps" else None,
        )
        step = tf.function(stepper(model, optimizer), jit_compile=False)
        with pytest.MonkeyPatch.context() as patch:
            for name in ("reduce", "broadcast"):
                original = getattr(type(context.communicator), name)
                patch.setattr(type(context.communicator), name, _bound(name, original, calls))
            for _ in range(5):
                step(share(context, x), share(context, y))
        weights[sync] = model.get_weights()
    for ring, ps in zip(weights["ring"], weights["ps"], strict=True):
        np.testing.assert_allclose(ring, ps, atol=1e-6)
    assert same_everywhere(context, weights["ps"])
    # Both ranks serve, and each has a part of the largest layer, which is cut.
    assert {root for name, root in calls if name == "reduce"} == {0, 1}


def _bound(name: str, original: Any, calls: list[tuple[str, int]]) -> Any:
    def record(c: Any, array: Any, root: int = 0, *args: Any, **options: Any) -> Any:
        calls.append((name, root))
        return original(c, array, root, *args, **options)

    return record
