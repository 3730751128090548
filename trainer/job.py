"""What each rank does in ``paisoar train``: build, replicate, train, test, save."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from trainer.checkpoint import (
    Position,
    check_plan,
    latest_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from trainer.collective.courier import Courier
from trainer.data import Dataset, Examples, digits, epoch_batches, steps_per_epoch
from trainer.models.greennet import greennet
from trainer.optimizer import ReplicatedVarsOptimizer
from trainer.orders import JobOrders
from trainer.rank import RankContext
from trainer.replication import broadcast_variables, digest
from trainer.schedule import smooth_exponential_decay
from trainer.spec import EpochRecord, Progress

MOMENTUM = 0.9
_REPORT_EVERY_S = 0.25


def run(context: RankContext, payload: dict[str, Any]) -> dict[str, Any]:
    """Train as one rank; the result is this rank's part of :class:`~trainer.spec.TrainResult`."""
    tf.config.experimental.enable_op_determinism()
    job = _Job(context, JobOrders.from_payload(payload))
    try:
        return job.run()
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
        self.data: Dataset = digits(plan.seed)
        self.steps = steps_per_epoch(len(self.data.train), plan.batch_size, plan.ranks)
        keras.utils.set_random_seed(plan.seed)
        self.model = greennet()
        rate = smooth_exponential_decay(**asdict(plan.learning_rate), steps_per_epoch=self.steps)
        self.rate = rate.plan
        self.optimizer = ReplicatedVarsOptimizer(
            keras.optimizers.SGD(rate, momentum=MOMENTUM, nesterov=True),
            courier=context.courier,
            check_every=orders.check_every,
        )
        self.optimizer.build(self.model.trainable_variables)
        self.loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.train_step = tf.function(self._train_step, autograph=False, jit_compile=False)
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
        start = self._resume() if self.orders.resume else Position(0, 0)
        history: list[EpochRecord] = []
        checkpoint: Path | None = None
        trained_s = 0.0
        for epoch in range(start.epoch, plan.epochs):
            record = self._epoch(epoch)
            history.append(record)
            trained_s += record.seconds
            self._tell(
                Progress(
                    "epoch",
                    self.rank,
                    epoch + 1,
                    (epoch + 1) * self.steps,
                    plan.epochs * self.steps,
                    record.loss,
                    record.test_accuracy,
                    record.images_per_s,
                    record.learning_rate,
                )
            )
            checkpoint = self._save(epoch + 1) or checkpoint
        self.optimizer.check_weights()
        images = len(history) * self.steps * plan.batch_size * plan.ranks
        return {
            "accuracy": history[-1].test_accuracy if history else self._test(self.data.test),
            "digest": digest(v.numpy() for v in self.model.variables).hex(),
            "history": [asdict(record) for record in history],
            "checkpoint": str(checkpoint) if checkpoint else None,
            "images_per_s": images / trained_s if trained_s else 0.0,
            "transport": self.context.communicator.transport,
            "resumed_after_epoch": start.epoch,
        }

    def _train_step(self, images: Any, labels: Any) -> tuple[Any, Any]:  # noqa: ANN401
        with tf.GradientTape() as tape:
            logits = self.model(images, training=True)
            loss = self.loss(labels, logits)
        variables = self.model.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        right = tf.equal(tf.argmax(logits, axis=-1, output_type=tf.int32), labels)
        return loss, tf.reduce_mean(tf.cast(right, tf.float32))

    def _batches(self, epoch: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        plan, train = self.plan, self.data.train
        for picked in epoch_batches(
            len(train),
            plan.batch_size,
            ranks=plan.ranks,
            rank=self.rank,
            seed=plan.seed,
            epoch=epoch,
        ):
            yield train.images[picked], train.labels[picked]

    def _epoch(self, epoch: int) -> EpochRecord:
        plan = self.plan
        began = reported = time.monotonic()
        sums = np.zeros(2, np.float64)
        step = epoch * self.steps
        for number, (images, labels) in enumerate(self._batches(epoch), start=1):
            loss, accuracy = self.train_step(tf.constant(images), tf.constant(labels))
            sums += (float(loss), float(accuracy))
            now = time.monotonic()
            if now - reported > _REPORT_EVERY_S:
                reported = now
                self._tell(
                    Progress(
                        "step",
                        self.rank,
                        epoch + 1,
                        step + number,
                        plan.epochs * self.steps,
                        float(loss),
                        float(accuracy),
                        number * plan.batch_size * plan.ranks / (now - began),
                        self.rate(step + number - 1),
                    )
                )
        seconds = time.monotonic() - began
        self.courier.call(lambda c: c.allreduce(sums, doing=f"figures of epoch {epoch + 1}"))
        loss_mean, accuracy_mean = (float(x) for x in sums / (self.steps * plan.ranks))
        return EpochRecord(
            epoch + 1,
            loss_mean,
            accuracy_mean,
            self._test(self.data.test),
            self.rate(step + self.steps - 1),
            seconds,
            self.steps * plan.batch_size * plan.ranks / seconds,
        )

    def _test(self, test: Examples) -> float:
        """Accuracy on all test images; each rank takes its share of them."""
        mine = slice(self.rank, None, self.plan.ranks)
        right = 0
        if len(test.labels[mine]):
            logits = self.predict(tf.constant(test.images[mine])).numpy()
            right = int((logits.argmax(axis=-1) == test.labels[mine]).sum())
        count = np.array([right], np.int64)
        self.courier.call(lambda c: c.allreduce(count, doing="test"))
        return int(count[0]) / len(test)

    def _save(self, epoch: int) -> Path | None:
        folder = self.orders.checkpoint_folder
        if folder is None or self.rank != 0:
            return None
        return save_checkpoint(
            folder,
            self.model,
            self.optimizer,
            Position(epoch, epoch * self.steps),
            plan=asdict(self.plan),
            gate_pass=self.orders.gate_pass,
        )

    def _resume(self) -> Position:
        """Rank 0 reads the checkpoint; the others get its values from rank 0."""
        epoch = np.zeros(1, np.int64)
        folder = self.orders.checkpoint_folder
        if self.rank == 0 and folder is not None:
            checkpoint = latest_checkpoint(folder)
            check_plan(checkpoint, asdict(self.plan))
            epoch[0] = load_checkpoint(checkpoint, self.model, self.optimizer).epoch
        broadcast_variables(self.courier, [*self.model.variables, *self.optimizer.variables])
        self.courier.call(lambda c: c.broadcast(epoch, doing="resume"))
        return Position(int(epoch[0]), int(epoch[0]) * self.steps)

    def _tell(self, progress: Progress) -> None:
        self.context.membership.send_event(asdict(progress))
