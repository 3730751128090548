"""The digits data set, and which images a rank sees in which step.

Everything follows from the seed: the split, and for every epoch one order of
all training images, from which each step takes a global batch and each rank
its part of it. So n ranks with batches of B see what one rank with batches of
n * B would see, no two ranks see the same image in an epoch, every rank has
the same number of steps, and a resumed job continues in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits

from fabric.errors import InputError

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
    bunch = load_digits()
    images = (bunch.images / 16.0).astype(np.float32)[..., np.newaxis]
    labels = bunch.target.astype(np.int32)
    order = np.random.default_rng([seed, 0]).permutation(len(labels))
    cut = round(len(labels) * TEST_SHARE)
    test, train = order[:cut], order[cut:]
    return Dataset(Examples(images[train], labels[train]), Examples(images[test], labels[test]))


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
