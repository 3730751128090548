"""Values of options, as people write them."""

from __future__ import annotations

from fabric.errors import InputError
from fabric.units import parse_time_us


def microseconds(option: str, text: str) -> float:
    """A time with its unit; InputError names the option."""
    try:
        return parse_time_us(text)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from error
