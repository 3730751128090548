"""Folders for a while, which go also where the program that made them was killed.

Device outputs and SSH sockets lie there. Each folder is locked by the program that
uses it; the next program removes those that nobody holds any more.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "paisoar-"
_HELD = ".held"
# Younger ones may be about to be locked.
_AGE_S = 60


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder that only this user may enter; its path is short enough for sockets."""
    sweep()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        with (folder / _HELD).open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Remove what killed programs of this user have left."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            found = folder.lstat()
            mine = found.st_uid == os.geteuid() and stat.S_ISDIR(found.st_mode)
            if not mine or time.time() - found.st_mtime < _AGE_S:
                continue
            with (folder / _HELD).open() as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
