"""Quantities as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.units import (
    format_size,
    format_speed,
    parse_size_bytes,
    parse_speed_bps,
    parse_time_us,
)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("150KB", 150_000), ("12MiB", 12 * 2**20), ("1.5MB", 1_500_000), ("64 KiB", 65536)],
)
def test_sizes(text, size_bytes):
    assert parse_size_bytes(text) == size_bytes


@pytest.mark.parametrize(("text", "us"), [("10ms", 10_000), ("2h", 7.2e9), ("50us", 50)])
def test_times(text, us):
    assert parse_time_us(text) == us


@pytest.mark.parametrize("text", ["", "KB", "-1KB", "1kb", "1 parsec", "1e3KB", "25"])
def test_what_is_no_quantity_is_refused(text):
    for parse in (parse_size_bytes, parse_speed_bps, parse_time_us):
        with pytest.raises(ValueError, match="write it like"):
            parse(text)


@given(st.integers(1, 800))
def test_speeds_are_read_back_as_they_are_written(gbps):
    assert parse_speed_bps(format_speed(gbps * 10**9)) == gbps * 10**9


@given(st.integers(1, 10**6))
def test_sizes_are_read_back_as_they_are_written(kilobytes):
    assert parse_size_bytes(format_size(kilobytes * 10**3)) == pytest.approx(
        kilobytes * 10**3, rel=1e-2
    )
