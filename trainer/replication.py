"""Keeping replicas replicas: the same variables at the start, and checked on the way."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from trainer.collective.communicator import Communicator
from trainer.collective.courier import Courier
from trainer.collective.dtypes import ReduceOp
from trainer.collective.errors import MismatchError, WeightsDifferError
from trainer.collective.fusion import Gradient

_DIGEST_BYTES = 32
KIND = "kind"


def digest(arrays: Iterable[np.ndarray]) -> bytes:
    """SHA-256 over shapes, types and bits of the arrays, in their order."""
    hasher = hashlib.sha256()
    for array in arrays:
        hasher.update(f"{array.dtype}{array.shape};".encode())
        # As bytes: hashlib does not know the bf16 of ml_dtypes.
        hasher.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return hasher.digest()


def agree_on(courier: Courier, variables: Sequence[Gradient]) -> None:
    """MismatchError unless every rank lists the same variables; every rank must call it."""
    membership = courier.communicator.membership
    if membership is None:
        return
    mine = [f"{v.name} {v.dtype}{list(v.shape)}" for v in variables]
    every = membership.gather("variables", mine)
    for rank, theirs in enumerate(every):
        if theirs == every[0]:
            continue
        at = next(
            (i for i, (a, b) in enumerate(zip(every[0], theirs, strict=False)) if a != b),
            min(len(every[0]), len(theirs)),
        )
        ours, other = ((part[at] if at < len(part) else "nothing") for part in (every[0], theirs))
        raise MismatchError(
            f"the model of rank {rank} is not that of rank 0: variable {at} is {other} "
            f"on rank {rank} and {ours} on rank 0 ({len(theirs)} and {len(every[0])} variables).",
            advice="Build the same model on every rank.",
        )


def agree_on_optimizer(courier: Courier, facts: Mapping[str, str]) -> None:
    """MismatchError unless every rank's optimizer is said to be the same; all must call it."""
    membership = courier.communicator.membership
    if membership is None:
        return
    every = membership.gather("optimizer", dict(facts))
    for rank, theirs in enumerate(every):
        differing = [
            f"{key} is {theirs.get(key, 'absent')} on rank {rank}, "
            f"{every[0].get(key, 'absent')} on rank 0"
            for key in {**every[0], **theirs}
            if theirs.get(key) != every[0].get(key)
        ]
        if differing:
            # Another kind of optimizer has other settings: these say nothing then.
            shown = differing[:1] if differing[0].startswith(KIND) else differing
            raise MismatchError(
                f"rank {rank} and rank 0 have different optimizers: {'; '.join(shown)}.",
                advice="Make the same optimizer with the same settings on every rank.",
            )


def optimizer_facts(optimizer: Any) -> dict[str, str]:  # noqa: ANN401 (keras ships no types)
    """What a Keras optimizer is made of, by name; without its learning rate.

    A rate that is a number is a variable, and those are taken over from rank 0.
    """
    facts = {KIND: type(optimizer).__name__}
    try:
        config = optimizer.get_config()
    except NotImplementedError:
        return facts
    return facts | {key: _plain(value) for key, value in _settings(config).items()}


def _settings(config: Any) -> Any:  # noqa: ANN401 (what JSON can hold)
    if isinstance(config, list | tuple):
        return [_settings(value) for value in config]
    if not isinstance(config, dict):
        return config
    return {
        key: _settings(value)
        for key, value in config.items()
        if key != "name" and not (key == "learning_rate" and isinstance(value, int | float))
    }


def _plain(value: Any) -> str:  # noqa: ANN401
    # An object's own words may hold its address, which differs everywhere.
    return json.dumps(value, sort_keys=True, default=lambda thing: type(thing).__name__)


def broadcast_variables(courier: Courier, variables: Sequence[Any], root: int = 0) -> bool:
    """Overwrite variables (Keras' or TensorFlow's) with the root's; True if any rank's changed.

    Every rank must call it with the same variables in the same order.
    """
    if courier.communicator.size == 1:
        return False
    changed = False
    for variable in variables:
        mine = np.array(variable.numpy())
        theirs = mine.copy()
        courier.call(partial(_broadcast, array=theirs, root=root))
        if mine.tobytes() != theirs.tobytes():
            changed = True
            variable.assign(theirs)
    flag = np.array([changed], np.uint8)
    courier.call(lambda c: c.allreduce(flag, ReduceOp.MAX, doing="broadcast of variables"))
    return bool(flag[0])


def _broadcast(communicator: Communicator, array: np.ndarray, root: int) -> None:
    communicator.broadcast(array, root, doing="broadcast of variables")


def check_equal(communicator: Communicator, arrays: Iterable[np.ndarray], doing: str) -> None:
    """WeightsDifferError, on all ranks, unless the arrays have the same bits everywhere."""
    mine = np.frombuffer(digest(arrays), np.uint8)
    every = communicator.allgather(mine, doing=doing)
    differing = [rank for rank in range(communicator.size) if (every[rank] != every[0]).any()]
    if differing:
        ranks = ", ".join(map(str, differing))
        # Kept: TensorFlow shows what is raised inside a graph as an error of its own.
        communicator.failure = WeightsDifferError(
            f"{doing}: the weights of rank {ranks} are not those of rank 0."
        )
        raise communicator.failure
