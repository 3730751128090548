"""Ctrl-C and SIGTERM while devices are being changed.

The first one asks for an orderly stop: nothing new is started, devices in
flight are finished or rolled back. Another one cuts the work off.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSwitch:
    """While entered, signals set ``stopping``, then ``cut_off``, and raise nothing.

    ``at_once`` is for work that changes nothing: the first signal cuts it off.
    Outside the main thread Python allows no handlers: there, ``stop`` is for the
    caller to use.
    """

    def __init__(self, *, at_once: bool = False) -> None:
        self.stopping = at_once
        self.cut_off = False
        self._before: dict[int, Any] = {}

    def stop(self) -> None:
        """Ask for an orderly stop; a second time, cut off."""
        self.cut_off = self.stopping
        self.stopping = True

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.stop()

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
