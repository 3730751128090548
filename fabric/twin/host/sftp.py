"""File transfer into an emulated host: SFTP over the host's own view of its files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import asyncssh
from asyncssh.channel import SSHServerChannel


class HostFiles(asyncssh.SFTPServer):
    """Maps paths below the host's private folders to where they really lie.

    Relative paths start at the host's home. All else is this machine's own, as
    it is in the host's shell.
    """

    def __init__(
        self, channel: SSHServerChannel[Any], home: Path, binds: Mapping[Path, Path]
    ) -> None:
        super().__init__(channel)
        self._home = home
        self._binds = dict(binds)

    def map_path(self, path: bytes) -> bytes:
        """A path as the client names it -> the path on this machine."""
        absolute = Path(os.path.normpath(self._home / os.fsdecode(path)))
        for target, source in self._binds.items():
            if absolute == target or target in absolute.parents:
                return os.fsencode(source / absolute.relative_to(target))
        return os.fsencode(absolute)

    def reverse_map_path(self, path: bytes) -> bytes:
        """The inverse of :meth:`map_path`."""
        absolute = Path(os.fsdecode(path))
        for target, source in self._binds.items():
            if absolute == source or source in absolute.parents:
                return os.fsencode(target / absolute.relative_to(source))
        return path
