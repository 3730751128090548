"""One rank's process: ``python -m trainer.rank``, with its orders as JSON on standard input.

It joins the job, connects to its neighbours, runs the program it was told to,
and sends the result back. It ends with the launcher: the kernel kills it
(PR_SET_PDEATHSIG) should the launcher on the same host die first; on another
host it ends, with all that it has started, when its standard input closes.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fabric.errors import PaisoarError, PeerError
from trainer import timeline
from trainer.collective.communicator import Communicator, TransportName, connect
from trainer.collective.courier import Courier, set_current
from trainer.collective.membership import Membership
from trainer.timeline import TracedCourier

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
    ``timeline`` records spans (see :mod:`trainer.timeline`). ``speaks`` prints
    why the rank failed even where the launcher has been told: nobody else here would.
    """

    program: str
    payload: Any
    address: tuple[str, int]
    token: str
    rank: int
    size: int
    transport: TransportName
    patience_s: float
    launcher_pid: int  # 0: on another host
    threads: int
    path: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    timeline: bool = False
    speaks: bool = False


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


def _remove_generated() -> None:
    """Remove the sources that TensorFlow's AutoGraph has written to the temporary folder.

    It would do so itself at the interpreter's end, which we do not wait for.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith("__autograph_generated_file"):
            with contextlib.suppress(OSError, TypeError):
                os.unlink(module.__file__)  # type: ignore[arg-type]  # noqa: PTH108


def _end_with_input() -> None:
    """End this process and its children when the launcher's SSH session is gone."""
    while sys.stdin.buffer.read(1 << 12):
        pass
    with contextlib.suppress(PermissionError, ProcessLookupError):
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
    os._exit(PeerError.exit_code)


def main() -> int:
    """Run one rank to its end; returns the exit code."""
    document = json.loads(sys.stdin.readline())
    document["address"] = tuple(document["address"])
    orders = Orders(**document)
    if orders.launcher_pid:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != orders.launcher_pid:
            return PeerError.exit_code
    else:
        threading.Thread(target=_end_with_input, name="watch", daemon=True).start()
    sys.path[:0] = orders.path
    try:
        membership = Membership(
            orders.address, orders.token, orders.rank, orders.size, patience_s=orders.patience_s
        )
    except PaisoarError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    try:
        communicator = connect(membership, orders.transport)
        if orders.timeline:
            timeline.start()
        courier = (TracedCourier if orders.timeline else Courier)(communicator)
        set_current(courier)
        with membership.silence(_IMPORT_SILENCE_S), _absent(orders.hidden):
            module, _, name = orders.program.partition(":")
            program = getattr(importlib.import_module(module), name)
        context = RankContext(membership, communicator, courier, orders.threads)
        membership.send_result(program(context, orders.payload))
        # Nobody leaves while another may still need its memory or connection.
        courier.call(lambda c: c.end_program())
    except BaseException as error:
        if not isinstance(error, PaisoarError):
            traceback.print_exc()
        told = membership.fail(error)
        if isinstance(error, PaisoarError) and (orders.speaks or not told):
            print(error, file=sys.stderr)
        return error.exit_code if isinstance(error, PaisoarError) else 1
    membership.leave()
    courier.close()
    communicator.close()
    return 0


if __name__ == "__main__":
    code = main()
    _remove_generated()
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads may still sit in a broken transport, and TensorFlow's teardown takes
    # its time: what had to be written is written.
    os._exit(code)
