"""Jobs that are resumed, and what lies on the disk.

A job makes TensorFlow deterministic for the rest of the process, and Keras then compiles nothing by
XLA: what is to see of that (in ``refusals``) comes before.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import keras
import pytest

from fabric.errors import InputError, ToolError
from tests.trainer.checks.helpers import (
    small_model,
)
from trainer import job
from trainer.checkpoint import latest_checkpoint, load_checkpoint, read_meta
from trainer.models.greennet import greennet
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
