"""What two ranks with TensorFlow do in test_tensorflow.py: one function a check.

TensorFlow takes long to import, so all checks run in one job, in order. Each
runs on both ranks at once and asserts.
"""

from __future__ import annotations

import tempfile
import traceback
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from fabric.errors import InputError, ToolError
from trainer import job
from trainer.bucket_size import CANDIDATES_BYTES, choose_bucket_bytes
from trainer.callbacks import (
    AverageBatchStatistics,
    AverageMetrics,
    SmoothExponentialDecayCallback,
    average_figures,
)
from trainer.checkpoint import latest_checkpoint, load_checkpoint, read_meta
from trainer.collective.communicator import alone
from trainer.collective.courier import Courier
from trainer.collective.dtypes import ReduceOp
from trainer.collective.errors import MismatchError, WeightsDifferError
from trainer.collective.fusion import BUCKET_BYTES, BucketLine
from trainer.data import digits
from trainer.learning_rate import SmoothExponentialDecay
from trainer.models import catalogue
from trainer.models.greennet import greennet
from trainer.optimizer import ReplicatedVarsOptimizer
from trainer.orders import JobOrders
from trainer.parameter_server import server_planner
from trainer.rank import RankContext
from trainer.replicas import Replicas
from trainer.replication import digest
from trainer.schedule import SmoothExponentialDecaySchedule, smooth_exponential_decay
from trainer.sources import open_source, record_spans
from trainer.sparse import sum_rows
from trainer.spec import TrainingPlan
from trainer.statistics import SyncBatchNormalization, sync_batch_normalization
from trainer.uneven import common_steps, in_step


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
    model, alone = _seeded(greennet, context.membership.rank), _seeded(greennet, 0)

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


def _seeded(build: Any, seed: int) -> Any:
    keras.utils.set_random_seed(seed)
    return build()


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


def check_rows_of_large_tables_travel_as_rows(context: RankContext) -> None:
    rank = context.membership.rank
    for rows_each, travels in ((3, "rows"), (40, "table")):
        table = tf.Variable(tf.ones((60, 4)), name="table")
        alone = tf.Variable(tf.ones((60, 4)), name="table")
        optimizer = ReplicatedVarsOptimizer(keras.optimizers.Adam(0.1), dense_below_bytes=0)
        whole = keras.optimizers.Adam(0.1)
        rows = [np.arange(rows_each + r) * (r + 1) % 60 for r in range(context.membership.size)]

        @tf.function(jit_compile=False, autograph=False)
        def step(picked: Any, table: Any, optimizer: Any, share: float, dense: bool) -> Any:
            with tf.GradientTape() as tape:
                looked_up = tf.nn.embedding_lookup(table, picked)
                loss = share * tf.reduce_sum(tf.square(looked_up))
            gradient = tape.gradient(loss, table)
            if dense:  # Keras' Adam would take a row that stands twice for two gradients
                gradient = tf.convert_to_tensor(gradient)
            optimizer.apply([gradient], [table])

        optimizer.build([table])
        whole.build([alone])
        for _ in range(3):
            step(tf.constant(rows[rank]), table, optimizer, 1.0, False)
            both = tf.constant(np.concatenate(rows))
            step(both, alone, whole, 1.0 / context.membership.size, True)
        np.testing.assert_allclose(table.numpy(), alone.numpy(), atol=1e-6)
        assert same_everywhere(context, [table.numpy()])
        assert len(optimizer.exchange._sparse) == 1
        mine = rows[rank]
        found = context.courier.call(
            lambda c, mine=mine: sum_rows(c, np.ones((len(mine), 4), np.float32), mine, 60, "test")
        )
        assert (len(found[1]) == 60) == (travels == "table")
        expected = np.zeros((60, 4), np.float32)
        np.add.at(expected, np.concatenate(rows), 1.0)
        dense = np.zeros((60, 4), np.float32)
        dense[found[1]] = found[0]
        assert (dense == expected).all()
    # A rank may have touched nothing at all, in fp16 as well.
    empty = np.zeros((0 if rank else 2, 4), np.float16)
    indices = np.arange(len(empty))
    values, found = context.courier.call(lambda c: sum_rows(c, empty, indices, 60, "test"))
    assert (values.shape, values.dtype, found.tolist()) == ((2, 4), np.float16, [0, 1])


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
    alone = _seeded(build, 1)
    model = sync_batch_normalization(_seeded(build, 1))
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


