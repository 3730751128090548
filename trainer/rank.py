"""One rank's process: ``python -m trainer.rank``, with its orders as JSON on standard input.

It joins the job, connects to its neighbours, runs the program it was told to,
and sends the result back. It ends with the launcher: the kernel kills it
(PR_SET_PDEATHSIG) should the launcher die first.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fabric.errors import PaisoarError, PeerError
from trainer.collective.communicator import Communicator, TransportName, connect
from trainer.collective.courier import Courier, set_current
from trainer.collective.membership import Membership

_PR_SET_PDEATHSIG = 1
# Loading TensorFlow's library holds the interpreter's lock, and heartbeats with it.
_IMPORT_SILENCE_S = 120.0


@dataclass(frozen=True)
class Orders:
    """What a rank is told by its launcher.

    ``program`` is ``module:function``, called with :class:`RankContext` and
    ``payload``; it returns what can be written as JSON. ``path`` is put in
    front of ``sys.path``. ``hidden`` are libraries that look absent while the
    program is being imported: Keras loads matplotlib, pandas, scikit-learn and
    SciPy only to offer them, which is 40% of the time to import TensorFlow.
    """

    program: str
    payload: Any
    address: tuple[str, int]
    token: str
    rank: int
    size: int
    transport: TransportName
    patience_s: float
    launcher_pid: int
    threads: int
    path: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True)
class RankContext:
    """What a program gets: its place in the job, and the way to the other ranks.

    ``courier`` owns ``communicator``; a program that uses the courier leaves
    the communicator alone. ``threads`` is this rank's share of the cores.
    """

    membership: Membership
    communicator: Communicator
    courier: Courier
    threads: int


@contextlib.contextmanager
def _absent(names: Sequence[str]) -> Iterator[None]:
    """Make ``import name`` fail inside; what is loaded already stays."""
    chosen = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(chosen))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in chosen:
            if sys.modules.get(name) is None:
                sys.modules.pop(name, None)


def main() -> int:
    """Run one rank to its end; returns the exit code."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    document = json.load(sys.stdin)
    document["address"] = tuple(document["address"])
    orders = Orders(**document)
    if os.getppid() != orders.launcher_pid:
        return PeerError.exit_code
    sys.path[:0] = orders.path
    membership = Membership(
        orders.address, orders.token, orders.rank, orders.size, patience_s=orders.patience_s
    )
    try:
        communicator = connect(membership, orders.transport)
        courier = Courier(communicator)
        set_current(courier)
        with membership.silence(_IMPORT_SILENCE_S), _absent(orders.hidden):
            module, _, name = orders.program.partition(":")
            program = getattr(importlib.import_module(module), name)
        context = RankContext(membership, communicator, courier, orders.threads)
        membership.send_result(program(context, orders.payload))
        # Nobody leaves while another may still need its memory or connection.
        courier.call(lambda c: c.barrier(doing="end of the job"))
    except BaseException as error:
        if not isinstance(error, PaisoarError):
            traceback.print_exc()
        membership.fail(error)
        return error.exit_code if isinstance(error, PaisoarError) else 1
    membership.leave()
    courier.close()
    communicator.close()
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads may still sit in a broken transport, and TensorFlow's teardown takes
    # its time: what had to be written is written.
    os._exit(code)
