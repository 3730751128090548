"""What ranks do in the tests of the supervisor; run in processes of their own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from trainer.collective.dtypes import ReduceOp
from trainer.rank import RankContext


def _turns(context: RankContext, seconds: float) -> int:
    buffer = context.communicator.buffer(10_000)
    end = time.monotonic() + seconds
    turn = 0
    while time.monotonic() < end:
        turn += 1
        buffer[:] = 1.0
        context.courier.call(lambda c, turn=turn: c.allreduce(buffer, doing=f"step {turn}"))
    return turn


def square(context: RankContext, payload: Any) -> dict[str, Any]:
    print(f"hello of rank {context.membership.rank}")
    total = np.array([float(payload) ** 2], np.float64)
    context.courier.call(lambda c: c.allreduce(total, ReduceOp.AVERAGE))
    return {
        "rank": context.membership.rank,
        "pid": os.getpid(),
        "total": float(total[0]),
        "transport": context.communicator.transport,
        "threads": context.threads,
        "matplotlib": "matplotlib" in sys.modules,
    }


def where(context: RankContext, payload: Any) -> dict[str, Any]:
    """Where this rank runs, after all ranks have computed together."""
    total = np.array([1.0])
    context.courier.call(lambda c: c.allreduce(total))
    return {
        "rank": context.membership.rank,
        "host": context.membership.host,
        "total": float(total[0]),
        "transport": context.communicator.transport,
    }


def reduce_on(context: RankContext, payload: Any) -> None:
    """Tell our pid (and that of a child of ours), then work until the test ends us."""
    child = subprocess.Popen(["sleep", "60"]).pid if payload == "with child" else os.getpid()
    _turns(context, 0.1)
    context.membership.send_event({"pid": os.getpid(), "child": child})
    _turns(context, 60.0)


def misbehave(context: RankContext, payload: Any) -> None:
    rank = context.membership.rank
    _turns_until_all(context)
    if rank == 1 and payload == "raise":
        raise KeyError("no such layer")
    if rank == 1 and payload == "hang":
        time.sleep(300)
    if rank == 1 and payload == "exit":
        os._exit(7)
    if rank == 1 and payload == "mismatch":
        context.courier.call(lambda c: c.allreduce(np.zeros(3, np.float32), doing="step 9"))
    context.courier.call(lambda c: c.allreduce(np.zeros(4, np.float32), doing="step 9"))


def write_and_die(context: RankContext, payload: Any) -> None:
    """Write to the temporary folder; rank 1 then has no chance to clean up."""
    context.membership.send_event({"folder": tempfile.gettempdir()})
    tempfile.mkstemp(prefix="__autograph_generated_file")
    _turns_until_all(context)
    if context.membership.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    _turns_until_all(context)


def outlast(context: RankContext, payload: Any) -> None:
    """Go on for a minute, and say so in a file; ``payload`` is a task of the benchmark."""
    del context
    time.sleep(60)
    Path(payload["model"]).write_text("has come to its end")


def _turns_until_all(context: RankContext) -> None:
    context.courier.call(lambda c: c.barrier(doing="step 8"))


def wait_idly(context: RankContext, payload: Any) -> float:
    """CPU seconds that waiting for rank 0 costs."""
    context.courier.call(lambda c: c.barrier())
    began = time.process_time()
    if context.membership.rank == 0:
        time.sleep(float(payload))
    context.courier.call(lambda c: c.barrier())
    return time.process_time() - began


def raise_on_one(context: RankContext, payload: Any) -> None:
    context.courier.call(lambda c: c.barrier(doing="step 1"))
    if context.membership.rank == 1:
        raise KeyError("no such layer")
    context.courier.call(lambda c: c.barrier(doing="step 2"))


def suffer(context: RankContext, payload: Any) -> str:
    """Rank 1 meets with a misfortune in the middle of its work; the others go on computing.

    Rank 0 is busy with something else at that time, for ``busy_s``.
    """
    buffer = context.communicator.buffer(200_000)
    for turn in range(1, 400):
        doing = f"step {turn}, bucket {turn % 3}"
        if turn == 40:  # by then a heartbeat has told where it is
            # New memory, which neighbours have to map before they can read it.
            buffer = context.communicator.buffer(300_000)
            if context.membership.rank == 1:
                context.membership.send_event("now")
                MISFORTUNES[payload["misfortune"]](context)
            elif context.membership.rank == 0:
                time.sleep(payload["busy_s"])
        context.courier.call(partial(_sum, array=buffer, doing=doing))
        time.sleep(0.01)
    return "unharmed"


def _sum(communicator: Any, array: np.ndarray, doing: str) -> None:
    communicator.allreduce(array, doing=doing)


def _exhaust_memory(context: RankContext) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, resource.RLIM_INFINITY))
    np.ones(4 << 30, np.float64)


def _sockets_to_ranks(context: RankContext) -> list[int]:
    """The connections to other ranks, without that to the launcher."""
    found = []
    for path in list(Path("/proc/self/fd").iterdir()):
        with contextlib.suppress(OSError):
            fd = int(path.name)
            if fd != context.membership._sock.fileno() and stat.S_ISSOCK(os.fstat(fd).st_mode):
                found.append(fd)
    return found


def _cut_sockets(context: RankContext) -> None:
    for fd in _sockets_to_ranks(context):
        with socket.socket(fileno=os.dup(fd)) as sock, contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def _cut_control(context: RankContext) -> None:
    """Cut the connection to the launcher alone."""
    context.membership._sock.shutdown(socket.SHUT_RDWR)


def _reset_sockets(context: RankContext) -> None:
    """Make the kernel send RST: connect(2) to AF_UNSPEC dissolves a connection at once."""
    unspecified = struct.pack("H14x", socket.AF_UNSPEC)
    for fd in _sockets_to_ranks(context):
        ctypes.CDLL(None).connect(fd, unspecified, len(unspecified))


def _take_memory_away(context: RankContext) -> None:
    """Close the files of our shared memory just when the neighbour is to map a new one."""
    for path in list(Path("/proc/self/fd").iterdir()):
        with contextlib.suppress(OSError):
            if "memfd:paisoar" in str(path.readlink()):
                os.close(int(path.name))


def _be_late(context: RankContext) -> None:
    time.sleep(3.5)


MISFORTUNES = {
    "memory": _exhaust_memory,
    "cut": _cut_sockets,
    "reset": _reset_sockets,
    "control": _cut_control,
    "unlinked": _take_memory_away,
    "late": _be_late,
    "killed": lambda context: os.kill(os.getpid(), signal.SIGKILL),
}
