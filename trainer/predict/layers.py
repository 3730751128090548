"""The benchmark models as the predictor sees them: variables, their bytes, their work.

Read from ``data/layers.csv``, which ``scripts/write_layers.py`` writes from the models.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import groupby

import numpy as np

from fabric.errors import InputError
from trainer.collective.fusion import Gradient

FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class Variable:
    """One trainable variable.

    ``macs`` is the work of its layer's way forward, for one image; it stands at the
    layer's first variable, and is 0 at the others.
    """

    name: str
    elements: int
    macs: int

    @property
    def layer(self) -> str:
        """The layer that it belongs to."""
        return self.name.rpartition("/")[0]


@dataclass(frozen=True)
class Model:
    """A model's variables, first layers first."""

    name: str
    variables: tuple[Variable, ...]

    @property
    def gradient_bytes(self) -> int:
        """All gradients in fp32."""
        return sum(self.sizes)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each variable in fp32."""
        return tuple(FLOAT_BYTES * variable.elements for variable in self.variables)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one image's way forward."""
        return sum(variable.macs for variable in self.variables)

    @cached_property
    def begun(self) -> tuple[float, ...]:
        """The part of the forward pass that is done when a variable is first needed."""
        return tuple(begun for begun, _ in self._spans(self.variables))

    @cached_property
    def ready(self) -> tuple[float, ...]:
        """The part of backpropagation that is done when a variable's gradient is out.

        Work backwards is taken as proportional to the work forward in every layer.
        """
        spans = self._spans(tuple(reversed(self.variables)))
        return tuple(ended for _, ended in reversed(spans))

    def _spans(self, variables: Sequence[Variable]) -> list[tuple[float, float]]:
        """For each variable where its layer begins and ends, as parts of all work."""
        done, spans = 0, []
        for _, group in groupby(variables, key=lambda variable: variable.layer):
            members = list(group)
            begun = done
            done += sum(variable.macs for variable in members)
            spans += [(begun / self.macs, done / self.macs)] * len(members)
        return spans

    @cached_property
    def gradients(self) -> tuple[Gradient, ...]:
        """As the trainer's own buckets are planned from them."""
        kind = np.dtype(np.float32)
        return tuple(Gradient(v.name, (v.elements,), kind) for v in self.variables)


@cache
def models() -> dict[str, Model]:
    """Every model of the table, by name."""
    text = (files("trainer.predict") / "data" / "layers.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    found: dict[str, list[Variable]] = {}
    for row in rows:
        variable = Variable(row["variable"], int(row["elements"]), int(row["macs"]))
        found.setdefault(row["model"], []).append(variable)
    return {name: Model(name, tuple(variables)) for name, variables in found.items()}


def model_named(name: str) -> Model:
    """One model; InputError names those that there are."""
    if name not in models():
        raise InputError(
            f"--models {name}: no such model", advice=f"There are: {', '.join(models())}."
        )
    return models()[name]
