"""Background processes of a site: one at a time, found again, and ended with all they started.

A daemon holds the file ``lock`` of its folder and writes its process id there. A
marker in its environment, inherited by whatever it starts, finds what is left of
it however it ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import psutil

from fabric.textfile import naming

LOCK = "lock"
STOP_TIMEOUT_S = 5.0

_children: set[int] = set()  # pids of daemons that this process has started


@contextlib.contextmanager
def one_at_a_time(folder: Path, impatient: Callable[[], None] | None = None) -> Iterator[None]:
    """Let one program start or stop the daemon of this folder at a time.

    ``impatient`` is called again and again while another program is at it.
    """
    with (folder / "lifecycle.lock").open("w") as file:
        while impatient is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                impatient()
                time.sleep(0.1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def hold_lock(folder: Path) -> IO[str] | None:
    """Take the folder's lock and write our pid into it; None where a daemon holds it."""
    path = folder / LOCK
    file = path.open("a+", encoding="ascii")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    with naming(path):
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
    return file


def daemon_pid(folder: Path) -> int | None:
    """The pid of the daemon that holds the folder's lock; None where none does."""
    try:
        with (folder / LOCK).open("r+", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                text = file.read().strip()
                # Neither -1 nor 1 nor garbage: this number is sent a signal.
                return int(text) if text.isdecimal() and int(text) > 1 else None
    except FileNotFoundError:
        pass
    return None


def adopt(pid: int) -> None:
    """Remember a daemon of ours: where it ends before we do, ``stop_daemon`` waits for it."""
    _children.add(pid)


def stop_daemon(folder: Path) -> None:
    """End the folder's daemon, where there is one: SIGTERM first, then SIGKILL."""
    _reap()
    pid = daemon_pid(folder)
    if pid is None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        if _ended(pid, STOP_TIMEOUT_S):
            break


def sweep(marker: str, folder: Path) -> None:
    """Kill every process whose environment says ``marker=folder``, except this one."""
    ours = psutil.Process().pid
    left: list[psutil.Process] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != ours and process.environ().get(marker) == str(folder):
                process.kill()
                left.append(process)
    psutil.wait_procs(left, timeout=STOP_TIMEOUT_S)


def _reap() -> None:
    """Wait for daemons of ours that have ended by themselves, or were killed."""
    for pid in tuple(_children):
        try:
            ended = os.waitpid(pid, os.WNOHANG)[0] == pid
        except ChildProcessError:
            ended = True
        if ended:
            _children.discard(pid)


def _ended(pid: int, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        # As our own child it stays a zombie until we wait for it.
        try:
            if os.waitpid(pid, os.WNOHANG)[0] == pid:
                return True
        except ChildProcessError:
            with contextlib.suppress(psutil.NoSuchProcess):
                if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                    time.sleep(0.02)
                    continue
            return True
        time.sleep(0.02)
    return False
