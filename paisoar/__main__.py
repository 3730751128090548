"""Where the program starts: Ctrl-C ends it with one line from the first moment on.

Importing the commands takes a while. There is nothing to clean up yet, so an
interrupt ends the process there and then, also amid the import of a C extension.
Later SIGTERM, which service managers and schedulers send, ends a command as Ctrl-C
does: what it has started does not outlive it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from functools import partial
from types import FrameType


def main() -> None:
    """Import the command line and run it; does not return."""
    # Where a shell has told us to ignore interrupts, as for a background job, we do.
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, _leave_before)
    if sys.argv[1:2] == ["gate"]:
        from paisoar.quick import main as command_line
    else:
        from paisoar.cli import main as command_line

    try:
        if interruptible:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, partial(_interrupt, os.getpid()))
        command_line()
    except KeyboardInterrupt:
        # A second one, while the first was being answered: that has said all there is to say.
        sys.exit(128 + signal.SIGINT)
    finally:
        if interruptible:
            signal.signal(signal.SIGINT, _leave)
        _forget_interrupt()


def _forget_interrupt() -> None:
    """Keep Python from ending by the signal, and not with our exit code, after an interrupt.

    It does so where a KeyboardInterrupt left source text that was being run, as every
    dataclass does that is made by an import; running another such text clears that mark
    (CPython 3.11, Python/pythonrun.c, run_eval_code_obj).
    """
    eval("0")  # noqa: S307 - a constant


def _leave_before(_signal: int, _frame: FrameType | None) -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"Interrupted; nothing was changed.\n")
    os._exit(128 + signal.SIGINT)


def _leave(_signal: int, _frame: FrameType | None) -> None:
    os._exit(128 + signal.SIGINT)


def _interrupt(program: int, number: int, _frame: FrameType | None) -> None:
    if os.getpid() == program:
        raise KeyboardInterrupt
    # A process forked from it, which has nothing to clean up.
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    main()