def check_bucket_size_is_measured_and_the_same_on_all_ranks(context: RankContext) -> None:
    chosen = context.courier.call(lambda c: choose_bucket_bytes(c, 64 << 20))
    assert chosen in CANDIDATES_BYTES
    every = context.courier.call(lambda c: c.allgather(np.array([chosen])))
    assert (every == chosen).all()
    # A small model is not worth it: nothing is sent, so the other ranks need not take part.
    if context.membership.rank == 0:
        assert context.courier.call(lambda c: choose_bucket_bytes(c, 1 << 20)) == BUCKET_BYTES


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


def check_optimizer_is_serialised_and_saves_what_the_inner_one_saves(context: RankContext) -> None:
    rate = smooth_exponential_decay(
        0.001, 0.1, decay_rate=0.5, warmup_epochs=1, decay_epochs=2, steps_per_epoch=10
    )
    optimizer = ReplicatedVarsOptimizer(keras.optimizers.SGD(rate, momentum=0.9), check_every=7)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(optimizer))
    assert again.get_config() == optimizer.get_config()
    inner = keras.optimizers.SGD(rate, momentum=0.9)
    model = small_model(seed=0)
    inner.build(model.trainable_variables)
    optimizer.build(model.trainable_variables)
    assert [v.shape for v in optimizer.variables] == [v.shape for v in inner.variables]
    fixed = ReplicatedVarsOptimizer(keras.optimizers.SGD(0.1))
    fixed.learning_rate = 0.25
    assert float(fixed.inner_optimizer.learning_rate) == 0.25


def check_keras_schedule_is_the_plain_one(context: RankContext) -> None:
    schedule = smooth_exponential_decay(0.001, 0.1, decay_rate=0.7, warmup_steps=20, decay_steps=15)
    for step in (0, 1, 7, 19, 20, 34, 35, 1000):
        np.testing.assert_allclose(float(schedule(tf.constant(step))), schedule.plan(step), 1e-5)
    again = SmoothExponentialDecaySchedule.from_config(schedule.get_config())
    assert again.plan == schedule.plan
    sudden = smooth_exponential_decay(0.0, 0.1, decay_rate=0.7, warmup_steps=0, decay_steps=5)
    assert float(sudden(0)) == pytest.approx(0.1)


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


def _write_images(folder: Path, count: int) -> None:
    for label in ("cat", "dog"):
        (folder / label).mkdir(parents=True)
        for number in range(count):
            # The image says who it is: red is the class, green its number.
            image = np.zeros((12, 10, 3), np.uint8)
            image[..., 0], image[..., 1] = 255 * (label == "dog"), number
            tf.io.write_file(str(folder / label / f"{number:03d}.png"), tf.io.encode_png(image))


def _write_records(folder: Path, counts: list[int]) -> None:
    folder.mkdir(parents=True)
    number = 0
    for part, count in enumerate(counts):
        name = f"train-{part:05d}" if part else "validation-00000"
        with tf.io.TFRecordWriter(str(folder / name)) as writer:
            for _ in range(count):
                image = np.zeros((9, 9, 3), np.uint8)
                image[..., 1] = number
                features = {
                    "image/encoded": tf.train.Feature(
                        bytes_list=tf.train.BytesList(value=[tf.io.encode_png(image).numpy()])
                    ),
                    "image/class/label": tf.train.Feature(
                        int64_list=tf.train.Int64List(value=[1 + number % 5])
                    ),
                }
                example = tf.train.Example(features=tf.train.Features(feature=features))
                writer.write(example.SerializeToString())
                number += 1


def _seen(batches: Any) -> list[tuple[int, int]]:
    return [
        (round(float(np.mean(np.asarray(image)[..., 1])) * 255), int(label))
        for images, labels in batches
        for image, label in zip(images, labels, strict=True)
    ]


