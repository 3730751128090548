"""Writing a file whole or not at all; reading nothing that is no file."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from fabric.errors import InputError


def read_file(path: Path) -> bytes:
    """What a file holds. OSError also where it is none: a pipe would be waited for."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "this is no file", str(path))
    return path.read_bytes()


def write_whole(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Replace ``path`` by ``data`` at one moment; survives a crash at any other.

    Raises InputError that names the path where it cannot be written; then the
    earlier file still stands, and nothing half-written is left beside it.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise not_written(path, error) from error


def not_written(path: Path, error: OSError) -> InputError:
    """What is said where a file cannot be written."""
    return InputError(
        f"cannot be written: {error.strerror or error}",
        file=path,
        advice="Nothing half-written was left, earlier results stand. "
        "Make room, or make the folder writable, and run the command again.",
    )
