from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from validation.schedule import (
    chunks,
    circle_rounds,
    grouped_rounds,
    growing_fan_in,
    ring_pairs,
    shift_pairs,
    spread,
)


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


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(0, 4))
def test_groups_meet_once_each_and_nobody_is_in_two_pairs(sizes, inside):
    edges = [sum(sizes[:place]) for place in range(len(sizes) + 1)]
    groups = [list(range(a, b)) for a, b in pairwise(edges)]
    group_of = {member: n for n, group in enumerate(groups) for member in group}
    rounds = grouped_rounds(groups, inside)
    for pairs in rounds:
        members = [member for pair in pairs for member in pair]
        assert len(set(members)) == len(members)
    every = [pair for pairs in rounds for pair in pairs]
    assert len(set(every)) == len(every)
    assert all(left < right for left, right in every)
    met = {frozenset(group_of[m] for m in pair) for pair in every}
    assert {frozenset(pair) for pair in combinations(range(len(groups)), 2)} <= met


@given(st.integers(0, 300), st.integers(1, 70))
def test_chunks_are_of_like_size_and_lose_nothing(count, most):
    parts = chunks(range(count), most)
    assert [item for part in parts for item in part] == list(range(count))
    sizes = [len(part) for part in parts]
    assert max(sizes) <= most
    assert max(sizes) - min(sizes) <= 1


def test_a_ring_and_its_shifts_use_every_member_once_each_way():
    assert ring_pairs("abc") == (("a", "b"), ("b", "c"), ("c", "a"))
    assert shift_pairs("abcd", 2) == (("a", "c"), ("b", "d"), ("c", "a"), ("d", "b"))
    assert ring_pairs("a") == shift_pairs("abc", 3) == ring_pairs("") == ()