def check_folders_and_records_are_shared_out_without_overlap(context: RankContext) -> None:
    folder = Path(tempfile.mkdtemp())
    _write_images(folder / "images", 21)
    _write_records(folder / "records", [7, 10, 13])
    rank, size = context.membership.rank, context.membership.size
    common = {"ranks": size, "batch_size": 3, "model": "greennet", "image_size": 8, "seed": 4}
    plans = {
        "folder": TrainingPlan(data=str(folder / "images"), **common),
        "records": TrainingPlan(
            data=str(folder / "records" / "*-0*"), classes=5, first_label=1, **common
        ),
    }
    counts = {"folder": (34, 8, 2), "records": (23, 7, 5)}
    for name, plan in plans.items():
        source = open_source(plan, rank)
        train, test, classes = counts[name]
        assert (source.image_shape, source.classes) == ((8, 8, 3), classes)
        assert source.steps == train // (3 * size)
        assert source.test_count == test
        first = _seen(source.batches(0))
        assert len(first) == source.steps * 3
        # The same in a second run; another order in the next epoch; resumed in the middle.
        assert _seen(open_source(plan, rank).batches(0)) == first
        assert _seen(source.batches(1)) != first
        assert _seen(source.batches(0, first_step=2)) == first[6:]
        images = [np.asarray(images) for images, _ in source.batches(0)]
        again = [np.asarray(images) for images, _ in open_source(plan, rank).batches(0)]
        assert all((a == b).all() for a, b in zip(images, again, strict=True))
        shared: list[list[tuple[int, int]]] = context.membership.gather(f"{name} seen", first)
        together = [tuple(entry) for part in shared for entry in part]
        assert len(set(together)) == len(together)
        tested = context.membership.gather(f"{name} tested", _seen(source.test_batches()))
        every_test = [tuple(entry) for part in tested for entry in part]
        assert len(set(every_test)) == len(every_test) == test
        assert not set(every_test) & set(together)
        # One rank with the whole batch sees the same images, step by step.
        whole = _seen(open_source(replace(plan, ranks=1, batch_size=3 * size), 0).batches(0))
        for step in range(source.steps):
            parts = [tuple(e) for part in shared for e in part[step * 3 : step * 3 + 3]]
            assert whole[step * 3 * size : (step + 1) * 3 * size] == parts
        if name == "records":
            assert all(label == number % 5 for number, label in together)
    assert len(record_spans(str(folder / "records" / "train-00002"))) == 13
    broken = folder / "records" / "broken"
    broken.write_bytes((folder / "records" / "train-00002").read_bytes()[:-3])
    with pytest.raises(InputError, match="cut off"):
        record_spans(str(broken))
    for data, said in ((str(folder / "nothing"), "no file"), (str(folder), "no image")):
        with pytest.raises(InputError, match=said) as caught:
            open_source(replace(plan, data=data), rank)
        assert caught.value.key == "data"


def check_what_cannot_be_trained_on_is_named_with_its_file(context: RankContext) -> None:
    folder = Path(tempfile.mkdtemp())
    _write_images(folder / "images", 6)
    _write_records(folder / "records", [2, 9])
    broken = folder / "images" / "dog" / "003.png"
    broken.write_bytes(b"no image")
    plan = TrainingPlan(ranks=1, batch_size=4, image_size=8, data=str(folder / "images"))
    source = open_source(plan, 0)
    with pytest.raises(InputError, match=r"dog/003\.png: cannot be read: .*image") as caught:
        list(source.batches(0)) + list(source.test_batches())
    assert caught.value.key == "data"
    records = replace(plan, data=str(folder / "records" / "train-*"), first_label=1, classes=5)
    assert len(list(open_source(records, 0).batches(0))) == 2
    for change, label in (({"classes": 4}, 5), ({"first_label": 2}, 1)):
        said = rf"train-00001: record \d: the label {label} is none of the .*--classes"
        with pytest.raises(InputError, match=said):
            list(open_source(replace(records, batch_size=9, **change), 0).batches(0))
    path = folder / "records" / "train-00001"
    content = bytearray(path.read_bytes())
    start, length = record_spans(str(path))[4]
    content[start : start + length] = bytes(length)
    path.write_bytes(content)
    with pytest.raises(InputError, match="train-00001: record 5: cannot be read"):
        list(open_source(replace(records, batch_size=9), 0).batches(0))


