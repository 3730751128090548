"""Ctrl-C and SIGTERM for something that goes on until it is told to stop.

While devices are read, a signal cuts that off: nothing is changed by it. While files
are written or a certificate is revoked, it waits until that is done.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

_Result = TypeVar("_Result")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopper:
    """While entered, signals end :meth:`wait` and work inside :meth:`cut_off`."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._cuttable = False
        self._before: dict[int, Any] = {}

    @property
    def asked(self) -> bool:
        """Whether it was told to stop."""
        return self._asked.is_set()

    def wait(self, seconds: float) -> None:
        """Wait so long, or until told to stop."""
        self._asked.wait(max(0.0, seconds))

    def cut_off(self, work: Callable[[], _Result]) -> _Result | None:
        """What this work, which may be left at any point, returns; None where a signal came."""
        if self.asked:
            return None
        try:
            self._cuttable = True
            result = work()
            self._cuttable = False
        except KeyboardInterrupt:
            return None
        finally:
            self._cuttable = False
        return result

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self._asked.set()
        if self._cuttable:
            self._cuttable = False
            raise KeyboardInterrupt

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
