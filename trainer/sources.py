"""Where images come from: digits, synthetic, folders of images, TFRecords.

Every source knows how many images it has and finds each by its position, so
one rule serves all: for every epoch one order of all images follows from the
seed, each step takes a global batch of it and each rank its part (see
``trainer.data``). No two ranks see the same image in an epoch, all ranks have
the same number of steps, and a job resumes in the middle of an epoch without
reading what it has read. Random changes of an image follow from seed, epoch
and position, so they differ between ranks and repeat between runs.
"""

from __future__ import annotations

import glob
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from fabric.errors import InputError
from trainer.data import TEST_SHARE, Examples, digits, epoch_batches, steps_per_epoch
from trainer.spec import MODELS, SYNTHETIC_STEPS_PER_EPOCH, TrainingPlan

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif")
_TEST_FOLDERS = ("test", "val", "validation")
# TFRecord: u64 length, u32 CRC of it, the bytes, u32 CRC of them (tensorflow/core/lib/io).
_RECORD = struct.Struct("<QI")
_RECORD_END_BYTES = 4
_SAID_CHARACTERS = 160  # of TensorFlow's words about a record: they may hold the record

Batches = Iterator[tuple[Any, Any]]


class Source(Protocol):
    """Batches of images (batch, height, width, channels) in 0..1 and labels (batch,) int32."""

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""

    @property
    def classes(self) -> int:
        """Labels are below this."""

    @property
    def steps(self) -> int:
        """Steps in an epoch, the same on every rank."""

    @property
    def test_count(self) -> int:
        """Images for testing, of all ranks together; 0: there are none."""

    def batches(self, epoch: int, first_step: int = 0) -> Batches:
        """The batches of this rank in an epoch (from 0), from one step on."""

    def test_batches(self) -> Batches:
        """The share of the test images of this rank, in batches of any size."""


def open_source(plan: TrainingPlan, rank: int) -> Source:
    """The source of a plan's data; InputError where it is not there or cannot be used."""
    if plan.data == "digits":
        return DigitsSource(plan, rank)
    if plan.data == "synthetic":
        return SyntheticSource(plan, rank)
    if Path(plan.data).is_dir():
        return FolderSource(plan, rank)
    return TfRecordSource(plan, rank)


class DigitsSource:
    """scikit-learn's digits; larger and in three channels where the model asks for it."""

    classes = 10

    def __init__(self, plan: TrainingPlan, rank: int) -> None:
        self._plan, self._rank = plan, rank
        data = digits(plan.seed)
        self._train, self._test = self._fit(data.train), self._fit(data.test)
        height, width, channels = self._train.images.shape[1:]
        self.image_shape = (height, width, channels)
        self.steps = steps_per_epoch(len(self._train), plan.batch_size, plan.ranks)
        self.test_count = len(self._test)

    def batches(self, epoch: int, first_step: int = 0) -> Batches:
        """See :class:`Source`."""
        for picked in _order(self._plan, self._rank, len(self._train), epoch, first_step):
            yield self._train.images[picked], self._train.labels[picked]

    def test_batches(self) -> Batches:
        """See :class:`Source`."""
        mine = slice(self._rank, None, self._plan.ranks)
        if len(self._test.labels[mine]):
            yield self._test.images[mine], self._test.labels[mine]

    def _fit(self, examples: Examples) -> Examples:
        size = self._plan.image_size
        images = examples.images
        if size and size != images.shape[1]:
            images = tf.image.resize(images, (size, size)).numpy()
        if self._plan.model != "greennet":
            images = np.repeat(images, 3, axis=-1)
        return Examples(images, examples.labels)


class SyntheticSource:
    """One random batch a rank, again and again: the speed without reading anything."""

    test_count = 0

    def __init__(self, plan: TrainingPlan, rank: int) -> None:
        size = plan.image_size or MODELS[plan.model][0]
        self.image_shape = (size, size, 3)
        self.classes = plan.classes or 1000
        self.steps = SYNTHETIC_STEPS_PER_EPOCH
        rng = np.random.default_rng([plan.seed, 2, rank])
        images = rng.random((plan.batch_size, *self.image_shape), np.float32)
        labels = rng.integers(0, self.classes, plan.batch_size).astype(np.int32)
        self._batch = (tf.constant(images), tf.constant(labels))

    def batches(self, epoch: int, first_step: int = 0) -> Batches:  # noqa: ARG002 (all alike)
        """See :class:`Source`."""
        for _ in range(first_step, self.steps):
            yield self._batch

    def test_batches(self) -> Batches:
        """See :class:`Source`."""
        return iter(())


