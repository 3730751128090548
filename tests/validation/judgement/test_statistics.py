"""Spread, outliers, drift and sureness of repetitions."""

import numpy as np
import pytest

from validation.judgement.statistics import drift_of, interval_of, spread_of, sureness_of


def test_spread_names_the_one_that_stands_out():
    values = [1.0, 1.01, 0.99, 1.0, 0.5, 1.02, 1.0]
    spread = spread_of(values)
    assert spread.outliers == (4,)
    assert (spread.median, spread.least, spread.most) == (1.0, 0.5, 1.02)
    assert spread.ratio == pytest.approx(0.5 / np.mean(values))
    assert spread.cov == pytest.approx(np.std(values, ddof=1) / np.mean(values))


def test_equal_values_have_no_outliers_and_few_say_nothing_of_them():
    assert spread_of([0.98] * 20).outliers == ()
    assert spread_of([0.98] * 19 + [0.98000001]).outliers == ()
    assert spread_of([1.0, 1.0, 0.1]).outliers == ()
    assert spread_of([0.0, 0.0]).cov == float("inf")
    with pytest.raises(ValueError, match="no repetitions"):
        spread_of([])


def test_drift_is_the_trend_and_no_outlier_makes_one():
    assert drift_of(np.linspace(1.05, 0.95, 60)) == pytest.approx(-0.1)
    flat = [1.0] * 60
    flat[-1] = 0.2
    assert drift_of(flat) == 0
    assert drift_of([1.0]) == 0
    # Thousands of cycles are sampled, which changes nothing about their trend.
    assert drift_of(np.linspace(1.0, 1.2, 5000)) == pytest.approx(0.2 / 1.1, rel=0.01)


def test_a_verdict_is_sure_only_where_more_repetitions_could_not_turn_it():
    steady = [0.99, 0.98, 0.99, 1.0, 0.99, 0.98, 1.0, 0.99]
    assert sureness_of(steady, 0.9) == "sure"
    assert sureness_of([0.8, 0.98, 0.85, 0.95, 0.88, 0.93, 0.91, 0.86], 0.9) == "borderline"
    assert sureness_of(steady[:4], 0.9) == "too few"
    low, high = interval_of(steady)
    assert low <= np.median(steady) <= high
