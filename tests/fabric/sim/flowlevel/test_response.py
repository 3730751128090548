"""What DCQCN answers to a constant marking probability."""

import dataclasses

import numpy as np
import pytest

from fabric.intent import DcqcnIntent
from fabric.sim.flowlevel.response import curve_of

DEFAULT = DcqcnIntent().for_priority(3, 48, 6)
PAPER = dataclasses.replace(
    DEFAULT,
    byte_reset=10_000_000,
    ai_rate_mbps=40,
    hai_rate_mbps=40,
    min_rate_mbps=10,
)


def test_the_rate_falls_with_every_mark_more_from_line_rate_down():
    curve = curve_of(DEFAULT, 25e9, 4178)
    assert curve.rate_bps(0) == 25e9
    assert curve.rate_bps(1e-6) == pytest.approx(25e9, rel=1e-3)
    assert (np.diff(curve.rates_bps) <= 0).all()
    assert curve.rate_bps(1) < 0.02 * 25e9
    assert curve.rate_bps(4) == pytest.approx(curve.rate_bps(1) / 4)


@pytest.mark.parametrize(("senders", "fluid_kb"), [(2, 20.2), (4, 41.8), (10, 122.6)])
def test_the_papers_set_has_its_fixed_point_near_the_fluids(senders, fluid_kb):
    # R1-R3 of the DCQCN paper's fluid. Marks that share a CNP interval count once here, so
    # more are needed: the queue lies up to half above the fluid's, as the packets' does.
    curve = curve_of(PAPER, 40e9, 1106)
    grid = np.logspace(-5, 0, 2000)
    rates = np.array([curve.rate_bps(p) for p in grid])
    p = grid[np.argmax(rates <= 40e9 / senders)]
    queue_kb = 5 + 195 * p / 0.01
    assert fluid_kb < queue_kb < 1.5 * fluid_kb


def test_faster_increase_needs_more_marks_for_the_same_rate():
    slow, fast = (
        curve_of(dataclasses.replace(DEFAULT, ai_rate_mbps=ai, hai_rate_mbps=ai), 25e9, 4178)
        for ai in (20, 400)
    )
    for p in (0.02, 0.05, 0.2):
        assert fast.rate_bps(p) > 1.3 * slow.rate_bps(p)


def test_no_rate_is_below_the_least():
    floor = dataclasses.replace(DEFAULT, min_rate_mbps=2000)
    assert curve_of(floor, 25e9, 4178).rate_bps(1) == pytest.approx(2e9)
