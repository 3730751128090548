"""What a job may not leave behind."""

from __future__ import annotations

import contextlib

import psutil

_OURS = {"trainer.rank", "trainer.bench.training_worker"}


def ranks_left() -> list[psutil.Process]:
    """Processes of ranks that this process has started and that still run, oldest first."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if _OURS & set(process.cmdline()):
                found.append(process)
    return found
