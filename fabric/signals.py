"""Ctrl-C and SIGTERM handled for a while, in the main thread; what there was before comes back."""

from __future__ import annotations

import signal
import threading
from abc import ABC, abstractmethod
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class SignalHandler(ABC):
    """While entered, both signals go to :meth:`handle`.

    Outside the main thread Python allows no handlers: nothing is changed there.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}

    @abstractmethod
    def handle(self) -> None:
        """A signal has come; runs in the main thread, between two of its instructions."""

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.handle()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
