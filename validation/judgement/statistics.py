"""Repetitions: median, spread, outliers, drift, and how sure a verdict on them is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Sureness = Literal["sure", "borderline", "too few"]

# Modified z-score above which a value is an outlier (Iglewicz & Hoaglin, How to Detect and
# Handle Outliers, ASQC 1993); 0.6745 makes the median deviation one standard deviation of a
# normal distribution.
_OUTLIER_Z = 3.5
_MAD_TO_SIGMA = 0.6745
# Fewer repetitions say nothing about spread.
FEW = 5
_RESAMPLES = 400
_SEED = 1


@dataclass(frozen=True)
class Spread:
    """Repetitions of one figure. ``outliers`` are their places; ``cov`` is sigma over mean."""

    count: int
    median: float
    mean: float
    least: float
    most: float
    cov: float
    outliers: tuple[int, ...]

    @property
    def ratio(self) -> float:
        """Least over mean."""
        return self.least / self.mean if self.mean else 0.0


def spread_of(values: Sequence[float]) -> Spread:
    """The spread of these. ValueError where there are none."""
    data = np.asarray(values, dtype=np.float64)
    if not len(data):
        raise ValueError("no repetitions")
    median, mean = float(np.median(data)), float(data.mean())
    sigma = float(data.std(ddof=1)) if len(data) > 1 else 0.0
    deviation = float(np.median(np.abs(data - median)))
    # Values that are equal but for rounding have no outliers among them.
    deviation = max(deviation, abs(median) * 1e-3)
    far = _MAD_TO_SIGMA * np.abs(data - median) > _OUTLIER_Z * deviation
    return Spread(
        count=len(data),
        median=median,
        mean=mean,
        least=float(data.min()),
        most=float(data.max()),
        cov=sigma / mean if mean else float("inf"),
        outliers=tuple(int(place) for place in np.flatnonzero(far)) if len(data) >= FEW else (),
    )


def drift_of(values: Sequence[float]) -> float:
    """How far the trend goes from the first repetition to the last, over the median.

    The slope is the median of all slopes between two (Theil-Sen), which a few outliers do
    not move. 0 for fewer than two values.
    """
    data = np.asarray(values, dtype=np.float64)
    if len(data) < 2 or not np.median(data):
        return 0.0
    # Of thousands of repetitions an even sample is as good.
    places = np.unique(np.linspace(0, len(data) - 1, min(len(data), 400)).astype(int))
    first, second = np.triu_indices(len(places), k=1)
    slopes = (data[places[second]] - data[places[first]]) / (places[second] - places[first])
    return float(np.median(slopes)) * (len(data) - 1) / float(np.median(data))


def interval_of(values: Sequence[float], share: float = 0.95) -> tuple[float, float]:
    """Where the median of more repetitions would lie: a bootstrap interval (Efron, 1979)."""
    data = np.asarray(values, dtype=np.float64)
    draws = np.random.default_rng(_SEED).choice(data, size=(_RESAMPLES, len(data)))
    edge = 50 * (1 - share)
    low, high = np.percentile(np.median(draws, axis=1), [edge, 100 - edge])
    return float(low), float(high)


def sureness_of(values: Sequence[float], limit: float) -> Sureness:
    """Whether more repetitions could turn the verdict on their median.

    ``too few`` below five; ``borderline`` where the interval of the median holds the limit.
    """
    if len(values) < FEW:
        return "too few"
    low, high = interval_of(values)
    return "borderline" if low <= limit <= high else "sure"


@dataclass(frozen=True, slots=True)
class Repeated:
    """One figure that was measured again and again, as a verdict needs it.

    ``said`` is for people; ``caveat`` what makes a PASS unsure, empty where nothing does: the
    interval holds the limit, or a repetition was beyond it.
    """

    median: float
    said: str
    caveat: str


def repeated(values: Sequence[float], limit: float) -> Repeated:
    """Repetitions of one figure against its limit. ValueError where there are none."""
    spread = spread_of(values)
    if spread.count == 1:
        return Repeated(spread.median, "measured once", "")
    sure = sureness_of(values, limit)
    said = f"median of {spread.count}, {spread.least:.3f} to {spread.most:.3f}"
    if sure != "too few":
        low, high = interval_of(values)
        said += f", 95 % sure that it is {low:.3f} to {high:.3f}"
    if spread.outliers:
        far = ", ".join(f"{values[place]:.3f}" for place in spread.outliers)
        said += f", outliers {far}"
    said += f": {sure}"
    turned = any((value < limit) != (spread.median < limit) for value in values)
    unsure = sure == "borderline" or turned
    return Repeated(spread.median, said, said if unsure else "")


def quantile_interval(samples: NDArray[np.float64], quantile: float) -> tuple[float, float]:
    """Where a quantile of all that could be sampled lies with 95 %, by ranks.

    The number of samples below it is binomial, which is taken as normal (David & Nagaraja,
    Order Statistics, 7.1). No samples: ValueError.
    """
    count = len(samples)
    if not count:
        raise ValueError("no samples")
    ordered = np.sort(samples)
    middle = count * quantile
    wide = 1.96 * (count * quantile * (1 - quantile)) ** 0.5
    low = max(0, int(np.floor(middle - wide)) - 1)
    high = min(count - 1, int(np.ceil(middle + wide)) - 1)
    return float(ordered[low]), float(ordered[high])
