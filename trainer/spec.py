"""What a training job trains, and the news it sends while it does."""

from __future__ import annotations

import glob
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fabric.errors import InputError
from trainer.collective.rendezvous import check_size

# Name: the image's side where the data has none of its own, and the least that the layers allow.
MODELS: dict[str, tuple[int, int]] = {
    "greennet": (32, 4),
    "alexnet": (224, 63),
    "inception_v3": (299, 75),
    "resnet50": (224, 32),
    "resnet152": (224, 32),
    "vgg16": (224, 32),
}
PRECISIONS = ("float32", "mixed_float16", "mixed_bfloat16")
SYNCS = ("ring", "ps")
BATCH_NORMS = ("averaged", "synced")
SYNTHETIC_STEPS_PER_EPOCH = 50
# A rank that lives and does not come is reported as slow at once, and lost only after this.
PATIENCE_S = 300.0


@dataclass(frozen=True)
class LearningRate:
    """Arguments of ``smooth_exponential_decay``, in epochs.

    ``base_batch`` applies the linear scaling rule: initial and target rate are
    meant for a global batch of this size and scaled to the job's; 0: as given.
    """

    initial: float = 0.005
    target: float = 0.08
    warmup_epochs: float = 1.0
    decay_rate: float = 0.7
    decay_epochs: float = 2.0
    base_batch: int = 0


@dataclass(frozen=True)
class TrainingPlan:
    """What is trained and how; together with the seed it determines every bit of the result.

    ``data`` is ``digits``, ``synthetic``, a folder of images, or a pattern of
    TFRecord files. ``batch_size`` is per rank. ``steps`` ends the training
    after so many optimizer steps, whatever ``epochs`` says (0: whole epochs).
    ``image_size`` and ``classes`` of 0 are the data's own. ``first_label`` is
    the least label in TFRecords. With three ranks and more the bits also
    follow from the size of buckets: ``bucket_bytes`` 0 measures it, and
    checkpoints keep what was found.
    """

    model: str = "greennet"
    data: str = "digits"
    ranks: int = 2
    epochs: int = 12
    batch_size: int = 32
    seed: int = 0
    learning_rate: LearningRate = LearningRate()
    steps: int = 0
    image_size: int = 0
    classes: int = 0
    first_label: int = 0
    sync: str = "ring"
    servers: int = 0
    precision: str = "float32"
    batch_norm: str = "averaged"
    accumulate: int = 1
    bucket_bytes: int = 0

    def __post_init__(self) -> None:
        """InputError for what cannot be trained."""
        check_size(self.ranks)
        for key, value, known in (
            ("model", self.model, tuple(MODELS)),
            ("sync", self.sync, SYNCS),
            ("precision", self.precision, PRECISIONS),
            ("batch_norm", self.batch_norm, BATCH_NORMS),
        ):
            if value not in known:
                raise InputError(
                    f"{value!r} is not known", key=key, advice=f"Choose of: {', '.join(known)}."
                )
        for key, number, least in (
            ("epochs", self.epochs, 1),
            ("batch_size", self.batch_size, 1),
            ("accumulate", self.accumulate, 1),
            ("steps", self.steps, 0),
            ("image_size", self.image_size, 0),
            ("classes", self.classes, 0),
            ("servers", self.servers, 0),
            ("bucket_bytes", self.bucket_bytes, 0),
        ):
            if number < least:
                raise InputError(f"{number} is too small", key=key, advice=f"Give {least} or more.")
        if not 0 <= self.seed < 2**32:
            raise InputError(f"{self.seed} is no seed", key="seed", advice="Give 0 to 2**32-1.")
        if self.servers > self.ranks:
            raise InputError(
                f"{self.servers} servers are more than {self.ranks} ranks",
                key="servers",
                advice="A server is one of the ranks.",
            )


def check_data(data: str) -> None:
    """InputError unless ``data`` is known here: a name, a folder, or a pattern that matches."""
    if data in ("digits", "synthetic") or Path(data).is_dir():
        return
    if not any(Path(path).is_file() for path in glob.iglob(data)):  # noqa: PTH207 - absolute, too
        raise InputError(
            f"{data!r} is no folder, and no file matches it",
            key="data",
            advice="Give digits, synthetic, a folder of images, or a pattern of TFRecords.",
        )


@dataclass(frozen=True)
class Progress:
    """News of a running job, for ``on_event``.

    ``step`` counts from 1 within the job, ``epoch`` from 1. ``accuracy`` is on
    the training batch for ``step``, on the test images for ``epoch`` (on the
    training images where the data has none for testing).
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
    """One epoch over all ranks. ``loss`` and ``accuracy`` on training batches, averaged.

    ``test_accuracy`` is that on the training images where ``tested`` is False:
    the data has no test images.
    """

    epoch: int
    loss: float
    accuracy: float
    test_accuracy: float
    learning_rate: float
    seconds: float
    images_per_s: float
    tested: bool = True
