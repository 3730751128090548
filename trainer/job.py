"""What each rank does in ``paisoar train``: build, replicate, train, test, save."""

from __future__ import annotations

import contextlib
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from fabric.errors import InputError
from trainer import timeline
from trainer.agreement import agree_on_orders
from trainer.checkpoint import (
    Position,
    check_plan,
    latest_checkpoint,
    load_checkpoint,
    only_job_in,
    random_states,
    read_meta,
    save_checkpoint,
)
from trainer.collective.courier import Courier
from trainer.collective.errors import in_short
from trainer.learning_rate import scaled_linearly
from trainer.models.catalogue import build
from trainer.optimizer import ReplicatedVarsOptimizer
from trainer.orders import JobOrders
from trainer.parameter_server import server_planner
from trainer.rank import RankContext
from trainer.replication import broadcast_variables, digest
from trainer.schedule import smooth_exponential_decay
from trainer.sources import Source, open_source
from trainer.spec import EpochRecord, Progress, TrainingPlan
from trainer.statistics import average_statistics, sync_batch_normalization
from trainer.timeline import span

MOMENTUM = 0.9
_REPORT_EVERY_S = 0.25
_START = Position(0, 0)


def run(context: RankContext, payload: dict[str, Any]) -> dict[str, Any]:
    """Train as one rank; the result is this rank's part of :class:`~trainer.spec.TrainResult`."""
    tf.config.experimental.enable_op_determinism()
    orders = agree_on_orders(context, JobOrders.from_payload(payload))
    folder = orders.checkpoint_folder
    with contextlib.ExitStack() as stack:
        if context.membership.rank == 0 and folder is not None:
            stack.enter_context(only_job_in(folder, make=not orders.resume))
        return _run(_Job(context, orders))


def _run(job: _Job) -> dict[str, Any]:
    try:
        return job.run()
    except tf.errors.ResourceExhaustedError as error:
        raise MemoryError(f"TensorFlow found no memory: {in_short(error)}") from error
    except tf.errors.OpError as error:
        # TensorFlow wraps what is raised inside a graph; the cause is kept here.
        raise (job.optimizer.failure or error) from error


