"""Callbacks for ``model.fit`` on several ranks; each is passed on every rank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np

from fabric.errors import InputError
from trainer.checkpoint import (
    Position,
    has_checkpoint,
    latest_checkpoint,
    load_checkpoint,
    random_states,
    save_checkpoint,
)
from trainer.collective.courier import Courier, current
from trainer.learning_rate import SmoothExponentialDecay
from trainer.replication import broadcast_variables
from trainer.statistics import average_statistics


class SmoothExponentialDecayCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Sets the optimizer's learning rate in every step, as ``smooth_exponential_decay`` does.

    For an optimizer that was made with a plain number. Steps are the
    optimizer's own, so a resumed training goes on where it was.
    """

    def __init__(self, plan: SmoothExponentialDecay) -> None:
        super().__init__()
        self.plan = plan

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ANN401, ARG002
        """Set the rate of the step that begins."""
        optimizer = self.model.optimizer
        optimizer.learning_rate = self.plan(int(optimizer.iterations))

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:  # noqa: ARG002
        """Show the rate among the epoch's figures."""
        if logs is not None:
            logs["learning_rate"] = float(self.model.optimizer.learning_rate)


class _AtEpochsEnd(keras.callbacks.Callback):  # type: ignore[misc]
    """Counts the steps of an epoch; all ranks must have had as many when it ends."""

    def __init__(self, courier: Courier | None = None) -> None:
        super().__init__()
        self._courier = courier or current()
        self._batches = 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ANN401, ARG002
        """Count anew."""
        self._batches = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ANN401, ARG002
        """Count this rank's batches; ``batch`` is the last one of what ran at once."""
        self._batches = batch + 1

    def _meet(self) -> None:
        steps = self._batches
        self._courier.call(lambda c: c.end_epoch(steps))


class AverageMetrics(_AtEpochsEnd):
    """Averages the figures of each epoch over all ranks, before other callbacks see them.

    Pass it first. Figures are weighted by the batches that a rank has seen;
    all ranks then stop early, reduce rates and save for the same reasons.
    """

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Replace the figures by their averages; MismatchError where a rank has more steps."""
        self._meet()
        if logs:
            doing = f"metrics of epoch {epoch + 1}"
            logs.update(average_figures(logs, self._batches, self._courier, doing=doing))


class AverageBatchStatistics(_AtEpochsEnd):
    """Averages the moving statistics of batch normalisation before tests and at each epoch's end.

    See :mod:`trainer.statistics`. Pass it before callbacks that save the model.
    """

    def on_test_begin(self, logs: Any = None) -> None:  # noqa: ANN401, ARG002
        """Test with the averages."""
        average_statistics(self.model, self._courier)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ANN401, ARG002
        """Go on, and save, with the averages; MismatchError where a rank has more steps."""
        self._meet()
        average_statistics(self.model, self._courier)


class Checkpoints(_AtEpochsEnd):
    """Checkpoints of a script of your own, written by rank 0, taken over by all.

    ::

        saved = Checkpoints("checkpoints")
        first = saved.restore(model)  # 0 where there is none yet
        model.fit(..., initial_epoch=first, callbacks=[saved])

    A loop of your own calls ``save`` after each epoch. The folder is rank 0's;
    what lies in it is described in :mod:`trainer.checkpoint`.
    """

    def __init__(self, folder: Path | str, courier: Courier | None = None) -> None:
        super().__init__(courier)
        self.folder = Path(folder)

    def restore(self, model: Any, optimizer: Any = None) -> int:  # noqa: ANN401
        """Take over the newest checkpoint on every rank; the number of epochs before it, or 0.

        All ranks must call it, with a compiled model or with its optimizer.
        InputError where the checkpoint is damaged or the model not built yet.
        """
        if not model.built:
            raise InputError(
                "the model has no variables yet that could be restored",
                advice="Give it a keras.Input, or call it once, before.",
            )
        optimizer = optimizer or model.optimizer
        if not optimizer.built:
            optimizer.build(model.trainable_variables)
        found = np.zeros(1, np.int64)
        if self._first and has_checkpoint(self.folder):
            checkpoint = latest_checkpoint(self.folder)
            found[0] = load_checkpoint(checkpoint, model, optimizer).epoch
        self._courier.call(lambda c: c.broadcast(found, doing="restore"))
        if found[0]:
            seeds = [state.numpy()[0] for state in random_states(model)]
            broadcast_variables(self._courier, [*model.variables, *optimizer.variables])
            # Each rank drops out its own; how often it has done so is the same on all.
            for state, seed in zip(random_states(model), seeds, strict=True):
                state.assign(np.array([seed, state.numpy()[1]]))
        return int(found[0])

    def save(self, model: Any, optimizer: Any, epochs: int) -> None:  # noqa: ANN401
        """Keep how it stands after so many epochs; all ranks must call it.

        ToolError on rank 0, with earlier checkpoints intact, where it cannot be written.
        """
        average_statistics(model, self._courier)
        if self._first:
            position = Position(epochs, int(optimizer.iterations))
            save_checkpoint(self.folder, model, optimizer, position, plan={}, gate_pass=None)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ANN401, ARG002
        """Save; MismatchError where a rank has more steps."""
        self._meet()
        self.save(self.model, self.model.optimizer, epoch + 1)

    @property
    def _first(self) -> bool:
        return self._courier.communicator.rank == 0


def average_figures(
    figures: dict[str, Any], weight: float, courier: Courier, *, doing: str = "metrics"
) -> dict[str, float]:
    """Figures averaged over all ranks, each rank's with its weight; all ranks must call it."""
    names = sorted(figures)
    values = np.array([*(float(figures[name]) * weight for name in names), weight], np.float64)
    courier.call(lambda c: c.allreduce(values, doing=doing))
    total = max(values[-1], np.finfo(np.float64).tiny)
    return {name: float(value / total) for name, value in zip(names, values, strict=False)}
