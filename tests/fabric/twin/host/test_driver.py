"""The mlx5 driver's rules, on state alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.twin.host.stand_ins import driver
from fabric.twin.host.stand_ins.files import NicState

EIGHT = st.lists(st.integers(0, 300_000), min_size=8, max_size=8)
SWITCHES = st.lists(st.integers(0, 1), min_size=8, max_size=8)
PRIORITIES = st.lists(st.integers(0, 7), min_size=8, max_size=8)


@given(st.lists(st.tuples(st.integers(0, 63), st.integers(0, 7))), SWITCHES, EIGHT)
def test_state_reads_back_as_it_was_written(entries, pfc, sizes):
    state = NicState()
    for dscp, priority in entries:
        driver.set_app(state, dscp, priority)
    state.pfc, state.buffer_size = pfc, sizes

    assert vars(NicState(state.text())) == vars(state)


@given(EIGHT, PRIORITIES, SWITCHES, st.integers(68, 9978), st.integers(1, 999))
def test_buffers_that_were_accepted_always_hold_the_headroom_of_lossless_ones(
    sizes, prio2buffer, pfc, mtu, cable
):
    state = NicState()
    driver.set_pfc(state, pfc, cable, mtu, 25000)
    before = list(state.buffer_size)
    try:
        driver.set_buffers(state, sizes, prio2buffer, mtu, 25000)
    except driver.Refused:
        assert state.buffer_size == before
        return
    assert sum(state.buffer_size) <= state.max_buffer[0]
    needed = driver.xoff_bytes(state, mtu, 25000) + driver.MAX_MTU
    for priority, on in enumerate(pfc):
        if on:
            assert state.buffer_size[state.prio2buffer[priority]] >= needed


@given(PRIORITIES, st.lists(st.sampled_from((0, 2, 255)), min_size=8, max_size=8), EIGHT)
def test_ets_shares_add_up_to_100_or_are_refused(prio_tc, tsa, tc_bw):
    state = NicState()
    shares = [share % 101 for share in tc_bw]
    try:
        driver.set_ets(state, prio_tc, tsa, shares)
    except driver.Refused:
        assert vars(state) == vars(NicState())
    else:
        own = [s for s, kind in zip(state.tc_bw, state.tsa, strict=True) if kind == driver.ETS]
        assert not own or sum(own) == 100


def test_the_headroom_is_the_drivers_formula():
    # port_buffer.c: (301 + 216 * len / 100) * speed / 1000 + 272 * mtu / 100, 40 Gb/s at least.
    state = NicState()
    state.cable_len = [3]

    assert driver.xoff_bytes(state, 9000, 25000) == 307 * 40 + 24480
    assert driver.xoff_bytes(state, 9000, 100000) == 307 * 100 + 24480


def test_moving_a_lossless_priority_to_an_empty_buffer_is_refused():
    state = NicState()
    driver.set_pfc(state, [0, 0, 0, 1, 0, 0, 0, 0], 7, 1500, 25000)

    with pytest.raises(driver.Refused, match="Cannot allocate memory"):
        driver.set_buffers(state, state.buffer_size, [0, 0, 0, 2, 0, 0, 0, 0], 1500, 25000)
