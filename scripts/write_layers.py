"""Write ``trainer/predict/data/layers.csv``: variables and work of the benchmark models.

The predictor answers in seconds, so it reads this table instead of building the models;
a test builds them and compares.
"""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path
from typing import Any

import keras

from trainer.models.catalogue import build
from trainer.spec import MODELS

TABLE = Path(__file__).parents[1] / "trainer" / "predict" / "data" / "layers.csv"
HEAD = ("model", "variable", "elements", "macs")
CLASSES = 1000
# The article does not say what images GreenNet sees; those of its other models.
GREENNET_SIDE = 224


def model_of(name: str) -> Any:  # noqa: ANN401 (keras ships no types)
    """The model in the form in which others have published its speed."""
    if name == "resnet101":
        return keras.applications.ResNet101(weights=None, classes=CLASSES)
    side = GREENNET_SIDE if name == "greennet" else MODELS[name][0]
    return build(name, (side, side, 3), CLASSES)


def macs_of(layer: Any) -> int:  # noqa: ANN401 (keras ships no types)
    """Multiply-accumulates of one image's way forward through a layer's kernel."""
    if isinstance(layer, keras.layers.Dense):
        return int(math.prod(layer.kernel.shape))
    if isinstance(layer, keras.layers.Conv2D):
        return int(math.prod(layer.output.shape[1:3]) * math.prod(layer.kernel.shape))
    return 0


def rows_of(name: str) -> list[tuple[str, str, int, int]]:
    """Trainable variables, first layers first; a layer's work stands at its first one."""
    rows = []
    for layer in model_of(name).layers:
        macs = macs_of(layer)
        for variable in layer.trainable_variables:
            rows.append(
                (name, f"{layer.name}/{variable.name}", int(math.prod(variable.shape)), macs)
            )
            macs = 0
    return rows


if __name__ == "__main__":
    with Path(sys.argv[1] if len(sys.argv) > 1 else TABLE).open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(HEAD)
        for model in (*MODELS, "resnet101"):
            table.writerows(rows_of(model))
            keras.backend.clear_session()
