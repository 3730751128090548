"""The communication thread: it owns a communicator and runs what it is given, in order."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from trainer.collective.communicator import Communicator, alone

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
    """The courier of this process; where no job has set one, that of a job with one rank."""
    if not _current:
        set_current(Courier(alone()))
    return _current[0]
