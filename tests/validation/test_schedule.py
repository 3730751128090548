from hypothesis import given
from hypothesis import strategies as st

from validation.schedule import circle_rounds, growing_fan_in, spread


@given(st.integers(0, 33))
def test_circle_scheduling_meets_every_pair_once_and_nobody_twice_in_a_round(count):
    rounds = circle_rounds(count)
    pairs = [pair for pairs in rounds for pair in pairs]
    assert len(pairs) == len(set(pairs)) == count * (count - 1) // 2
    for pairs in rounds:
        players = [player for pair in pairs for player in pair]
        assert len(players) == len(set(players))
    expected = 0 if count < 2 else count - 1 + count % 2
    assert len(rounds) == expected


def test_odd_fields_have_one_bye_a_round():
    assert all(len(pairs) == 2 for pairs in circle_rounds(5))


def test_fan_in_doubles_below_all_senders():
    assert growing_fan_in(15) == (2, 4, 8)
    assert growing_fan_in(2) == ()


@given(st.integers(1, 200), st.integers(1, 64))
def test_a_spread_has_distinct_indices_over_the_whole_range(count, wanted):
    indices = spread(count, wanted)
    assert len(set(indices)) == len(indices) == min(count, wanted)
    assert indices[0] == 0
    assert indices[-1] >= count - count // min(count, wanted) - 1
