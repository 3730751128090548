"""Seconds to nanoseconds as ns-3.17 converts them on x86-64.

A double becomes a 64.64 fixed-point number, is multiplied by 10^9 and truncated
(src/core/model/int64x64-128.h and nstime.h of ns-3.17).
"""

from __future__ import annotations

from fractions import Fraction


def nanoseconds(seconds: float) -> int:
    """Whole nanoseconds of a time in seconds."""
    return int(Fraction(seconds) * (1 << 64)) * 10**9 >> 64


def transmit_ns(size_bytes: int, rate_bps: int) -> int:
    """Time that this many bytes take at this rate: ``DataRate::CalculateTxTime``."""
    return nanoseconds(float(size_bytes) * 8 / rate_bps)
