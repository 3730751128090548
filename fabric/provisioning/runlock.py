"""One run at a time on a site, also where the program of an earlier one was killed.

``.paisoar/run.lock`` is locked by the run, and by the playbook that it starts: that
one outlives a killed program until the devices in flight have come to an end.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from fabric.errors import AccessError

NAME = "run.lock"


@contextlib.contextmanager
def run_lock(state_dir: Path, run_id: str) -> Iterator[Path]:
    """Hold the site's lock for this run; yields the lock file.

    AccessError, which names the other run, where one is at work.
    """
    state_dir.mkdir(parents=True, exist_ok=True)
    path = state_dir / NAME
    with path.open("a+", encoding="utf-8") as file:
        try:
            # Alone first, then shared with the run's own playbooks.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise _busy(path, file.read().strip()) from None
        file.truncate(0)
        file.write(f"{run_id} {os.getpid()}\n")
        file.flush()
        yield path


def is_held(state_dir: Path) -> bool:
    """Whether a run is at work on the site, or the playbooks of one that was killed."""
    with contextlib.suppress(FileNotFoundError), (state_dir / NAME).open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _busy(path: Path, holder: str) -> AccessError:
    run_id, _, pid = holder.partition(" ")
    if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
        return AccessError(
            f"run {run_id} was killed, but is still at work on the devices in flight",
            advice=f"They come to an end by themselves. Then try again, or look who holds {path}.",
        )
    return AccessError(
        f"run {run_id or 'unknown'} is changing this site now (process {pid or 'unknown'})",
        advice="Wait until it has ended, then try again. Nothing was touched.",
    )


def share_lock(path: Path) -> None:
    """Hold this run's lock as long as this process, or one that it starts, lives.

    AccessError where the run that had it is gone and another has taken its place.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise AccessError(f"{path} is held by another run") from None
    os.set_inheritable(handle, True)
