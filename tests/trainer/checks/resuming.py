"""Jobs that are resumed, and what lies on the disk.

A job makes TensorFlow deterministic for the rest of the process, and Keras then compiles nothing by
XLA: what is to see of that (in ``refusals``) comes before.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from fabric.errors import InputError, ToolError
from tests.trainer.checks.helpers import share, small_model
from trainer import job
from trainer.callbacks import Checkpoints
from trainer.checkpoint import latest_checkpoint, load_checkpoint, random_states, read_meta
from trainer.data import digits
from trainer.models.greennet import greennet
from trainer.optimizer import ReplicatedVarsOptimizer
from trainer.orders import JobOrders
from trainer.rank import RankContext
from trainer.spec import TrainingPlan


def orders(folder: Path, resume: bool = False, **changes: Any) -> JobOrders:
    plan = TrainingPlan(**{"epochs": 3, "batch_size": 128, "seed": 5, **changes})
    every = 4 if plan.steps else 0
    return JobOrders(plan, folder, resume, 3, {"certificate_id": "c-1"}, every)


def check_a_resumed_job_ends_with_the_bits_of_an_unbroken_one(context: RankContext) -> None:
    name = tempfile.mkdtemp() if context.membership.rank == 0 else ""
    folder = Path(context.membership.gather("folder", name)[0])

    def run(part: str, *, resume: bool = False, **changes: Any) -> dict[str, Any]:
        return job.run(context, orders(folder / part, resume, **changes).payload())

    unbroken = run("a")
    first = run("b", epochs=2)
    resumed = run("b", resume=True)
    assert first["digest"] != unbroken["digest"]
    assert resumed["digest"] == unbroken["digest"]
    assert resumed["resumed_after_epoch"] == 2
    assert [r["epoch"] for r in resumed["history"]] == [3]
    for key in ("loss", "accuracy", "test_accuracy", "learning_rate"):
        assert resumed["history"][0][key] == unbroken["history"][2][key]
    again = run("c")
    assert again["digest"] == unbroken["digest"]
    if context.membership.rank == 0:
        _look_at_checkpoints(folder)


def check_a_job_resumes_in_the_middle_of_an_epoch_with_every_bit(context: RankContext) -> None:
    name = tempfile.mkdtemp() if context.membership.rank == 0 else ""
    folder = Path(context.membership.gather("folder", name)[0])
    # Dropout, batch statistics, accumulation, sums of figures: all must go on where they were.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job, "build", _random_model)
        for change in ({}, {"sync": "ps", "accumulate": 2}):

            def run(
                part: str, steps: int, resume: bool = False, change: Any = change
            ) -> dict[str, Any]:
                part = f"{part}{len(change)}"
                plan = {"steps": steps, "batch_size": 64, **change}
                return job.run(context, orders(folder / part, resume, **plan).payload())

            unbroken = run("whole", 8)
            run("part", 4)
            checkpoint = latest_checkpoint(folder / f"part{len(change)}")
            assert checkpoint.name == "epoch-00000-step-0000004"
            resumed = run("part", 8, resume=True)
            assert (resumed["resumed_after_epoch"], resumed["resumed_after_step"]) == (0, 4)
            assert resumed["digest"] == unbroken["digest"]
            for key in ("loss", "accuracy", "learning_rate", "test_accuracy"):
                mine, whole = (r["history"][-1][key] for r in (resumed, unbroken))
                assert mine == pytest.approx(whole, rel=1e-12), key
            every = context.membership.gather("digests", resumed["digest"])
            assert len(set(every)) == 1


def check_a_script_of_ones_own_goes_on_from_its_checkpoint_with_every_bit(
    context: RankContext,
) -> None:
    name = tempfile.mkdtemp() if context.membership.rank == 0 else ""
    folder = Path(context.membership.gather("folder", name)[0])
    images, labels = digits(3).train.images[:256], digits(3).train.labels[:256]

    def script(part: str, epochs: int) -> tuple[int, list[np.ndarray]]:
        keras.utils.set_random_seed(7 + context.membership.rank)
        model = _random_model("", (8, 8, 1), 10)
        model.compile(
            ReplicatedVarsOptimizer(keras.optimizers.SGD(0.1, momentum=0.9)),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        saved = Checkpoints(folder / part)
        first = saved.restore(model)
        model.fit(
            share(context, images),
            share(context, labels),
            batch_size=32,
            epochs=epochs,
            initial_epoch=first,
            shuffle=False,
            verbose=0,
            callbacks=[saved],
        )
        variables = [*random_states(model), *model.variables, *model.optimizer.variables]
        return first, [variable.numpy() for variable in variables]

    _, whole = script("whole", 4)
    assert script("part", 2)[0] == 0
    first, resumed = script("part", 4)
    assert first == 2
    every = context.courier.call(lambda c: c.allgather(resumed[0][:1]))
    assert (every[0] != every[1]).any()  # a rank's dropout stays its own
    for mine, theirs in zip(resumed, whole, strict=True):
        assert (mine == theirs).all()
    assert latest_checkpoint(folder / "part").name == "epoch-00004"
    with pytest.raises(InputError, match="no variables yet"):
        Checkpoints(folder).restore(keras.Sequential([keras.layers.Dense(3)]))


def _random_model(name: str, shape: Any, classes: int) -> Any:
    return keras.Sequential(
        [
            keras.Input(shape),
            keras.layers.Flatten(),
            keras.layers.Dense(16, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.3),
            keras.layers.Dense(classes),
        ]
    )


def _look_at_checkpoints(folder: Path) -> None:
    latest = latest_checkpoint(folder / "b")
    assert latest.name == "epoch-00003"
    assert sorted(path.name for path in latest.iterdir()) == [
        "meta.json",
        "model.weights.h5",
        "optimizer.npz",
    ]
    meta = read_meta(latest)
    assert meta["gate_pass"] == {"certificate_id": "c-1"}
    assert (meta["epoch"], meta["step"]) == (3, 15)
    assert meta["plan"]["seed"] == 5
    # Any single-machine program reads the weights; damage is noticed.
    model = greennet()
    model.load_weights(latest / "model.weights.h5")
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)
    data = bytearray((latest / "optimizer.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (latest / "optimizer.npz").write_bytes(data)
    with pytest.raises(InputError, match="damaged"):
        load_checkpoint(latest, model, optimizer)
    del meta["sha256"]
    (latest / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(InputError, match="damaged.*missing") as damaged:
        read_meta(latest)
    assert "the one before" in damaged.value.advice


def check_a_full_disk_costs_no_earlier_checkpoint(context: RankContext) -> None:
    if context.membership.rank != 0:
        return
    from trainer.checkpoint import Position, save_checkpoint

    folder = Path(tempfile.mkdtemp())
    model = small_model(seed=0)
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)
    options: dict[str, Any] = {"plan": asdict(replace(TrainingPlan(), seed=1)), "gate_pass": None}
    save_checkpoint(folder, model, optimizer, Position(1, 10), **options)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trainer.checkpoint.np.savez", full)
        with pytest.raises(ToolError, match="No space left"):
            save_checkpoint(folder, model, optimizer, Position(2, 20), **options)
    assert [path.name for path in folder.iterdir()] == ["epoch-00001"]
    load_checkpoint(latest_checkpoint(folder), model, optimizer)
    for epoch in range(2, 7):
        save_checkpoint(folder, model, optimizer, Position(epoch, epoch * 10), **options)
    assert len(list(folder.iterdir())) == 3
