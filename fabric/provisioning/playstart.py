"""How a playbook's process starts: secrets asked for, and tied to the run that wants it.

``python -m fabric.provisioning.playstart --parent PID [--lock FILE] [--ask NAME[,NAME...]]
PROGRAM ARG...`` becomes the program. What is asked for comes from the terminal,
without echo, into the environment: ansible-runner writes the environment that it
hands over to a file; what it types into a terminal it does not.

Where the parent is killed, the program dies with it. Tasks that it has sent to
its workers go on to their end, and until then they hold the lock of the run.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import sys
from getpass import getpass
from pathlib import Path

from fabric.provisioning.runlock import share_lock

PROMPT = "value of {name}: "
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tie, lock, ask, then become the program."""
    parser = argparse.ArgumentParser(prog="fabric.provisioning.playstart")
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--lock", type=Path)
    parser.add_argument("--ask", default="")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    _die_with(options.parent)
    if options.lock is not None:
        share_lock(options.lock)
    for name in filter(None, options.ask.split(",")):
        os.environ[name] = getpass(PROMPT.format(name=name))
    os.execv(options.program, [options.program, *options.arguments])  # noqa: S606 - no shell


def _die_with(parent: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the run that started this playbook is gone")


if __name__ == "__main__":
    main()
