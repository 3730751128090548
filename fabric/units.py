"""Quantities as people write them: ``25G``, ``150KB``, ``12MiB``, ``10ms``.

Speeds are bits a second with decimal prefixes, as on every data sheet. Sizes
are bytes: KB, MB are decimal, KiB, MiB binary (IEC 80000-13).
"""

from __future__ import annotations

import re

_SPEED = re.compile(r"(\d+(?:\.\d+)?)\s*([MGT])(?:bps|bit/s)?")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|KiB|MiB|GiB)")
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|ms|s|m|h)")

_SPEED_BPS = {"M": 10**6, "G": 10**9, "T": 10**12}
_SIZE_BYTES = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}
MAX_DIGITS = 18

_TIME_US = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6, "m": 60e6, "h": 3600e6}


def _number(digits: str) -> float:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"{digits[:MAX_DIGITS]}... is too large a number")
    return float(digits)


def parse_speed_bps(text: str) -> int:
    """Bits a second of a speed such as ``25G``; ValueError says what is accepted."""
    match = _SPEED.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is not a speed; write it like 25G or 400G")
    return round(_number(match[1]) * _SPEED_BPS[match[2]])


def parse_size_bytes(text: str) -> int:
    """Bytes of a size such as ``150KB``; ValueError says what is accepted."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is not a size; write it like 150KB or 12MiB")
    return round(_number(match[1]) * _SIZE_BYTES[match[2]])


def parse_time_us(text: str) -> float:
    """Microseconds of a time such as ``10ms``; ValueError says what is accepted."""
    match = _TIME.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is not a time; write it like 50us, 10ms or 2h")
    return float(match[1]) * _TIME_US[match[2]]


def format_speed(bps: float) -> str:
    """``25G`` for 25e9: the shortest form that :func:`parse_speed_bps` reads back."""
    for suffix, factor in (("T", 10**12), ("G", 10**9)):
        if bps >= factor:
            return f"{bps / factor:g}{suffix}"
    return f"{bps / 10**6:g}M"


def format_size(size_bytes: float) -> str:
    """``150KB`` for 150000: decimal, at most three digits after the point."""
    for suffix, factor in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size_bytes >= factor:
            return f"{round(size_bytes / factor, 3):g}{suffix}"
    return f"{size_bytes:g}B"
