import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.errors import InputError
from trainer.learning_rate import SmoothExponentialDecay, in_steps, scaled_linearly

SCHEDULE = SmoothExponentialDecay(0.01, 0.5, warmup_steps=100, decay_rate=0.8, decay_steps=50)


def test_it_rises_from_the_initial_to_the_target_rate_and_stays_for_one_decay_period():
    assert SCHEDULE(0) == 0.01
    assert SCHEDULE(50) == pytest.approx((0.01 + 0.5) / 2)
    assert SCHEDULE(99) < SCHEDULE(100) == 0.5
    assert SCHEDULE(149) == 0.5


def test_it_decays_once_every_fixed_number_of_steps():
    assert SCHEDULE(150) == pytest.approx(0.5 * 0.8)
    assert SCHEDULE(199) == pytest.approx(0.5 * 0.8)
    assert SCHEDULE(200) == pytest.approx(0.5 * 0.8**2)
    assert SCHEDULE(100 + 50 * 7) == pytest.approx(0.5 * 0.8**7)


def test_the_warm_up_has_no_kink():
    slopes = [SCHEDULE(s + 1) - SCHEDULE(s) for s in range(130)]
    bends = [abs(b - a) for a, b in itertools.pairwise(slopes)]
    steepest = 0.49 * math.pi / 2 / 100
    assert max(slopes) == pytest.approx(steepest, rel=1e-3)
    # A straight ramp would bend by its whole slope where it meets the plateau.
    assert max(bends) < steepest / 20


@given(
    initial=st.floats(0, 1),
    more=st.floats(1e-6, 10),
    warmup=st.integers(0, 200),
    rate=st.floats(0.01, 1),
    every=st.integers(1, 100),
)
def test_it_never_leaves_its_bounds(initial, more, warmup, rate, every):
    schedule = SmoothExponentialDecay(initial, initial + more, warmup, rate, every)
    values = [schedule(step) for step in range(warmup + 3 * every)]
    rising, falling = values[: warmup + 1], values[warmup:]
    assert all(a <= b * (1 + 1e-12) for a, b in itertools.pairwise(rising))
    assert all(a >= b for a, b in itertools.pairwise(falling))
    assert max(values) <= (initial + more) * (1 + 1e-12)


def test_lengths_may_be_given_in_epochs():
    by_epoch = in_steps(
        0.1, 0.5, decay_rate=0.9, warmup_epochs=2.5, decay_epochs=3, steps_per_epoch=20
    )
    assert by_epoch == in_steps(0.1, 0.5, decay_rate=0.9, warmup_steps=50, decay_steps=60)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"warmup_steps": 1}, "decay_steps or decay_epochs"),
        ({"warmup_steps": 1, "warmup_epochs": 1, "decay_steps": 1}, "warmup_steps or"),
        ({"warmup_epochs": 1, "decay_steps": 1}, "steps_per_epoch"),
        ({"warmup_steps": 1, "decay_steps": 0}, "a decay every 0 steps"),
        ({"warmup_steps": -1, "decay_steps": 5}, "-1 warm-up steps"),
        ({"warmup_steps": 1, "decay_steps": 5, "decay_rate": 1.5}, "does not decay"),
        ({"warmup_steps": 1, "decay_steps": 5, "initial": 0.9}, "warm up from 0.9"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, said):
    arguments = {"initial": 0.1, "target": 0.5, "decay_rate": 0.9, **options}
    with pytest.raises(InputError, match=said):
        in_steps(arguments.pop("initial"), arguments.pop("target"), **arguments)


def test_the_linear_rule_multiplies_the_rate_as_the_batch():
    assert scaled_linearly(0.1, batch=512) == pytest.approx(0.2)
    assert scaled_linearly(0.1, batch=64, base_batch=32) == pytest.approx(0.2)
    with pytest.raises(InputError):
        scaled_linearly(0.1, batch=0)
