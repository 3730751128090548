"""The communication thread: it owns a communicator and runs what it is given, in order."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from fabric.errors import InputError
from trainer.collective.communicator import Communicator, alone
from trainer.collective.scheduler import detect

T = TypeVar("T")


class Ticket(Generic[T]):
    """A piece of communication that has been handed over; ``wait`` gives its result or error."""

    def __init__(self) -> None:
        self._finished = threading.Event()
        self._value: T | None = None
        self._error: BaseException | None = None

    def wait(self) -> T:
        """Block until it is done; raises what it raised.

        How long that takes is bounded by the communicator's patience.
        """
        self._finished.wait()
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    def run(self, work: Callable[[], T]) -> None:
        """Do the work and keep its outcome."""
        try:
            self._value = work()
        except BaseException as error:  # raised again where it is waited for
            self._error = error
        finally:
            self._finished.set()


class Courier:
    """Runs collectives in a thread of its own, in the order in which they are submitted."""

    def __init__(self, communicator: Communicator) -> None:
        self.communicator = communicator
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="courier", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Communicator], T]) -> Ticket[T]:
        """Queue ``work``; the ticket tells when it is done."""
        ticket: Ticket[T] = Ticket()
        self._queue.put(lambda: ticket.run(lambda: work(self.communicator)))
        return ticket

    def call(self, work: Callable[[Communicator], T]) -> T:
        """Run ``work`` after all that was submitted before, and return its result."""
        return self.submit(work).wait()

    def close(self) -> None:
        """Finish what is queued and end the thread; the communicator stays open."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            work()


_current: list[Courier] = []


def set_current(courier: Courier) -> None:
    """Make ``courier`` the one that this process' optimizers use unless told otherwise."""
    _current[:] = [courier]


def current() -> Courier:
    """The courier of this process; where no job has set one, that of a job with one rank.

    InputError where a scheduler has started several processes and trainer.start
    none of them: each would train alone.
    """
    if not _current:
        _refuse_scattered()
        set_current(Courier(alone()))
    return _current[0]


def _refuse_scattered() -> None:
    share = detect(os.environ)
    if share is not None and share.size > 1:
        raise InputError(
            f"{share.scheduler} calls this process rank {share.rank} of {share.size}, but it was "
            "not started by trainer.start: each process would train alone",
            advice="Let the scheduler start `python -m trainer.start "
            f"{' '.join(sys.argv) or 'SCRIPT'}`: that makes one job of its processes. To train "
            "alone all the same, take the scheduler's variables out of the environment.",
        )
