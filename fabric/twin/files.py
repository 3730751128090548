"""Files that only their owner may read, replaced as a whole."""

from __future__ import annotations

import os
from pathlib import Path

from fabric.textfile import naming


def private_folder(path: Path) -> Path:
    """Make this folder, closed to others."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def write_private(path: Path, content: bytes) -> None:
    """Write a file of mode 0600; readers see the old one or the new one."""
    with naming(path):
        private_folder(path.parent)
        fresh = path.with_name(f".{path.name}.new")
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        fresh.replace(path)
