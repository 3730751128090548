"""The processes of the contenders, the connections to them, and their end."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from fabric.errors import ToolError
from trainer.bench.contenders import Contender

_TURN_WITHIN_S = 120.0
# Workers leave by themselves when we hang up; 2 s are what their peers' libraries get for it.
_LEAVE_S = 5.0
_KILL_S = 1.0
_POLL_S = 0.02


class Team:
    """The processes of one contender, and by rank the connections to them."""

    def __init__(self, who: Contender, log: Path) -> None:
        self.name = who.name
        self._who = who
        self.ranks: dict[int, Line] = {}
        self.processes: list[subprocess.Popen[bytes]] = []
        self.log = log.open("w+b")

    def start(self, env: dict[str, str]) -> None:
        """Start its processes; a Ctrl-C in our terminal does not reach them."""
        for command in self._who.commands:
            self.processes.append(
                subprocess.Popen(
                    command,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=self.log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )

    def ended(self) -> bool:
        """Whether a process has ended, which none does by itself."""
        return any(process.poll() is not None for process in self.processes)

    def run(self, nbytes: int, count: int) -> float:
        """The median seconds of ``count`` allreduces, of the slowest rank."""
        for line in self.ranks.values():
            line.say({"bytes": nbytes, "count": count})
        answers = [line.hear(_TURN_WITHIN_S) for line in self.ranks.values()]
        return max(statistics.median(map(float, answer["seconds"])) for answer in answers)

    def said(self) -> str:
        """The last that its processes printed."""
        self.log.flush()
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").strip().splitlines()
        return " / ".join(lines[-3:])


class Line:
    """Lines of JSON to and from one worker; ToolError where it does not answer."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._file = sock.makefile("rw")

    def say(self, message: dict[str, Any]) -> None:
        """Send a message."""
        try:
            self._file.write(json.dumps(message) + "\n")
            self._file.flush()
        except OSError as error:
            raise ToolError(f"a worker has gone ({error})") from error

    def hear(self, within_s: float) -> dict[str, Any]:
        """The next message."""
        self.sock.settimeout(within_s)
        try:
            line = self._file.readline()
        except OSError as error:
            raise ToolError(f"no answer within {within_s:.0f} s") from error
        if not line:
            raise ToolError("a worker has ended")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ToolError(str(answer["error"]))
        return answer

    def close(self) -> None:
        """Hang up."""
        with contextlib.suppress(OSError):
            self._file.close()
        self.sock.close()


def end(teams: Sequence[Team], *, at_once: bool) -> None:
    """End all processes of all teams, together; ``at_once`` does not wait for their turns to end.

    What the processes have started is ended with them. Ctrl-C does not break it off.
    """
    with uninterrupted():
        for team in teams:
            for line in team.ranks.values():
                line.close()
        processes = [process for team in teams for process in team.processes]
        if not at_once:
            _await(processes, _LEAVE_S)
        started = _descendants(processes)
        for process in started:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        for popen in processes:
            popen.wait()
        deadline = time.monotonic() + _KILL_S
        while any(map(_run, started)) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        for team in teams:
            team.log.close()


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C does nothing inside."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _await(processes: Sequence[subprocess.Popen[bytes]], within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while any(process.poll() is None for process in processes) and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def _descendants(processes: Sequence[subprocess.Popen[bytes]]) -> list[psutil.Process]:
    """The processes that still run, and all that they have started."""
    found: list[psutil.Process] = []
    for popen in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(popen.pid)
            found += [process, *process.children(recursive=True)]
    return found


def _run(process: psutil.Process) -> bool:
    """Whether it runs; init may take its time to reap one that has ended."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
