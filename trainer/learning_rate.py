"""The learning rate over the steps of a job, in plain Python.

From the article that PAISoar comes from: the rate grows smoothly from a small
value to the target over a warm-up, then decays exponentially, once every
fixed number of epochs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fabric.errors import InputError


@dataclass(frozen=True)
class SmoothExponentialDecay:
    """Learning rate by step (counted from 0); calling it gives the rate.

    With W = ``warmup_steps`` and D = ``decay_steps``::

        s <  W:  initial + (target - initial) * (1 - cos(pi * s / W)) / 2
        s >= W:  target * decay_rate ** floor((s - W) / D)

    The half cosine has slope 0 at both ends, so the curve has no kink where
    the warm-up meets the plateau.
    """

    initial: float
    target: float
    warmup_steps: int
    decay_rate: float
    decay_steps: int

    def __post_init__(self) -> None:
        """InputError for a schedule that cannot be meant."""
        if not 0 <= self.initial <= self.target or self.target <= 0:
            raise InputError(
                f"the learning rate must warm up from {self.initial} to a larger {self.target}",
                key="learning_rate",
                advice="Give 0 <= initial <= target, target > 0.",
            )
        if self.warmup_steps < 0 or self.decay_steps < 1:
            raise InputError(
                f"{self.warmup_steps} warm-up steps and a decay every {self.decay_steps} steps",
                key="learning_rate",
                advice="Give warmup_steps >= 0 and decay_steps >= 1.",
            )
        if not 0 < self.decay_rate <= 1:
            raise InputError(
                f"a decay rate of {self.decay_rate} does not decay",
                key="learning_rate",
                advice="Give 0 < decay_rate <= 1.",
            )

    def __call__(self, step: int) -> float:
        """The rate in ``step``."""
        if step < self.warmup_steps:
            rise = (1 - math.cos(math.pi * step / self.warmup_steps)) / 2
            return self.initial + (self.target - self.initial) * rise
        return float(
            self.target * self.decay_rate ** ((step - self.warmup_steps) // self.decay_steps)
        )


def in_steps(
    initial: float,
    target: float,
    *,
    decay_rate: float,
    warmup_steps: int | None = None,
    warmup_epochs: float | None = None,
    decay_steps: int | None = None,
    decay_epochs: float | None = None,
    steps_per_epoch: int | None = None,
) -> SmoothExponentialDecay:
    """A schedule given in steps or in epochs, whichever the caller counts in.

    Lengths in epochs need ``steps_per_epoch``. InputError where a length is
    missing or given twice.
    """

    def steps(name: str, by_step: int | None, by_epoch: float | None) -> int:
        if (by_step is None) == (by_epoch is None):
            raise InputError(
                f"give {name}_steps or {name}_epochs, one of them", key="learning_rate"
            )
        if by_epoch is None:
            assert by_step is not None
            return by_step
        if not steps_per_epoch:
            raise InputError(f"{name}_epochs needs steps_per_epoch", key="learning_rate")
        return round(by_epoch * steps_per_epoch)

    return SmoothExponentialDecay(
        initial,
        target,
        steps("warmup", warmup_steps, warmup_epochs),
        decay_rate,
        steps("decay", decay_steps, decay_epochs),
    )


def scaled_linearly(rate: float, *, batch: int, base_batch: int = 256) -> float:
    """The rate for a global ``batch`` where ``rate`` suits ``base_batch``: the linear rule.

    "When the minibatch size is multiplied by k, multiply the learning rate by
    k", together with a warm-up: Goyal et al., arXiv:1706.02677, section 2.1.
    It holds up to some thousands of images; beyond that it does not.
    """
    if batch < 1 or base_batch < 1:
        raise InputError(f"batches of {batch} and {base_batch} cannot be", key="batch")
    return rate * batch / base_batch
