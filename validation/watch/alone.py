"""One watch on a site at a time; the lock is gone with the process, however it ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fabric.errors import AccessError
from validation.files import not_written


@contextmanager
def alone(state_dir: Path) -> Iterator[None]:
    """Hold the site's watch; AccessError that names the process which has it."""
    path = state_dir / "watch" / "lock"
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
                f"this site is watched already (process {file.read().strip() or 'unknown'})",
                advice="One watch is enough; stop it first to start another.",
            ) from None
        # What a killed one was writing; nobody else writes here now.
        for partial in path.parent.glob(".*.partial"):
            partial.unlink(missing_ok=True)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
