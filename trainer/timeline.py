"""A timeline of compute and communication, in Chrome's trace format.

Off unless a job asks for it: then ``span`` costs a dictionary look-up and
nothing else. Each rank records into memory and hands its spans to the
launcher, which writes one file with a process per rank.

Format: Trace Event Format, complete events (``ph`` ``X``), times in
microseconds; chrome://tracing and Perfetto open it.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from fabric.errors import InputError
from trainer.collective.communicator import Communicator
from trainer.collective.courier import Courier, Ticket

T = TypeVar("T")

# thread, name, start and duration in microseconds since the epoch
Span = tuple[str, str, int, int]
_OFF = contextlib.nullcontext()
_TRACED = {"allreduce", "allgather", "broadcast", "barrier", "reduce", "send", "recv"}


class Timeline:
    """The spans of one rank, in memory until ``take``."""

    def __init__(self) -> None:
        self._spans: list[Span] = []
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def span(self, thread: str, name: str) -> Iterator[None]:
        """Record how long the body takes."""
        # The wall clock: spans of several processes stand in one picture.
        wall_us, began = time.time_ns() // 1000, time.perf_counter_ns()
        try:
            yield
        finally:
            spent_us = (time.perf_counter_ns() - began) // 1000
            with self._lock:
                self._spans.append((thread, name, wall_us, spent_us))

    def take(self) -> list[Span]:
        """The spans since the last call."""
        with self._lock:
            spans, self._spans = self._spans, []
        return spans


_current: list[Timeline] = []


def start() -> Timeline:
    """Record from now on, in this process."""
    _current[:] = [Timeline()]
    return _current[0]


def stop() -> None:
    """Record no longer."""
    _current.clear()


def take() -> list[Span]:
    """The spans of this process since the last call; none where nothing records."""
    return _current[0].take() if _current else []


def span(thread: str, name: str) -> contextlib.AbstractContextManager[None]:
    """A span of the current timeline; nothing where there is none."""
    return _current[0].span(thread, name) if _current else _OFF


class TracedCourier(Courier):
    """A courier that records every collective, with what it was for, as a span."""

    def submit(self, work: Callable[[Communicator], T]) -> Ticket[T]:
        """See :class:`~trainer.collective.courier.Courier`."""
        return super().submit(lambda communicator: work(_traced(communicator)))


def _traced(communicator: Communicator) -> Communicator:
    return _TracedCommunicator(communicator)  # type: ignore[return-value] # it delegates all


class _TracedCommunicator:
    def __init__(self, communicator: Communicator) -> None:
        self._communicator = communicator

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (whatever the communicator has)
        value = getattr(self._communicator, name)
        if name not in _TRACED:
            return value

        def traced(*args: Any, **options: Any) -> Any:  # noqa: ANN401
            with span("communication", f"{name}: {options.get('doing', '')}".rstrip(": ")):
                return value(*args, **options)

        return traced

    def __setattr__(self, name: str, value: Any) -> None:  # noqa: ANN401
        if name == "_communicator":
            super().__setattr__(name, value)
        else:
            setattr(self._communicator, name, value)


def trace_document(ranks: Mapping[int, Sequence[Sequence[Any]]]) -> dict[str, Any]:
    """The spans of all ranks as one trace: a process a rank, its threads within."""
    events: list[dict[str, Any]] = []
    starts = [span[2] for spans in ranks.values() for span in spans]
    origin_us = min(starts, default=0)
    for rank, spans in sorted(ranks.items()):
        events.append(_named("process_name", rank, 0, f"rank {rank}"))
        threads = sorted({span[0] for span in spans})
        for number, thread in enumerate(threads):
            events.append(_named("thread_name", rank, number, thread))
        events += [
            {
                "ph": "X",
                "pid": rank,
                "tid": threads.index(thread),
                "name": name,
                "cat": thread,
                "ts": start_us - origin_us,
                "dur": spent_us,
            }
            for thread, name, start_us, spent_us in spans
        ]
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def check_trace_file(path: Path) -> None:
    """InputError unless a trace can be written there; asked before a job, not after it."""
    folder = path.parent
    if path.is_dir():
        why = "is a folder, not a file"
    elif not folder.is_dir():
        why = f"there is no folder {folder}"
    elif not os.access(path if path.exists() else folder, os.W_OK):
        why = "cannot be written"
    else:
        return
    raise InputError(why, file=path, key="timeline", advice="Name a file in a folder of yours.")


def write_trace(path: Path, ranks: Mapping[int, Sequence[Sequence[Any]]]) -> None:
    """Write the trace of all ranks."""
    path.write_text(json.dumps(trace_document(ranks)) + "\n", encoding="utf-8")


def _named(kind: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "tid": tid, "name": kind, "args": {"name": name}}
