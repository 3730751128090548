"""What computation hides of an exchange."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.predict.timeline import Affine, play_buckets, play_fused, ready_times

COST = Affine(0.001, 1e-9)
BUCKETS = st.lists(
    st.tuples(st.floats(0.0, 1.0), st.floats(1.0, 1e9)), min_size=1, max_size=20
).map(sorted)


def test_backpropagation_begins_after_a_third_of_the_step():
    assert ready_times([0.0, 0.5, 1.0], 3.0) == pytest.approx([1.0, 2.0, 3.0])


def test_what_is_ready_before_the_end_is_hidden_and_the_last_is_not():
    played = play_buckets([(1.0, 5e8), (2.0, 5e8)], 2.0, COST)
    assert played.end_s == pytest.approx(2.501)
    assert played.busy_s == pytest.approx(1.002)


def test_ten_buckets_overlap_as_they_were_measured_to():
    # The trainer with ten buckets of equal size: 244 ms without an exchange, 346 ms with one
    # that blocks, 253 ms when every bucket leaves as soon as it is full.
    ready = ready_times([part / 10 for part in range(1, 11)], 0.244)
    played = play_buckets([(at, 1.0) for at in ready], 0.244, Affine((0.346 - 0.244) / 10, 0.0))
    assert played.end_s == pytest.approx(0.253, rel=0.02)


@given(BUCKETS, st.floats(1.0, 2.0))
def test_a_step_lies_between_full_overlap_and_none(buckets, compute_s):
    for played in (
        play_buckets(buckets, compute_s, COST),
        play_fused(buckets, compute_s, COST, 64e6, 0.0),
    ):
        assert played.end_s >= max(compute_s, played.busy_s) - 1e-9
        assert played.end_s <= compute_s + played.busy_s + 1e-9


@given(BUCKETS)
def test_without_computation_and_cycles_fused_bytes_are_all_sent(buckets):
    bare = [(0.0, nbytes) for _, nbytes in buckets]
    played = play_fused(bare, 0.0, Affine(0.0, 1e-9), 64e6, 0.0)
    assert played.busy_s == pytest.approx(1e-9 * sum(nbytes for _, nbytes in bare))


def test_what_is_out_at_the_same_time_goes_together_up_to_the_limit():
    gradients = [(0.0, 30e6), (0.0, 30e6), (0.0, 30e6), (0.0, 200e6)]
    assert play_fused(gradients, 0.0, COST, 64e6, 0.0).exchanges == 3


def test_an_idle_channel_looks_once_a_cycle():
    assert play_fused([(0.011, 0.0)], 0.0, Affine(0.0, 0.0), 64e6, 0.005).end_s == 0.015
