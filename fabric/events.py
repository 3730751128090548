"""What long work over many devices reports while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

EventState = Literal["started", "ok", "changed", "skipped", "failed", "unreachable"]


@dataclass(frozen=True, slots=True)
class Event:
    """One step of one device: ``step`` in words, ``text`` what there is to say of it."""

    device: str
    step: str
    state: EventState
    text: str = ""


OnEvent = Callable[[Event], None]
