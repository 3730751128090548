"""What a training job trains, and the news it sends while it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fabric.errors import InputError
from trainer.collective.rendezvous import check_size

MODELS = ("greennet",)
DATA_SETS = ("digits",)


@dataclass(frozen=True)
class LearningRate:
    """Arguments of ``smooth_exponential_decay``, in epochs."""

    initial: float = 0.005
    target: float = 0.08
    warmup_epochs: float = 1.0
    decay_rate: float = 0.7
    decay_epochs: float = 2.0


@dataclass(frozen=True)
class TrainingPlan:
    """What is trained and how; together with the seed it determines every bit of the result.

    ``batch_size`` is per rank. Epochs are whole.
    """

    model: str = "greennet"
    data: str = "digits"
    ranks: int = 2
    epochs: int = 12
    batch_size: int = 32
    seed: int = 0
    learning_rate: LearningRate = LearningRate()

    def __post_init__(self) -> None:
        """InputError for what cannot be trained."""
        check_size(self.ranks)
        for key, value, known in (("model", self.model, MODELS), ("data", self.data, DATA_SETS)):
            if value not in known:
                raise InputError(
                    f"{value!r} is not known", key=key, advice=f"Choose of: {', '.join(known)}."
                )
        for key, number in (("epochs", self.epochs), ("batch_size", self.batch_size)):
            if number < 1:
                raise InputError(f"{number} is too small", key=key, advice="Give 1 or more.")
        if not 0 <= self.seed < 2**32:
            raise InputError(f"{self.seed} is no seed", key="seed", advice="Give 0 to 2**32-1.")


@dataclass(frozen=True)
class Progress:
    """News of a running job, for ``on_event``.

    ``step`` counts from 1 within the job, ``epoch`` from 1. ``accuracy`` is on
    the training batch for ``step``, on the test images for ``epoch``.
    ``slow`` and ``note`` carry a ``message``; a slow rank is reported, not ended.
    """

    kind: Literal["start", "step", "epoch", "slow", "note"]
    rank: int
    epoch: int = 0
    step: int = 0
    steps: int = 0
    loss: float = 0.0
    accuracy: float = 0.0
    images_per_s: float = 0.0
    learning_rate: float = 0.0
    message: str = ""


@dataclass(frozen=True)
class EpochRecord:
    """One epoch over all ranks. ``loss`` and ``accuracy`` on training batches, averaged."""

    epoch: int
    loss: float
    accuracy: float
    test_accuracy: float
    learning_rate: float
    seconds: float
    images_per_s: float
