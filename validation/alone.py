"""One process at a time; the lock is gone with the process, however it ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fabric.errors import AccessError
from validation.files import not_written


@contextmanager
def only_one(path: Path, taken: str, advice: str) -> Iterator[None]:
    """Hold this lock; AccessError with ``taken`` and the process where another one has it.

    InputError where the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise not_written(path, error) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise AccessError(
                f"{taken} (process {file.read().strip() or 'unknown'})", advice=advice
            ) from None
        # What a killed one was writing; nobody else writes here now.
        for partial in path.parent.glob(".*.partial"):
            partial.unlink(missing_ok=True)
        try:
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
        except OSError as error:
            raise not_written(path, error) from error
        yield
