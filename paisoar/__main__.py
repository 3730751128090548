"""Where the program starts: Ctrl-C is quiet from the first moment on.

Importing the commands takes a while. There is nothing to clean up yet, so an
interrupt ends the process there and then, also amid the import of a C extension.
"""

from __future__ import annotations

import os
import signal
from types import FrameType


def main() -> None:
    """Import the command line and run it; does not return."""
    # Where a shell has told us to ignore interrupts, as for a background job, we do.
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, _leave)
    from paisoar.cli import main as command_line

    try:
        if interruptible:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        command_line()
    finally:
        if interruptible:
            signal.signal(signal.SIGINT, _leave)


def _leave(_signal: int, _frame: FrameType | None) -> None:
    os._exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main()
