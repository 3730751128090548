"""What ranks do in the tests of the supervisor; run in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
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
