"""Callbacks for ``model.fit`` on several ranks; each is passed on every rank."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from trainer.collective.courier import Courier, current
from trainer.learning_rate import SmoothExponentialDecay
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


class AverageMetrics(keras.callbacks.Callback):  # type: ignore[misc]
    """Averages the figures of each epoch over all ranks, before other callbacks see them.

    Pass it first. Figures are weighted by the batches that a rank has seen;
    all ranks then stop early, reduce rates and save for the same reasons.
    """

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

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Replace the figures by their averages."""
        if logs:
            doing = f"metrics of epoch {epoch + 1}"
            logs.update(average_figures(logs, self._batches, self._courier, doing=doing))


class AverageBatchStatistics(keras.callbacks.Callback):  # type: ignore[misc]
    """Averages the moving statistics of batch normalisation before tests and at each epoch's end.

    See :mod:`trainer.statistics`. Pass it before callbacks that save the model.
    """

    def __init__(self, courier: Courier | None = None) -> None:
        super().__init__()
        self._courier = courier or current()

    def on_test_begin(self, logs: Any = None) -> None:  # noqa: ANN401, ARG002
        """Test with the averages."""
        average_statistics(self.model, self._courier)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ANN401, ARG002
        """Go on, and save, with the averages."""
        average_statistics(self.model, self._courier)


def average_figures(
    figures: dict[str, Any], weight: float, courier: Courier, *, doing: str = "metrics"
) -> dict[str, float]:
    """Figures averaged over all ranks, each rank's with its weight; all ranks must call it."""
    names = sorted(figures)
    values = np.array([*(float(figures[name]) * weight for name in names), weight], np.float64)
    courier.call(lambda c: c.allreduce(values, doing=doing))
    total = max(values[-1], np.finfo(np.float64).tiny)
    return {name: float(value / total) for name, value in zip(names, values, strict=False)}