@dataclass(frozen=True, eq=False)
class _Listed:
    """Files or records: what to read (any columns of equal length) and labels where known."""

    columns: tuple[np.ndarray, ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    def at(self, positions: np.ndarray) -> _Listed:
        return _Listed(tuple(column[positions] for column in self.columns))


class _Stored(Protocol):
    """A source whose images are read when they are needed."""

    plan: TrainingPlan
    rank: int
    classes: int
    train: _Listed
    test: _Listed

    def load(self, *columns: Any) -> tuple[Any, Any]:  # noqa: ANN401 (tensors)
        """Image and label of one row."""

    def name(self, rows: _Listed, number: int) -> str:
        """Where one of the rows lies, for people."""


class FolderSource:
    """``DIR/CLASS/IMAGE``, or the same below ``DIR/train`` and ``DIR/test`` (or val, validation).

    Classes are numbered in the order of their names. Without a folder for
    testing a fifth of the images, chosen by the seed, is kept for it.
    """

    def __init__(self, plan: TrainingPlan, rank: int) -> None:
        root = Path(plan.data)
        train = root / "train" if (root / "train").is_dir() else root
        names = sorted(path.name for path in train.iterdir() if path.is_dir())
        everything = _list_images(train, names)
        if not len(everything):
            raise InputError(
                f"there is no image in it ({', '.join(IMAGE_SUFFIXES)} below a folder a class)",
                file=train,
                key="data",
                advice=f"TFRecords are given by a pattern in quotes: '{train}/*'.",
            )
        tests = [root / name for name in _TEST_FOLDERS if (root / name).is_dir()]
        if train is not root and tests:
            self.train, self.test = everything, _list_images(tests[0], names)
        else:
            self.train, self.test = _split(everything, plan.seed)
        size = plan.image_size or MODELS[plan.model][0]
        self.image_shape = (size, size, 3)
        self.classes = len(names)
        self.steps = steps_per_epoch(len(self.train), plan.batch_size, plan.ranks)
        self.test_count = len(self.test)
        self.plan, self.rank = plan, rank

    def batches(self, epoch: int, first_step: int = 0) -> Batches:
        """See :class:`Source`."""
        return _read(self, epoch, first_step)

    def test_batches(self) -> Batches:
        """See :class:`Source`."""
        return _read_test(self)

    def load(self, path: Any, label: Any) -> tuple[Any, Any]:  # noqa: ANN401 (tensors)
        """Image and label of one file."""
        return _decode(tf.io.read_file(path), self.image_shape), label

    def name(self, rows: _Listed, number: int) -> str:
        """The file."""
        return str(rows.columns[0][number])


class TfRecordSource:
    """TFRecord files of ``tf.train.Example`` with ``image/encoded`` and ``image/class/label``.

    The names are those of TensorFlow's ImageNet scripts. Where the pattern's
    files include some whose name holds ``validation`` or ``test``, these are
    for testing. Positions of records come from their headers alone.
    """

    def __init__(self, plan: TrainingPlan, rank: int) -> None:
        paths = sorted(path for path in glob.glob(plan.data) if Path(path).is_file())  # noqa: PTH207 - an absolute pattern
        if not paths:
            raise InputError(
                f"there is no file {plan.data}",
                key="data",
                advice="Give digits, synthetic, a folder of images, or a pattern of TFRecords.",
            )
        tests = [p for p in paths if any(word in Path(p).name for word in ("validation", "test"))]
        trains = [path for path in paths if path not in tests]
        if not trains:
            raise InputError(
                "all files of the pattern are for testing, by their names",
                file=tests[0],
                key="data",
            )
        self.train, self.test = _list_records(trains), _list_records(tests)
        if not len(self.train):
            more = f", nor is one in the {len(trains) - 1} others" if len(trains) > 1 else ""
            raise InputError(f"there is no record in it{more}", file=trains[0], key="data")
        size = plan.image_size or MODELS[plan.model][0]
        self.image_shape = (size, size, 3)
        self.classes = plan.classes or 1000
        self.steps = steps_per_epoch(len(self.train), plan.batch_size, plan.ranks)
        self.test_count = len(self.test)
        self.plan, self.rank = plan, rank

    def batches(self, epoch: int, first_step: int = 0) -> Batches:
        """See :class:`Source`."""
        return _read(self, epoch, first_step)

    def test_batches(self) -> Batches:
        """See :class:`Source`."""
        return _read_test(self)

    def name(self, rows: _Listed, number: int) -> str:
        """The file, and which of its records, counted from 1."""
        path, start = str(rows.columns[0][number]), rows.columns[1][number]
        starts = [first for first, _ in record_spans(path)]
        return f"{path}: record {starts.index(start) + 1}"

    def load(self, path: Any, start: Any, length: Any) -> tuple[Any, Any]:  # noqa: ANN401
        """Image and label of one record."""
        record = tf.ensure_shape(
            tf.numpy_function(_read_record, [path, start, length], tf.string, stateful=False), []
        )
        parsed = tf.io.parse_single_example(
            record,
            {
                "image/encoded": tf.io.FixedLenFeature([], tf.string),
                "image/class/label": tf.io.FixedLenFeature([], tf.int64),
            },
        )
        label = tf.cast(parsed["image/class/label"], tf.int32) - self.plan.first_label
        return _decode(parsed["image/encoded"], self.image_shape), label


def record_spans(path: str) -> list[tuple[int, int]]:
    """Start and length in bytes of every record's payload; InputError where the file is cut off."""
    size = Path(path).stat().st_size
    spans = []
    at = 0
    with Path(path).open("rb") as file:
        while at < size:
            file.seek(at)
            header = file.read(_RECORD.size)
            length = _RECORD.unpack(header)[0] if len(header) == _RECORD.size else size
            start = at + _RECORD.size
            at = start + length + _RECORD_END_BYTES
            if at > size:
                raise InputError(
                    f"is no TFRecord file, or is cut off, at byte {start - _RECORD.size}",
                    file=path,
                    key="data",
                )
            spans.append((start, length))
    return spans


def _order(
    plan: TrainingPlan, rank: int, count: int, epoch: int, first_step: int
) -> Iterator[np.ndarray]:
    batches = epoch_batches(
        count, plan.batch_size, ranks=plan.ranks, rank=rank, seed=plan.seed, epoch=epoch
    )
    return (picked for step, picked in enumerate(batches) if step >= first_step)


def _read(source: _Stored, epoch: int, first_step: int) -> Batches:
    plan, listed = source.plan, source.train
    picked = list(_order(plan, source.rank, len(listed), epoch, first_step))
    if not picked:
        return iter(())
    positions = np.concatenate(picked)
    seeds = np.stack([np.full(len(positions), plan.seed * 1000 + epoch), positions], axis=1)

    def make(seed: Any, *columns: Any) -> tuple[Any, Any]:  # noqa: ANN401
        image, label = source.load(*columns)
        return tf.image.stateless_random_flip_left_right(image, seed), label

    rows = listed.at(positions)
    data = _pipeline((seeds, *rows.columns), make, plan.batch_size)
    return _checked(source, rows, data)


def _read_test(source: _Stored) -> Batches:
    plan = source.plan
    rows = source.test.at(np.arange(source.rank, len(source.test), plan.ranks))
    if not len(rows):
        return iter(())
    return _checked(source, rows, _pipeline(rows.columns, source.load, plan.batch_size))


def _pipeline(rows: tuple[np.ndarray, ...], make: Any, batch_size: int) -> Any:  # noqa: ANN401
    data = tf.data.Dataset.from_tensor_slices(rows)
    data = data.map(make, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    return data.batch(batch_size).prefetch(2)


def _checked(source: _Stored, rows: _Listed, data: Any) -> Batches:  # noqa: ANN401
    """The batches of these rows; InputError, with its file, for one that cannot be trained on."""
    batches = iter(data)
    batch_size = source.plan.batch_size
    for at in range(0, len(rows), batch_size):
        here = rows.at(np.arange(at, min(at + batch_size, len(rows))))
        try:
            images, labels = next(batches)
        except tf.errors.OpError as error:
            raise (_unreadable(source, here) or error) from error
        outside = np.flatnonzero((labels < 0) | (labels >= source.classes))
        if len(outside):
            least = source.plan.first_label
            raise InputError(
                f"{source.name(here, outside[0])}: the label {labels[outside[0]] + least} is none "
                f"of the {source.classes} from {least} on; give --classes and --first-label that "
                "fit the data",
                key="data",
            )
        yield images, labels


def _unreadable(source: _Stored, rows: _Listed) -> InputError | None:
    """Which of these rows TensorFlow cannot read, and why, in its first words."""
    for number in range(len(rows)):
        try:
            next(iter(_pipeline(rows.at(np.array([number])).columns, source.load, 1)))
        except tf.errors.OpError as error:
            said = re.split(r"\n| \[Op:", error.message.split("}} ")[-1])[0]
            plain = "".join(c if c.isascii() and c.isprintable() else "?" for c in said)
            return InputError(
                f"{source.name(rows, number)}: cannot be read: {plain[:_SAID_CHARACTERS]}",
                key="data",
            )
    return None


def _decode(encoded: Any, shape: tuple[int, int, int]) -> Any:  # noqa: ANN401
    image = tf.io.decode_image(encoded, channels=shape[2], expand_animations=False)
    image = tf.image.resize(tf.cast(image, tf.float32) / 255.0, shape[:2])
    return tf.ensure_shape(image, shape)


def _read_record(path: bytes, start: np.int64, length: np.int64) -> bytes:
    with Path(path.decode()).open("rb") as file:
        file.seek(int(start))
        return file.read(int(length))


def _list_images(folder: Path, names: list[str]) -> _Listed:
    found = [
        (str(path), number)
        for number, name in enumerate(names)
        if (folder / name).is_dir()
        for path in sorted((folder / name).iterdir())
        if path.suffix.lower() in IMAGE_SUFFIXES
    ]
    paths = np.array([path for path, _ in found], dtype=np.str_)
    return _Listed((paths, np.array([number for _, number in found], np.int32)))


def _list_records(paths: list[str]) -> _Listed:
    rows = [(path, *span) for path in paths for span in record_spans(path)]
    return _Listed(
        (
            np.array([row[0] for row in rows], dtype=np.str_),
            np.array([row[1] for row in rows], np.int64),
            np.array([row[2] for row in rows], np.int64),
        )
    )


def _split(everything: _Listed, seed: int) -> tuple[_Listed, _Listed]:
    order = np.random.default_rng([seed, 0]).permutation(len(everything))
    cut = round(len(everything) * TEST_SHARE)
    return everything.at(np.sort(order[cut:])), everything.at(np.sort(order[:cut]))
