"""Headroom and pause arithmetic against closed forms."""

import pytest

from fabric.headroom import headroom_bytes, pause_us, reaction_bytes


def test_the_longest_pause_is_what_the_standard_says():
    # 65535 quanta of 512 bit times (SONiC's documentation gives 838.84 us at 40G).
    assert pause_us(65535, 40 * 10**9) == pytest.approx(838.848)
    assert pause_us(65535, 100 * 10**9) == pytest.approx(335.539, abs=1e-3)


def test_headroom_holds_both_frames_the_cable_and_the_reaction():
    speed_bps, cable_m, mtu_bytes = 100 * 10**9, 300, 9216
    on_cable = 2 * 300 / 2e8 * 100e9 / 8
    parts = 64 + 2 * (9216 + 38) + on_cable + 394 * 64 + 800
    assert headroom_bytes(speed_bps, cable_m, mtu_bytes) == round(parts)


def test_headroom_grows_with_speed_cable_and_mtu():
    base = headroom_bytes(25 * 10**9, 3, 1500)
    assert headroom_bytes(100 * 10**9, 3, 1500) > base
    assert headroom_bytes(25 * 10**9, 300, 1500) > base
    assert headroom_bytes(25 * 10**9, 3, 9216) == base + 2 * (9216 - 1500)


def test_a_speed_without_a_known_reaction_time_is_refused():
    with pytest.raises(ValueError, match="no PFC reaction time"):
        reaction_bytes(1600 * 10**9)
