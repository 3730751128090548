"""What holds for all tests."""

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

# A shell's background jobs ignore Ctrl-C, and so would every program that tests
# start and then interrupt: what is caught here is at its default in them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TEMPORARY = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Give all processes of this session one temporary folder of their own.

    Ranks end without their exit handlers, so what TensorFlow writes for itself
    stays where it was written. pytest's own folders stay where they always are:
    they are kept after a failure.
    """
    if hasattr(config, "workerinput"):
        return  # a worker of pytest-xdist has it from the process that started it
    usual = tempfile.gettempdir()
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", usual)
    folder = Path(tempfile.mkdtemp(prefix="paisoar-"))  # short: sockets go below it
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None
    config.stash[TEMPORARY] = folder


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove it with all that is in it."""
    folder = config.stash.get(TEMPORARY, None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