class _Job:
    def __init__(self, context: RankContext, orders: JobOrders) -> None:
        plan = orders.plan
        self.context = context
        self.orders = orders
        self.plan = plan
        self.rank = context.membership.rank
        self.source: Source = open_source(plan, self.rank)
        # Whole rounds of accumulation: none is cut in two by an epoch or a checkpoint.
        self.steps = self.source.steps // plan.accumulate * plan.accumulate
        if not self.steps:
            raise InputError(
                f"an epoch has {self.source.steps} steps, fewer than are accumulated",
                key="accumulate",
            )
        self.total_steps = plan.steps or plan.epochs * self.steps
        self.model = _model(plan, self.source)
        self._seed_dropout(counted=False)
        rate = smooth_exponential_decay(
            **_rates(plan), steps_per_epoch=self.steps // plan.accumulate
        )
        self.rate = rate.plan
        inner = keras.optimizers.SGD(rate, momentum=MOMENTUM, nesterov=True)
        if plan.precision == "mixed_float16":
            inner = keras.optimizers.LossScaleOptimizer(inner)
        self.optimizer = ReplicatedVarsOptimizer(
            inner,
            courier=context.courier,
            check_every=orders.check_every,
            bucket_bytes=plan.bucket_bytes or self._saved_bucket_bytes() or None,
            accumulate=plan.accumulate,
            planner=server_planner(plan.servers) if plan.sync == "ps" else None,
        )
        self.optimizer.build(self.model.trainable_variables)
        self.loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.train_step = tf.function(
            self._train_step, autograph=False, jit_compile=False, reduce_retracing=True
        )
        self.predict = tf.function(
            lambda images: self.model(images, training=False),
            autograph=False,
            reduce_retracing=True,
        )

    @property
    def courier(self) -> Courier:
        return self.context.courier

    def run(self) -> dict[str, Any]:
        plan = self.plan
        position, checkpoint = self._resume() if self.orders.resume else (_START, None)
        resumed = position
        history: list[EpochRecord] = []
        trained_s = 0.0
        while position.step < self.total_steps:
            record, position, saved = self._epoch(position)
            history.append(record)
            trained_s += record.seconds
            self._tell(
                Progress(
                    "epoch",
                    self.rank,
                    record.epoch,
                    position.step,
                    self.total_steps,
                    record.loss,
                    record.test_accuracy,
                    record.images_per_s,
                    record.learning_rate,
                )
            )
            checkpoint = saved or checkpoint
            self._send_timeline()
        self.optimizer.check_weights()
        images = (position.step - resumed.step) * plan.batch_size * plan.ranks
        return {
            "accuracy": history[-1].test_accuracy if history else self._test() or 0.0,
            "digest": digest(v.numpy() for v in self.model.weights).hex(),
            "history": [asdict(record) for record in history],
            "checkpoint": str(checkpoint) if checkpoint else None,
            "images_per_s": images / trained_s if trained_s else 0.0,
            "transport": self.context.communicator.transport,
            "resumed_after_epoch": resumed.epoch,
            "resumed_after_step": resumed.step,
            "bucket_bytes": self.optimizer.exchange.bucket_bytes or 0,
            "waited_s": self.optimizer.exchange.waited_s,
        }

    def _train_step(self, images: Any, labels: Any) -> tuple[Any, Any]:  # noqa: ANN401
        with tf.GradientTape() as tape:
            logits = self.model(images, training=True)
            loss = self.loss(labels, logits)
            scaled = self.optimizer.scale_loss(loss)
        variables = self.model.trainable_variables
        self.optimizer.apply(tape.gradient(scaled, variables), variables)
        right = tf.equal(tf.argmax(logits, axis=-1, output_type=tf.int32), labels)
        return loss, tf.reduce_mean(tf.cast(right, tf.float32))

    def _epoch(self, position: Position) -> tuple[EpochRecord, Position, Path | None]:
        """Train to the end of the epoch or of the job; save on the way and at the end."""
        plan = self.plan
        began = reported = time.monotonic()
        # Of all ranks up to here; rank 0 carries what a checkpoint brought.
        sums = np.array(position.sums if self.rank == 0 else (0.0, 0.0), np.float64)
        every = self.orders.checkpoint_every
        saved: Path | None = None
        first = position.step_in_epoch
        batches = self.source.batches(position.epoch, first)
        for step in range(first, min(self.steps, first + self.total_steps - position.step)):
            with span("compute", "next batch"):
                images, labels = next(batches)
            with span("compute", f"step {position.step + 1}"):
                loss, accuracy = self.train_step(tf.constant(images), tf.constant(labels))
                sums += (float(loss), float(accuracy))
            position = replace(position, step=position.step + 1, step_in_epoch=step + 1)
            now = time.monotonic()
            if now - reported > _REPORT_EVERY_S:
                reported = now
                done = (step + 1 - first) * plan.batch_size * plan.ranks
                self._tell(
                    Progress(
                        "step",
                        self.rank,
                        position.epoch + 1,
                        position.step,
                        self.total_steps,
                        float(loss),
                        float(accuracy),
                        done / (now - began),
                        self.rate(self._updates(position) - 1),
                    )
                )
            if every and position.step % every == 0 and step + 1 < self.steps:
                saved = self._save(replace(position, sums=self._total(sums))) or saved
        seconds = time.monotonic() - began
        loss_mean, accuracy_mean = (
            x / position.step_in_epoch / plan.ranks for x in self._total(sums)
        )
        average_statistics(self.model, self.courier)
        tested = self._test()
        record = EpochRecord(
            position.epoch + 1,
            loss_mean,
            accuracy_mean,
            accuracy_mean if tested is None else tested,
            self.rate(self._updates(position) - 1),
            seconds,
            (position.step_in_epoch - first) * plan.batch_size * plan.ranks / seconds,
            tested is not None,
        )
        if position.step_in_epoch == self.steps:
            position = Position(position.epoch + 1, position.step)
        else:
            position = replace(position, sums=self._total(sums))
        return record, position, self._save(position) or saved

    def _updates(self, position: Position) -> int:
        """How often the weights have changed; at least once, for the rate of the first step."""
        return max(1, position.step // self.plan.accumulate)

    def _total(self, sums: np.ndarray) -> tuple[float, float]:
        total = sums.copy()
        self.courier.call(lambda c: c.allreduce(total, doing="figures of the epoch"))
        return float(total[0]), float(total[1])

    def _test(self) -> float | None:
        """Accuracy on all test images; each rank takes its share of them. None: there are none."""
        if not self.source.test_count:
            return None
        right = 0
        with span("compute", "test"):
            for images, labels in self.source.test_batches():
                logits = self.predict(tf.constant(images)).numpy()
                right += int((logits.argmax(axis=-1) == np.asarray(labels)).sum())
        count = np.array([right], np.int64)
        self.courier.call(lambda c: c.allreduce(count, doing="test"))
        return int(count[0]) / self.source.test_count

    def _save(self, position: Position) -> Path | None:
        folder = self.orders.checkpoint_folder
        if folder is None:
            return None
        average_statistics(self.model, self.courier)
        if self.rank != 0:
            return None
        with span("compute", "checkpoint"):
            return save_checkpoint(
                folder,
                self.model,
                self.optimizer,
                position,
                plan=asdict(self.plan),
                gate_pass=self.orders.gate_pass,
                bucket_bytes=self.optimizer.exchange.bucket_bytes or 0,
            )

    def _resume(self) -> tuple[Position, Path | None]:
        """Rank 0 reads the checkpoint, and says which; the others get its values from rank 0."""
        found = np.zeros(5, np.float64)
        folder = self.orders.checkpoint_folder
        checkpoint: Path | None = None
        if self.rank == 0 and folder is not None:
            checkpoint = latest_checkpoint(folder)
            check_plan(checkpoint, asdict(self.plan))
            position = load_checkpoint(checkpoint, self.model, self.optimizer)
            found[:] = (position.epoch, position.step, position.step_in_epoch, *position.sums)
        broadcast_variables(self.courier, [*self.model.variables, *self.optimizer.variables])
        self._seed_dropout(counted=True)
        self.courier.call(lambda c: c.broadcast(found, doing="resume"))
        epoch, step, step_in_epoch = (int(number) for number in found[:3])
        return Position(epoch, step, step_in_epoch, (float(found[3]), float(found[4]))), checkpoint

    def _saved_bucket_bytes(self) -> int:
        """The bucket size of the checkpoint to go on from, as rank 0 reads it; 0: none."""
        folder = self.orders.checkpoint_folder
        found = np.zeros(1, np.int64)
        if self.orders.resume:
            if self.rank == 0 and folder is not None:
                found[0] = read_meta(latest_checkpoint(folder)).get("bucket_bytes", 0)
            self.courier.call(lambda c: c.broadcast(found, doing="resume"))
        return int(found[0])

    def _seed_dropout(self, *, counted: bool) -> None:
        """Give random layers a seed of this rank's own; a resumed job keeps their counters."""
        for number, state in enumerate(random_states(self.model)):
            rng = np.random.default_rng([self.plan.seed, 3, self.rank, number])
            own, counter = rng.integers(0, 2**31), state.numpy()[1]
            state.assign(np.array([own, counter if counted else 0]))

    def _tell(self, progress: Progress) -> None:
        self.context.membership.send_event(asdict(progress))

    def _send_timeline(self) -> None:
        if self.orders.timeline:
            self.context.membership.send_event({"timeline": timeline.take()})


def _model(plan: TrainingPlan, source: Source) -> Any:  # noqa: ANN401 (keras ships no types)
    keras.utils.set_random_seed(plan.seed)
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(plan.precision)
    try:
        model = build(plan.model, source.image_shape, source.classes)
    finally:
        keras.config.set_dtype_policy(before)
    return sync_batch_normalization(model) if plan.batch_norm == "synced" else model


def _rates(plan: TrainingPlan) -> dict[str, Any]:
    rates = asdict(plan.learning_rate)
    base = rates.pop("base_batch")
    if base:
        batch = plan.batch_size * plan.ranks * plan.accumulate
        for name in ("initial", "target"):
            rates[name] = scaled_linearly(rates[name], batch=batch, base_batch=base)
    return rates
