"""Checkpoints: folders that are there completely or not at all.

A checkpoint after 7 epochs is ``epoch-00007/``, one 40 steps later
``epoch-00007-step-0000040/``::

    model.weights.h5   Keras' own format: model.load_weights reads it anywhere
    optimizer.npz      the optimizer's variables in their order
    meta.json          epoch, step, plan, gate pass, SHA-256 of the two files,
                       bucket size, the sums of the figures of the epoch so far,
                       the counters of random layers, which Keras' format leaves out

It is written under another name, synced, and renamed: a full disk or a kill
leaves the earlier checkpoints as they were.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fabric.errors import InputError, ToolError

FORMAT = "paisoar/checkpoint/v1"
KEEP = 3
_OVERHEAD_BYTES = 64 << 10
_OVERHEAD_PER_VARIABLE_BYTES = 2 << 10
_NAME = re.compile(r"epoch-(\d{5})(-step-(\d{7}))?")
_ONE_BEFORE = "Remove this checkpoint's folder and resume from the one before."
WEIGHTS, _OPTIMIZER, _META = "model.weights.h5", "optimizer.npz", "meta.json"


@dataclass(frozen=True)
class Position:
    """Where a job stands: whole epochs done, steps done in all and in the epoch that runs.

    ``sums`` are of loss and accuracy over the epoch's steps and all ranks so far.
    """

    epoch: int
    step: int
    step_in_epoch: int = 0
    sums: tuple[float, float] = (0.0, 0.0)

    @property
    def name(self) -> str:
        """The folder's name; names sort as positions do."""
        within = f"-step-{self.step_in_epoch:07d}" if self.step_in_epoch else ""
        return f"epoch-{self.epoch:05d}{within}"


