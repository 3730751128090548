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
from trainer.checkpoint import latest_checkpoint, load_checkpoint, read_meta
from trainer.collective.dtypes import ReduceOp
from trainer.collective.errors import MismatchError, WeightsDifferError
from trainer.collective.fusion import BucketLine
from trainer.models.greennet import greennet
from trainer.optimizer import ReplicatedVarsOptimizer
from trainer.orders import JobOrders
from trainer.rank import RankContext
from trainer.replication import digest
from trainer.schedule import SmoothExponentialDecaySchedule, smooth_exponential_decay
from trainer.spec import TrainingPlan


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
    (lines,) = optimizer._transfer._lines.values()
    for line in lines:
        line._buffer[:] = 1e9
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


def _orders(folder: Path, *, epochs: int, resume: bool) -> JobOrders:
    plan = TrainingPlan(epochs=epochs, batch_size=128, seed=5)
    return JobOrders(plan, folder, resume, 3, {"certificate_id": "c-1"})


def check_a_resumed_job_ends_with_the_bits_of_an_unbroken_one(context: RankContext) -> None:
    name = tempfile.mkdtemp() if context.membership.rank == 0 else ""
    folder = Path(context.membership.gather("folder", name)[0])
    unbroken = job.run(context, _orders(folder / "a", epochs=3, resume=False).payload())
    first = job.run(context, _orders(folder / "b", epochs=2, resume=False).payload())
    resumed = job.run(context, _orders(folder / "b", epochs=3, resume=True).payload())
    assert first["digest"] != unbroken["digest"]
    assert resumed["digest"] == unbroken["digest"]
    assert resumed["resumed_after_epoch"] == 2
    assert [r["epoch"] for r in resumed["history"]] == [3]
    for key in ("loss", "accuracy", "test_accuracy", "learning_rate"):
        assert resumed["history"][0][key] == unbroken["history"][2][key]
    again = job.run(context, _orders(folder / "c", epochs=3, resume=False).payload())
    assert again["digest"] == unbroken["digest"]
    if context.membership.rank == 0:
        _look_at_checkpoints(folder)


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