def check_one_rank_clips_rows_as_several_do(context: RankContext) -> None:
    rows, share = np.array([3, 3, 1, 3, 1, 3]), 3
    mine = rows[context.membership.rank * share :][:share]
    for dense_below_bytes in (0, 1 << 20):
        tables = []
        for courier, picked in ((context.courier, mine), (Courier(alone()), rows)):
            table = tf.Variable(tf.ones((8, 4)), name="table")
            optimizer = ReplicatedVarsOptimizer(
                keras.optimizers.Adam(0.1, global_clipnorm=0.05),
                courier=courier,
                dense_below_bytes=dense_below_bytes,
            )
            optimizer.build([table])
            for _ in range(3):
                with tf.GradientTape() as tape:
                    looked_up = tf.nn.embedding_lookup(table, picked)
                    loss = tf.reduce_mean(tf.square(looked_up))
                optimizer.apply([tape.gradient(loss, table)], [table])
            tables.append(table.numpy())
        np.testing.assert_allclose(*tables, atol=1e-6)


def check_ranks_whose_data_end_early_end_the_epoch_together(context: RankContext) -> None:
    rank = context.membership.rank
    total = np.zeros(1, np.float32)
    for number in in_step(range(5 + 3 * rank)):
        part = np.array([number], np.float32)
        context.courier.call(lambda c, part=part: c.allreduce(part))
        total += part
    assert total[0] == 2 * sum(range(5))
    assert list(in_step(range(0 if rank else 4))) == []
    assert common_steps(7 - rank) == 7 - context.membership.size + 1


def check_synthetic_batches_differ_by_rank_and_repeat_by_run(context: RankContext) -> None:
    plan = TrainingPlan(data="synthetic", image_size=16, batch_size=2, classes=9)
    source = open_source(plan, context.membership.rank)
    assert (source.steps, source.test_count, source.image_shape) == (50, 0, (16, 16, 3))
    images, labels = next(source.batches(0))
    again, _ = next(open_source(plan, context.membership.rank).batches(3))
    assert (images.numpy() == again.numpy()).all()
    assert labels.shape == (2,)
    every = context.courier.call(lambda c: c.allgather(images.numpy()))
    assert (every[0] != every[1]).any()
    large = open_source(replace(plan, data="digits", model="resnet50", image_size=32), 0)
    assert next(large.batches(0))[0].shape == (2, 32, 32, 3)


def _orders(folder: Path, resume: bool = False, **changes: Any) -> JobOrders:
    plan = TrainingPlan(**{"epochs": 3, "batch_size": 128, "seed": 5, **changes})
    every = 4 if plan.steps else 0
    return JobOrders(plan, folder, resume, 3, {"certificate_id": "c-1"}, every)


def check_a_resumed_job_ends_with_the_bits_of_an_unbroken_one(context: RankContext) -> None:
    name = tempfile.mkdtemp() if context.membership.rank == 0 else ""
    folder = Path(context.membership.gather("folder", name)[0])

    def run(part: str, *, resume: bool = False, **changes: Any) -> dict[str, Any]:
        return job.run(context, _orders(folder / part, resume, **changes).payload())

    unbroken = run("a")
    first = run("b", epochs=2)
    resumed = run("b", resume=True)
    assert first["digest"] != unbroken["digest"]
    assert resumed["digest"] == unbroken["digest"]
    assert resumed["resumed_after_epoch"] == 2
    assert [r["epoch"] for r in resumed["history"]] == [3]
    for key in ("loss", "accuracy", "test_accuracy", "learning_rate"):
        assert resumed["history"][0][key] == unbroken["history"][2][key]
    again = run("c")
    assert again["digest"] == unbroken["digest"]
    if context.membership.rank == 0:
        _look_at_checkpoints(folder)


