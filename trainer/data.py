"""The digits data set, and which images a rank sees in which step.

Everything follows from the seed: the split, and for every epoch one order of
all training images, from which each step takes a global batch and each rank
its part of it. So n ranks with batches of B see what one rank with batches of
n * B would see, no two ranks see the same image in an epoch, every rank has
the same number of steps, and a resumed job continues in the same order.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fabric.errors import InputError, ToolError

TEST_SHARE = 0.2
IMAGE_SHAPE = (8, 8, 1)
CLASSES = 10


@dataclass(frozen=True, eq=False)
class Examples:
    """Images as float32 (count, 8, 8, 1) in 0..1, labels as int32 (count,)."""

    images: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test examples, disjoint."""

    train: Examples
    test: Examples


def digits(seed: int) -> Dataset:
    """scikit-learn's 1797 handwritten digits (UCI, 8x8), a fifth of them for the test."""
    pixels, labels = _read_digits()
    images = (pixels / 16.0).astype(np.float32).reshape(-1, *IMAGE_SHAPE)
    order = np.random.default_rng([seed, 0]).permutation(len(labels))
    cut = round(len(labels) * TEST_SHARE)
    test, train = order[:cut], order[cut:]
    return Dataset(Examples(images[train], labels[train]), Examples(images[test], labels[test]))


def _read_digits() -> tuple[np.ndarray, np.ndarray]:
    """Pixels (1797, 64) in 0..16 and labels, from the file in scikit-learn's package.

    Importing scikit-learn takes longer than a training on these images, so its
    file is read directly; should it move, ``load_digits`` knows where it is.
    """
    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise ToolError(
            "the digits come with scikit-learn, which is not installed",
            advice="Install scikit-learn.",
        )
    path = Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz"
    if path.is_file():
        table = np.loadtxt(path, delimiter=",")
        return table[:, :-1], table[:, -1].astype(np.int32)
    bunch = importlib.import_module("sklearn.datasets").load_digits()
    return bunch.data, bunch.target.astype(np.int32)


def steps_per_epoch(count: int, batch_size: int, ranks: int) -> int:
    """Full global batches in an epoch; InputError when there is not even one."""
    steps = count // (batch_size * ranks)
    if steps < 1:
        raise InputError(
            f"{count} images are less than one batch of {batch_size} on each of {ranks} ranks",
            key="batch_size",
            advice="Use smaller batches or fewer ranks.",
        )
    return steps


def epoch_batches(
    count: int, batch_size: int, *, ranks: int, rank: int, seed: int, epoch: int
) -> Iterator[np.ndarray]:
    """The positions of one rank's images, step by step, for one epoch (counted from 0).

    What does not fill a global batch is left out of this epoch; which images
    these are changes with the epoch.
    """
    order = np.random.default_rng([seed, 1, epoch]).permutation(count)
    for step in range(steps_per_epoch(count, batch_size, ranks)):
        start = (step * ranks + rank) * batch_size
        yield order[start : start + batch_size]
