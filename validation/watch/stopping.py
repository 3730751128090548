"""Ctrl-C and SIGTERM for something that goes on until it is told to stop.

While devices are read, a signal cuts that off: nothing is changed by it. While files
are written or a certificate is revoked, it waits until that is done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from fabric.signals import SignalHandler

_Result = TypeVar("_Result")


class Stopper(SignalHandler):
    """While entered, signals end :meth:`wait` and work inside :meth:`cut_off`."""

    def __init__(self) -> None:
        super().__init__()
        self._asked = threading.Event()
        self._cuttable = False

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

    def handle(self) -> None:
        """See :class:`~fabric.signals.SignalHandler`."""
        self._asked.set()
        if self._cuttable:
            self._cuttable = False
            raise KeyboardInterrupt
