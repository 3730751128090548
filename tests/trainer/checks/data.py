"""Where images come from, and which rank sees which."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from fabric.errors import InputError
from trainer.rank import RankContext
from trainer.sources import open_source, record_spans
from trainer.spec import TrainingPlan
from trainer.uneven import common_steps, in_step


def _write_images(folder: Path, count: int) -> None:
    for label in ("cat", "dog"):
        (folder / label).mkdir(parents=True)
        for number in range(count):
            # The image says who it is: red is the class, green its number.
            image = np.zeros((12, 10, 3), np.uint8)
            image[..., 0], image[..., 1] = 255 * (label == "dog"), number
            tf.io.write_file(str(folder / label / f"{number:03d}.png"), tf.io.encode_png(image))


def _write_records(folder: Path, counts: list[int]) -> None:
    folder.mkdir(parents=True)
    number = 0
    for part, count in enumerate(counts):
        name = f"train-{part:05d}" if part else "validation-00000"
        with tf.io.TFRecordWriter(str(folder / name)) as writer:
            for _ in range(count):
                image = np.zeros((9, 9, 3), np.uint8)
                image[..., 1] = number
                features = {
                    "image/encoded": tf.train.Feature(
                        bytes_list=tf.train.BytesList(value=[tf.io.encode_png(image).numpy()])
                    ),
                    "image/class/label": tf.train.Feature(
                        int64_list=tf.train.Int64List(value=[1 + number % 5])
                    ),
                }
                example = tf.train.Example(features=tf.train.Features(feature=features))
                writer.write(example.SerializeToString())
                number += 1


def _seen(batches: Any) -> list[tuple[int, int]]:
    return [
        (round(float(np.mean(np.asarray(image)[..., 1])) * 255), int(label))
        for images, labels in batches
        for image, label in zip(images, labels, strict=True)
    ]


def check_folders_and_records_are_shared_out_without_overlap(context: RankContext) -> None:
    folder = Path(tempfile.mkdtemp())
    _write_images(folder / "images", 21)
    _write_records(folder / "records", [7, 10, 13])
    rank, size = context.membership.rank, context.membership.size
    common = {"ranks": size, "batch_size": 3, "model": "greennet", "image_size": 8, "seed": 4}
    plans = {
        "folder": TrainingPlan(data=str(folder / "images"), **common),
        "records": TrainingPlan(
            data=str(folder / "records" / "*-0*"), classes=5, first_label=1, **common
        ),
    }
    counts = {"folder": (34, 8, 2), "records": (23, 7, 5)}
    for name, plan in plans.items():
        source = open_source(plan, rank)
        train, test, classes = counts[name]
        assert (source.image_shape, source.classes) == ((8, 8, 3), classes)
        assert source.steps == train // (3 * size)
        assert source.test_count == test
        first = _seen(source.batches(0))
        assert len(first) == source.steps * 3
        # The same in a second run; another order in the next epoch; resumed in the middle.
        assert _seen(open_source(plan, rank).batches(0)) == first
        assert _seen(source.batches(1)) != first
        assert _seen(source.batches(0, first_step=2)) == first[6:]
        images = [np.asarray(images) for images, _ in source.batches(0)]
        again = [np.asarray(images) for images, _ in open_source(plan, rank).batches(0)]
        assert all((a == b).all() for a, b in zip(images, again, strict=True))
        shared: list[list[tuple[int, int]]] = context.membership.gather(f"{name} seen", first)
        together = [tuple(entry) for part in shared for entry in part]
        assert len(set(together)) == len(together)
        tested = context.membership.gather(f"{name} tested", _seen(source.test_batches()))
        every_test = [tuple(entry) for part in tested for entry in part]
        assert len(set(every_test)) == len(every_test) == test
        assert not set(every_test) & set(together)
        # One rank with the whole batch sees the same images, step by step.
        whole = _seen(open_source(replace(plan, ranks=1, batch_size=3 * size), 0).batches(0))
        for step in range(source.steps):
            parts = [tuple(e) for part in shared for e in part[step * 3 : step * 3 + 3]]
            assert whole[step * 3 * size : (step + 1) * 3 * size] == parts
        if name == "records":
            assert all(label == number % 5 for number, label in together)
    assert len(record_spans(str(folder / "records" / "train-00002"))) == 13
    broken = folder / "records" / "broken"
    broken.write_bytes((folder / "records" / "train-00002").read_bytes()[:-3])
    with pytest.raises(InputError, match="cut off"):
        record_spans(str(broken))
    for data, said in ((str(folder / "nothing"), "no file"), (str(folder), "no image")):
        with pytest.raises(InputError, match=said) as caught:
            open_source(replace(plan, data=data), rank)
        assert caught.value.key == "data"
    empty = folder / "empty-00000"
    empty.touch()
    (folder / "test-00000").touch()
    for data, said in (
        ("empty-*", f"{empty}: data: there is no record in it$"),
        ("*-00000", f"{empty}: data: there is no record in it$"),
        ("test-*", "test-00000: data: all files of the pattern are for testing"),
    ):
        with pytest.raises(InputError, match=said):
            open_source(replace(plan, data=str(folder / data)), rank)


def check_what_cannot_be_trained_on_is_named_with_its_file(context: RankContext) -> None:
    folder = Path(tempfile.mkdtemp())
    _write_images(folder / "images", 6)
    _write_records(folder / "records", [2, 9])
    broken = folder / "images" / "dog" / "003.png"
    broken.write_bytes(b"no image")
    plan = TrainingPlan(ranks=1, batch_size=4, image_size=8, data=str(folder / "images"))
    source = open_source(plan, 0)
    with pytest.raises(InputError, match=r"dog/003\.png: cannot be read: .*image") as caught:
        list(source.batches(0)) + list(source.test_batches())
    assert caught.value.key == "data"
    records = replace(plan, data=str(folder / "records" / "train-*"), first_label=1, classes=5)
    assert len(list(open_source(records, 0).batches(0))) == 2
    for change, label in (({"classes": 4}, 5), ({"first_label": 2}, 1)):
        said = rf"train-00001: record \d: the label {label} is none of the .*--classes"
        with pytest.raises(InputError, match=said):
            list(open_source(replace(records, batch_size=9, **change), 0).batches(0))
    path = folder / "records" / "train-00001"
    content = bytearray(path.read_bytes())
    start, length = record_spans(str(path))[4]
    content[start : start + length] = bytes(length)
    path.write_bytes(content)
    with pytest.raises(InputError, match="train-00001: record 5: cannot be read"):
        list(open_source(replace(records, batch_size=9), 0).batches(0))


def check_ranks_whose_data_end_early_end_the_epoch_together(context: RankContext) -> None:
    rank = context.membership.rank
    total = np.zeros(1, np.float32)
    for number in in_step(range(5 + 3 * rank)):
        part = np.array([number], np.float32)
        context.courier.call(lambda c, part=part: c.allreduce(part))
        total += part
    assert total[0] == 2 * sum(range(5))
    assert list(in_step(range(0 if rank else 4))) == []
    assert common_steps(7 - rank) == 7 - context.membership.size + 1


def check_synthetic_batches_differ_by_rank_and_repeat_by_run(context: RankContext) -> None:
    plan = TrainingPlan(data="synthetic", image_size=16, batch_size=2, classes=9)
    source = open_source(plan, context.membership.rank)
    assert (source.steps, source.test_count, source.image_shape) == (50, 0, (16, 16, 3))
    images, labels = next(source.batches(0))
    again, _ = next(open_source(plan, context.membership.rank).batches(3))
    assert (images.numpy() == again.numpy()).all()
    assert labels.shape == (2,)
    every = context.courier.call(lambda c: c.allgather(images.numpy()))
    assert (every[0] != every[1]).any()
    large = open_source(replace(plan, data="digits", model="resnet50", image_size=32), 0)
    assert next(large.batches(0))[0].shape == (2, 32, 32, 3)