def check_a_job_resumes_in_the_middle_of_an_epoch_with_every_bit(context: RankContext) -> None:
    name = tempfile.mkdtemp() if context.membership.rank == 0 else ""
    folder = Path(context.membership.gather("folder", name)[0])
    # Dropout, batch statistics, accumulation, sums of figures: all must go on where they were.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job, "build", _random_model)
        for change in ({}, {"sync": "ps", "accumulate": 2}):

            def run(
                part: str, steps: int, resume: bool = False, change: Any = change
            ) -> dict[str, Any]:
                part = f"{part}{len(change)}"
                plan = {"steps": steps, "batch_size": 64, **change}
                return job.run(context, _orders(folder / part, resume, **plan).payload())

            unbroken = run("whole", 8)
            run("part", 4)
            checkpoint = latest_checkpoint(folder / f"part{len(change)}")
            assert checkpoint.name == "epoch-00000-step-0000004"
            resumed = run("part", 8, resume=True)
            assert (resumed["resumed_after_epoch"], resumed["resumed_after_step"]) == (0, 4)
            assert resumed["digest"] == unbroken["digest"]
            for key in ("loss", "accuracy", "learning_rate", "test_accuracy"):
                mine, whole = (r["history"][-1][key] for r in (resumed, unbroken))
                assert mine == pytest.approx(whole, rel=1e-12), key
            every = context.membership.gather("digests", resumed["digest"])
            assert len(set(every)) == 1


def _random_model(name: str, shape: Any, classes: int) -> Any:
    return keras.Sequential(
        [
            keras.Input(shape),
            keras.layers.Flatten(),
            keras.layers.Dense(16, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.3),
            keras.layers.Dense(classes),
        ]
    )


def check_ranks_started_for_different_jobs_are_refused(context: RankContext) -> None:
    payload = _orders(Path("unused"), seed=context.membership.rank).payload()
    with pytest.raises(MismatchError, match="seed 1 on rank 1 and 0 on rank 0"):
        job.run(context, payload)


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


def _look_at_checkpoints(folder: Path) -> None:
    latest = latest_checkpoint(folder / "b")
    assert latest.name == "epoch-00003"
    assert sorted(path.name for path in latest.iterdir()) == [
        "meta.json",
        "model.weights.h5",
        "optimizer.npz",
    ]
    meta = read_meta(latest)
    assert meta["gate_pass"] == {"certificate_id": "c-1"}
    assert (meta["epoch"], meta["step"]) == (3, 15)
    assert meta["plan"]["seed"] == 5
    # Any single-machine program reads the weights; damage is noticed.
    model = greennet()
    model.load_weights(latest / "model.weights.h5")
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)
    data = bytearray((latest / "optimizer.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (latest / "optimizer.npz").write_bytes(data)
    with pytest.raises(InputError, match="damaged"):
        load_checkpoint(latest, model, optimizer)


def check_a_full_disk_costs_no_earlier_checkpoint(context: RankContext) -> None:
    if context.membership.rank != 0:
        return
    from trainer.checkpoint import Position, save_checkpoint

    folder = Path(tempfile.mkdtemp())
    model = small_model(seed=0)
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)
    options: dict[str, Any] = {"plan": asdict(replace(TrainingPlan(), seed=1)), "gate_pass": None}
    save_checkpoint(folder, model, optimizer, Position(1, 10), **options)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trainer.checkpoint.np.savez", full)
        with pytest.raises(ToolError, match="No space left"):
            save_checkpoint(folder, model, optimizer, Position(2, 20), **options)
    assert [path.name for path in folder.iterdir()] == ["epoch-00001"]
    load_checkpoint(latest_checkpoint(folder), model, optimizer)
    for epoch in range(2, 7):
        save_checkpoint(folder, model, optimizer, Position(epoch, epoch * 10), **options)
    assert len(list(folder.iterdir())) == 3


CHECKS = {name: value for name, value in globals().items() if name.startswith("check_")}


def everything(context: RankContext, payload: Any) -> dict[str, str]:
    results = {}
    for name in payload:
        try:
            CHECKS[name](context)
        except BaseException:
            results[name] = traceback.format_exc()
            break
        results[name] = "passed"
    return results
