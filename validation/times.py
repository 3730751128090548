"""Time, injected wherever it decides something: aware UTC, ISO 8601 in files."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The clock of production."""
    return datetime.now(UTC)


def to_text(moment: datetime) -> str:
    """``2026-01-31T12:00:00.000000Z``; ValueError for a time without a zone."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_text(text: str) -> datetime:
    """The inverse of :func:`to_text`; ValueError where the text is no such time."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
