"""``smooth_exponential_decay`` as a Keras learning rate schedule."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import keras
from keras import ops

from trainer.learning_rate import SmoothExponentialDecay, in_steps


@keras.saving.register_keras_serializable(package="paisoar")
class SmoothExponentialDecaySchedule(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """:class:`~trainer.learning_rate.SmoothExponentialDecay` for a Keras optimizer.

    ``plan`` is the plain callable with the same values (to fp32's precision).
    """

    def __init__(
        self,
        initial: float,
        target: float,
        warmup_steps: int,
        decay_rate: float,
        decay_steps: int,
    ) -> None:
        super().__init__()
        self.plan = SmoothExponentialDecay(initial, target, warmup_steps, decay_rate, decay_steps)

    def __call__(self, step: Any) -> Any:  # noqa: ANN401 (a tensor)
        """The rate in ``step``, as a scalar fp32 tensor."""
        plan = self.plan
        at = ops.cast(step, "float32")
        rise = (1.0 - ops.cos(math.pi * at / max(1, plan.warmup_steps))) / 2.0
        warming = plan.initial + (plan.target - plan.initial) * rise
        # Clipped: before the warm-up ends the exponent would be negative.
        after = ops.maximum(at - float(plan.warmup_steps), 0.0)
        decayed = plan.target * ops.power(plan.decay_rate, ops.floor(after / plan.decay_steps))
        return ops.where(at < plan.warmup_steps, warming, decayed)

    def get_config(self) -> dict[str, Any]:
        """The arguments to make it again."""
        return asdict(self.plan)


def smooth_exponential_decay(
    initial: float,
    target: float,
    *,
    decay_rate: float,
    warmup_steps: int | None = None,
    warmup_epochs: float | None = None,
    decay_steps: int | None = None,
    decay_epochs: float | None = None,
    steps_per_epoch: int | None = None,
) -> SmoothExponentialDecaySchedule:
    """Warm up smoothly from ``initial`` to ``target``, then decay every so many epochs.

    With W warm-up steps and a decay every D steps, the rate in step s is::

        s <  W:  initial + (target - initial) * (1 - cos(pi * s / W)) / 2
        s >= W:  target * decay_rate ** floor((s - W) / D)

    Lengths may be given in epochs together with ``steps_per_epoch``.
    InputError says what is missing or cannot be meant.
    """
    plan = in_steps(
        initial,
        target,
        decay_rate=decay_rate,
        warmup_steps=warmup_steps,
        warmup_epochs=warmup_epochs,
        decay_steps=decay_steps,
        decay_epochs=decay_epochs,
        steps_per_epoch=steps_per_epoch,
    )
    return SmoothExponentialDecaySchedule(**asdict(plan))
