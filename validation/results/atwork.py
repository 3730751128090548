"""Which process a run is the work of, and whether it is gone: a killed one says nothing itself.

A number of a process is given again to another one, so the moment of its start goes with it
(``/proc/PID/stat``, proc_pid_stat(5)). Nothing is concluded about a process of another machine,
or of another container on this one.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

from pydantic import BaseModel, ConfigDict

_PROC = Path("/proc")
# Fields of stat behind the name, which may hold blanks: the third, and the 22nd.
_STATE, _STARTED = 0, 19
_ENDED = ("Z", "X")


class Process(BaseModel):
    """One process of one boot of one machine; ``started_ticks`` are clock ticks since that boot."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    host: str
    boot: str
    namespace: str
    pid: int
    started_ticks: int


def this_process() -> Process | None:
    """The one that asks; None where the system does not tell."""
    pid = os.getpid()
    try:
        boot, namespace = _place()
        return Process(
            host=socket.gethostname(),
            boot=boot,
            namespace=namespace,
            pid=pid,
            started_ticks=int(_stat(pid)[_STARTED]),
        )
    except (OSError, ValueError, IndexError):
        return None


def is_gone(process: Process) -> bool:
    """Whether it has certainly ended; False where that cannot be told from here."""
    try:
        boot, namespace = _place()
    except OSError:
        return False
    if process.host != socket.gethostname():
        return False
    if process.boot != boot:
        return True
    if process.namespace != namespace:
        return False
    try:
        fields = _stat(process.pid)
        return fields[_STATE] in _ENDED or int(fields[_STARTED]) != process.started_ticks
    except (FileNotFoundError, ProcessLookupError):
        return True
    except (OSError, ValueError, IndexError):
        return False


def _place() -> tuple[str, str]:
    """The boot of this machine, and the namespace that its processes are counted in."""
    boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    return boot, str((_PROC / "self/ns/pid").readlink())


def _stat(pid: int) -> list[str]:
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
