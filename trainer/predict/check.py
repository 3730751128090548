"""Published figures beside predicted ones, and how far off those are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trainer.predict.constants import CHOICES, DEFAULTS, FITTED, ORIGINS, Constants
from trainer.predict.published import Bench, Figure, figures

Side = Literal["fitted", "tested"]

# Errors of the tested figures: what a prediction says beside its numbers, without the
# seconds that the check takes. A test holds them to it.
TESTED_MEDIAN = 0.063
TESTED_WORST = 0.27


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. ``error`` is predicted over published, less 1.

    ``side`` is fitted where the figure set a constant or decided a choice, and tested
    where nothing was drawn from it.
    """

    figure: Figure
    predicted: float
    side: Side

    @property
    def error(self) -> float:
        """How far off, as a part of the published figure."""
        return self.predicted / self.figure.published - 1


@dataclass(frozen=True, slots=True)
class Summary:
    """Errors of one side, without their signs."""

    count: int
    median: float
    worst: float
    worst_figure: str


def fitted_keys() -> frozenset[str]:
    """Figures that a constant was fitted on, or with which in sight something was chosen."""
    on = [key for name in FITTED for key in ORIGINS[name].fitted_on]
    return frozenset([*on, *(key for keys in CHOICES.values() for key in keys)])


def check(
    constants: Constants = DEFAULTS,
    on_done: Callable[[str], None] | None = None,
    *,
    only: str = "",
) -> list[Row]:
    """Predict every published figure whose key begins with ``only``."""
    bench, fitted, rows = Bench(constants), fitted_keys(), []
    for figure in (known for known in figures() if known.key.startswith(only)):
        side: Side = "fitted" if figure.key in fitted else "tested"
        rows.append(Row(figure, figure.predict(bench), side))
        if on_done is not None:
            on_done(figure.key)
    return rows


def summary(rows: Sequence[Row], side: Side) -> Summary:
    """Median and worst error of one side."""
    chosen = [row for row in rows if row.side == side]
    worst = max(chosen, key=lambda row: abs(row.error))
    return Summary(
        len(chosen),
        float(np.median([abs(row.error) for row in chosen])),
        abs(worst.error),
        worst.figure.key,
    )
