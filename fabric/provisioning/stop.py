"""Ctrl-C and SIGTERM while devices are being changed.

The first one asks for an orderly stop: nothing new is started, devices in
flight are finished or rolled back. Another one cuts the work off.
"""

from __future__ import annotations

from fabric.signals import SignalHandler


class StopSwitch(SignalHandler):
    """While entered, signals set ``stopping``, then ``cut_off``, and raise nothing.

    ``at_once`` is for work that changes nothing: the first signal cuts it off.
    Outside the main thread Python allows no handlers: there, ``stop`` is for the
    caller to use.
    """

    def __init__(self, *, at_once: bool = False) -> None:
        super().__init__()
        self.stopping = at_once
        self.cut_off = False

    def stop(self) -> None:
        """Ask for an orderly stop; a second time, cut off."""
        self.cut_off = self.stopping
        self.stopping = True

    def handle(self) -> None:
        """See :class:`~fabric.signals.SignalHandler`."""
        self.stop()
