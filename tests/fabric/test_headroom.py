"""Headroom and pause arithmetic against closed forms."""

import pytest

from fabric.headroom import (
    headroom_bytes,
    mlx5_buffer_bytes,
    mlx5_cable_m,
    mlx5_headroom_bytes,
    mlx5_thresholds_bytes,
    pause_us,
    reaction_bytes,
)


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


def test_a_connectx_nic_computes_its_headroom_as_its_driver_does():
    # (301 + 216 * 3 // 100) * 40000 // 1000 + 272 * 9000 // 100, with the 40G minimum.
    assert mlx5_headroom_bytes(25 * 10**9, 3, 9000) == 307 * 40 + 24480
    assert mlx5_headroom_bytes(100 * 10**9, 5, 9000) == 311 * 100 + 24480
    assert mlx5_headroom_bytes(400 * 10**9, 30, 4200) == 365 * 400 + 11424


def test_connectx_thresholds_lie_below_the_headroom_and_never_below_zero():
    assert mlx5_thresholds_bytes(155520, 36760) == (118760, 118760 - 9216)
    assert mlx5_thresholds_bytes(20000, 36760) == (0, 0)


def test_connectx_buffer_sizes_fit_cells_of_every_nic():
    size = mlx5_buffer_bytes(156096)
    assert 156096 - 1152 < size <= 156096
    assert all(size % cell == 0 for cell in (128, 144, 288))


def test_a_connectx_cable_is_whole_metres_within_what_the_driver_takes():
    assert [mlx5_cable_m(length) for length in (0.5, 3, 30.4, 5000)] == [1, 3, 30, 999]
