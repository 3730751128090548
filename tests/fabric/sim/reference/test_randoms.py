"""The reference's random numbers."""

import numba
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.sim.reference import randoms
from fabric.sim.reference.randoms import M1, M2, first_stream


@numba.njit
def draw(words, count):
    out = np.zeros(count)
    for number in range(count):
        out[number] = randoms.uniform(words)
    return out


def plain(run, stream):
    """The first number of a stream, in Python's own integers."""
    state = [int(word) for word in first_stream(run, stream)[:6]]
    first = (1403580 * state[1] - 810728 * state[0]) % M1
    second = (527612 * state[5] - 1370589 * state[3]) % M2
    difference = first - second
    return (difference if difference > 0 else difference + M1) * 2.328306549295727688e-10


def test_the_first_number_of_run_one_is_that_of_every_ns3_tutorial():
    # ns-3, sample-simulator and others: RngRun=1 draws 0.816532 first.
    assert round(float(draw(first_stream(1, 0), 1)[0]), 6) == 0.816532


@settings(max_examples=30, deadline=None)
@given(run=st.integers(0, 2**31), used=st.integers(0, 10**6))
def test_every_draw_is_the_first_of_the_next_stream(run, used):
    expected = [plain(run, used + number) for number in range(4)]
    assert list(draw(first_stream(run, used), 4)) == expected
