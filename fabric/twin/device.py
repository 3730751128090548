"""What every emulated device offers to the twin's server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import asyncssh

from fabric.counters import Counter


class EmulatedDevice(Protocol):
    """One switch or host of the twin. All its state lies in its own folder.

    ``login_required`` is False for a device that lets anybody on loopback in
    (an emulated CLI that can reach nothing else), True for one with a shell.
    """

    name: str
    user: str
    login_required: bool

    async def serve(self, process: asyncssh.SSHServerProcess[str]) -> None:
        """Carry one SSH session: a command (``process.command``) or a shell."""

    def is_shut(self, port: str) -> bool:
        """Whether this port is configured down, which its far end sees."""

    def add_counters(self, deltas: Sequence[Counter]) -> None:
        """Add what traffic did to this device's own counters."""

    def break_(self, kind: str, port: str) -> str:
        """Inject a fault as an operator's mistake or a reboot would; say what was done.

        Raises ValueError for a kind that this device does not know.
        """

    def save(self) -> None:
        """Write what must survive a restart of the twin."""

    def close(self) -> None:
        """End what the device still runs; its kept state stays."""