@contextlib.contextmanager
def only_job_in(folder: Path, *, make: bool = True) -> Iterator[None]:
    """Keep other jobs out of a folder of checkpoints; InputError where one is at work there.

    A folder that is not there is made, unless there is to be something in it already.
    What hinders the locking itself is left to who writes: some file systems have none.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            if make:
                folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, handle)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    "another job is training into this folder",
                    file=folder,
                    advice="Wait until it has ended, or train into a folder of its own.",
                ) from None
        yield


def save_checkpoint(
    folder: Path,
    model: Any,  # noqa: ANN401 (keras ships no types)
    optimizer: Any,  # noqa: ANN401
    position: Position,
    *,
    plan: dict[str, Any],
    gate_pass: dict[str, Any] | None,
    bucket_bytes: int = 0,
) -> Path:
    """Write a checkpoint and return its folder; keeps the last few, removes older ones.

    ToolError, with everything earlier still in place, when it cannot be written.
    """
    final = folder / position.name
    partial = folder / f".partial-{position.name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        _reserve(partial / _META, _bytes_of([*model.variables, *optimizer.variables]))
        model.save_weights(partial / WEIGHTS)
        variables = {
            f"{number:05d}": variable.numpy() for number, variable in enumerate(optimizer.variables)
        }
        np.savez(partial / _OPTIMIZER, **variables)
        meta = {
            "format": FORMAT,
            "epoch": position.epoch,
            "step": position.step,
            "step_in_epoch": position.step_in_epoch,
            "sums": position.sums,
            "bucket_bytes": bucket_bytes,
            "random_counters": [int(state.numpy()[1]) for state in random_states(model)],
            "plan": plan,
            "gate_pass": gate_pass,
            "sha256": {name: _sha256(partial / name) for name in (WEIGHTS, _OPTIMIZER)},
        }
        (partial / _META).write_text(json.dumps(meta, indent=2) + "\n")
        for name in (WEIGHTS, _OPTIMIZER, _META):
            _sync(partial / name)
        _sync(partial)
        if final.exists():
            shutil.rmtree(final)
        partial.rename(final)
        _sync(folder)
    # h5py makes a RuntimeError of some of the system's errors.
    except (OSError, RuntimeError) as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise ToolError(
            f"cannot write the checkpoint {final}: {getattr(error, 'strerror', '') or error}",
            advice="Earlier checkpoints are intact: make room and resume.",
        ) from error
    for old in _all(folder)[:-KEEP]:
        shutil.rmtree(old, ignore_errors=True)
    return final


def has_checkpoint(folder: Path) -> bool:
    """Whether there is a complete checkpoint."""
    return bool(_all(folder))


def latest_checkpoint(folder: Path) -> Path:
    """The newest complete checkpoint; InputError when there is none."""
    found = _all(folder)
    if not found:
        raise InputError(
            "there is no checkpoint to resume from", file=folder, advice="Start without resume."
        )
    return found[-1]


def read_meta(checkpoint: Path) -> dict[str, Any]:
    """What ``meta.json`` says; InputError when it is damaged, or not ours."""
    path = checkpoint / _META
    try:
        meta = json.loads(path.read_text())
        known = meta["format"] == FORMAT
        whole = not known or _is_whole(meta)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"cannot be read: {error!r}", file=path, advice=_ONE_BEFORE) from error
    if not whole:
        raise InputError("is damaged: parts of it are missing", file=path, advice=_ONE_BEFORE)
    if not known:
        raise InputError(f"is of format {meta['format']!r}, not {FORMAT}", file=path)
    return dict(meta)


def _is_whole(meta: dict[str, Any]) -> bool:
    """Whether all is there that every checkpoint of this format has."""
    return (
        isinstance(meta.get("plan"), dict)
        and {WEIGHTS, _OPTIMIZER} <= set(meta.get("sha256") or ())
        and isinstance(meta.get("epoch"), int)
        and isinstance(meta.get("step"), int)
    )


def check_plan(checkpoint: Path, plan: dict[str, Any]) -> None:
    """InputError unless the job continues what was saved; it may be longer or shorter."""
    saved = read_meta(checkpoint)["plan"]
    differing = [
        f"{key} {saved.get(key)} (now {plan.get(key)})"
        for key in sorted(saved.keys() | plan.keys())
        if key not in {"epochs", "steps"} and saved.get(key) != plan.get(key)
    ]
    if differing:
        raise InputError(
            f"was made with other settings: {', '.join(differing)}",
            file=checkpoint,
            advice="Resume with the same settings, or use another checkpoint folder.",
        )


def load_checkpoint(checkpoint: Path, model: Any, optimizer: Any) -> Position:  # noqa: ANN401
    """Put a checkpoint's values into the model and the built optimizer.

    InputError when a file is damaged or does not fit.
    """
    meta = read_meta(checkpoint)
    for name, expected in meta["sha256"].items():
        path = checkpoint / name
        if not path.is_file() or _sha256(path) != expected:
            raise InputError(
                "is damaged: its SHA-256 is not what meta.json says",
                file=path,
                advice=_ONE_BEFORE,
            )
    model.load_weights(checkpoint / WEIGHTS)
    with np.load(checkpoint / _OPTIMIZER) as saved:
        values = [saved[name] for name in sorted(saved.files)]
    if len(values) != len(optimizer.variables):
        raise InputError(
            f"holds {len(values)} optimizer variables, this optimizer has "
            f"{len(optimizer.variables)}",
            file=checkpoint / _OPTIMIZER,
        )
    for variable, value in zip(optimizer.variables, values, strict=True):
        variable.assign(value)
    for state, counter in zip(random_states(model), meta.get("random_counters", ()), strict=False):
        state.assign(np.array([state.numpy()[0], counter]))
    loss, accuracy = meta.get("sums", (0.0, 0.0))
    return Position(
        int(meta["epoch"]),
        int(meta["step"]),
        int(meta.get("step_in_epoch", 0)),
        (float(loss), float(accuracy)),
    )


def random_states(model: Any) -> list[Any]:  # noqa: ANN401
    """The states (seed, counter) of a Keras model's random layers, in their order."""
    return [v for v in model.variables if v.path.endswith("seed_generator_state")]


def _bytes_of(variables: Sequence[Any]) -> int:
    """What these variables take on disk at most, with the files' own structure."""
    data = sum(
        int(np.prod(v.shape, dtype=np.int64)) * (8 if "64" in str(v.dtype) else 4)
        for v in variables
    )
    return data + _OVERHEAD_BYTES + len(variables) * _OVERHEAD_PER_VARIABLE_BYTES


def _reserve(path: Path, nbytes: int) -> None:
    """OSError unless so much room is left; the room is free again afterwards.

    Asked first, because HDF5 cannot be trusted after a write has failed: the
    process may crash when it closes the file.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        os.posix_fallocate(fd, 0, nbytes)
        os.ftruncate(fd, 0)
    finally:
        os.close(fd)


def _all(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
