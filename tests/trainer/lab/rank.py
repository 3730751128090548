"""One rank on a lab's guest: ``rank.py RANK SIZE ADDRESS PORT TRANSPORT TASK [JSON]``.

The ranks meet at ADDRESS:PORT, which is rank 0's. The last line on stdout is a JSON
object with what the task found, or with the error and its advice.
"""

import json
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))

from fabric.errors import PaisoarError
from tests.trainer.lab.compile import DTYPES
from trainer.collective.communicator import connect
from trainer.collective.dtypes import ReduceOp
from trainer.collective.membership import Membership
from trainer.collective.rendezvous import Rendezvous
from trainer.collective.settings import NetworkSettings

TOKEN = "1ab0" * 16
COUNTS = (1, 3, 1000, 4096, 65_537, 600_001)


def contribution(rank, count, dtype):
    """What a rank adds: small whole numbers, whose sums every type holds exactly."""
    return ((np.arange(count) * (rank + 3)) % 11).astype(dtype)


def correct(communicator, _options):
    """Allreduce of every type and size; sums are exact, and the ranks' bits equal."""
    wrong, checked = [], 0
    for dtype in DTYPES:
        for count in COUNTS:
            mine = communicator.buffer(count, dtype)
            mine[:] = contribution(communicator.rank, count, dtype)
            wanted = sum(
                contribution(r, count, np.float64) for r in range(communicator.size)
            ).astype(dtype)
            communicator.allreduce(mine, ReduceOp.SUM)
            checked += 1
            if mine.tobytes() != wanted.tobytes():
                wrong.append(f"{dtype} x {count}")
            communicator.release(mine)
    # Numbers that do not add up exactly have the same bits on every rank.
    rough = communicator.buffer(100_003)
    rough[:] = np.random.default_rng(communicator.rank).standard_normal(100_003)
    communicator.allreduce(rough, ReduceOp.AVERAGE)
    every = communicator.allgather(rough)
    return {"checked": checked, "wrong": wrong, "same": bool((every == every[0]).all())}


def speed(communicator, options):
    """busbw of an allreduce in bit/s: each turn's, n >= 2 ranks (2(n-1)/n of the array)."""
    size = communicator.size
    bucket = communicator.buffer(options["nbytes"] // 4)
    bucket[:] = 1.0
    turns = []
    for _ in range(options["turns"] + 1):
        communicator.barrier()
        began = time.monotonic()
        for _ in range(options["steps"]):
            communicator.allreduce(bucket)
        took = (time.monotonic() - began) / options["steps"]
        turns.append(bucket.nbytes * 8 * 2 * (size - 1) / size / took)
    return {"busbw_bps": turns[1:]}


def endless(communicator, _options):
    """Allreduces until a rank is lost; says when it was noticed."""
    bucket = communicator.buffer(1 << 18)
    # What is compiled is compiled here.
    communicator.allreduce(bucket)
    print("running", flush=True)
    last = time.time()
    try:
        while True:
            communicator.allreduce(bucket)
            last = time.time()
            time.sleep(0.05)
    except PaisoarError as error:
        return {"error": str(error), "advice": error.advice, "silent_s": time.time() - last}


TASKS = {"correct": correct, "speed": speed, "endless": endless}


def main():
    rank, size, address, port, transport, task, *rest = sys.argv[1:]
    options = json.loads(rest[0]) if rest else {}
    settings = NetworkSettings.from_environment()
    meeting = (address, int(port))
    with ExitStack() as stack:
        try:
            if rank == "0":
                server = Rendezvous(
                    int(size), TOKEN, host=address, port=int(port), join_within_s=300
                )
                stack.enter_context(server)
            member = join(meeting, int(rank), int(size))
            stack.callback(member.leave)
            communicator = connect(member, transport, settings=settings)
            stack.callback(communicator.close)
            found = TASKS[task](communicator, options)
        except PaisoarError as error:
            found = {"error": str(error), "advice": error.advice}
        print(json.dumps(found), flush=True)


def join(meeting, rank, size):
    """A slower guest's rank 0 listens minutes after our start."""
    until = time.monotonic() + 300
    while True:
        try:
            return Membership(
                meeting, TOKEN, rank, size, patience_s=float(os.environ.get("PATIENCE_S", "20"))
            )
        except PaisoarError as error:
            if "refused" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.5)


if __name__ == "__main__":
    main()
