"""Start a program with secrets in its environment that never lie on a disk.

``python -m fabric.askenv NAME[,NAME...] PROGRAM ARG...`` asks the terminal for
each variable's value, without echo, and becomes the program. ansible-runner
writes the environment that it hands over to a file; what it types into a
terminal it does not.
"""

from __future__ import annotations

import os
import sys
from getpass import getpass

PROMPT = "value of {name}: "


def main() -> None:
    """Ask, then become the program."""
    names, program, *arguments = sys.argv[1:]
    for name in names.split(","):
        os.environ[name] = getpass(PROMPT.format(name=name))
    os.execv(program, [program, *arguments])  # noqa: S606 - no shell is wanted here


if __name__ == "__main__":
    main()
