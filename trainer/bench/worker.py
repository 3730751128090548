"""What every contender's process does: wait for orders, run, tell the times.

Between orders it sleeps in ``recv``, so that who is not being measured costs
nothing. Needs the standard library and NumPy alone: peers have environments
of their own.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

WARM_UP = 2


def keep_to_a_core(rank: int, ranks: int) -> None:
    """Stay on one core, as mpirun binds its ranks by default, where there are enough."""
    cores = sorted(os.sched_getaffinity(0))
    if ranks <= len(cores):
        os.sched_setaffinity(0, {cores[rank]})


def serve(name: str, rank: int, start: Callable[[], Callable[[int], Callable[[], object]]]) -> None:
    """Obey the driver whose address is in the environment until it hangs up.

    ``start()`` connects the ranks and returns ``prepare(nbytes)``, which
    returns what is timed.
    """
    host, _, port = os.environ["PAISOAR_BENCH"].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as sock:
        sock.settimeout(None)
        lines = sock.makefile("rw")

        def say(message: dict[str, Any]) -> None:
            lines.write(json.dumps(message) + "\n")
            lines.flush()

        say({"token": os.environ["PAISOAR_BENCH_TOKEN"], "name": name, "rank": rank})
        try:
            prepare = start()
            prepared: dict[int, Callable[[], object]] = {}
            say({"ready": True})
            for line in lines:
                order = json.loads(line)
                nbytes, count = int(order["bytes"]), int(order["count"])
                warm_up = 1
                if nbytes not in prepared:
                    # One array at a time: many contenders share the memory.
                    prepared.clear()
                    prepared[nbytes] = prepare(nbytes)
                    warm_up = WARM_UP
                say({"seconds": _timed(prepared[nbytes], warm_up, count)})
        except Exception as error:  # told to the driver, who tells the user
            say({"error": f"{type(error).__name__}: {error}"})
    sys.stdout.flush()
    # Peers' threads and finalizers may hang once one rank has gone.
    threading.Timer(2.0, os._exit, (0,)).start()


def _timed(work: Callable[[], object], warm_up: int, count: int) -> list[float]:
    for _ in range(warm_up):
        work()
    seconds = []
    for _ in range(count):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return seconds
