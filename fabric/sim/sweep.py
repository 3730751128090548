"""Many simulations at once: on all cores, or on a Dask cluster.

joblib carries the work: its own worker processes here, or the cluster whose
scheduler is named. One failure never hides the other results, and an interrupted
sweep keeps what has come in.
"""

from __future__ import annotations

import contextlib
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import joblib
from joblib.externals.loky import get_reusable_executor

from fabric.errors import InputError, PaisoarError, ToolError

Point = TypeVar("Point")
Value = TypeVar("Value")

# Called with the number of finished points and of all.
Progress = Callable[[int, int], None]

_CONNECT_S = 10


@dataclass(frozen=True)
class Outcome(Generic[Value]):
    """What became of one point: a value, or why there is none."""

    index: int
    value: Value | None
    error: str = ""


@dataclass(frozen=True)
class Swept(Generic[Value]):
    """Outcomes in the order of the points. ``partial``: interrupted, some are missing."""

    outcomes: tuple[Outcome[Value], ...]
    partial: bool


class Workers:
    """Where sweeps run. Several sweeps of one context share the worker processes."""

    def __init__(self, address: str | None = None, jobs: int | None = None) -> None:
        self._address = address
        self._jobs = -1 if jobs is None else jobs
        self._client: Any = None
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Workers:
        if self._address is not None:
            self._client = self._stack.enter_context(_connected(self._address))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def count(self) -> int:
        """How many points run at once."""
        if self._client is not None:
            return max(1, int(sum(self._client.nthreads().values())))
        return max(1, int(joblib.cpu_count()) if self._jobs < 0 else self._jobs)

    def sweep(
        self,
        work: Callable[[Point], Value],
        points: Sequence[Point],
        progress: Progress | None = None,
    ) -> Swept[Value]:
        """Call ``work`` with each point, in no particular order.

        ``work`` must be a module's function, points and values plain: they travel to
        other processes. A PaisoarError becomes the outcome of its point.
        """
        found: list[Outcome[Value]] = []
        running = self._start(work, points)
        try:
            for outcome in running:
                found.append(outcome)
                if progress is not None:
                    progress(len(found), len(points))
        except KeyboardInterrupt:
            self._stop(running)
            return Swept(_in_order(found), partial=True)
        return Swept(_in_order(found), partial=False)

    def _start(
        self, work: Callable[[Point], Value], points: Sequence[Point]
    ) -> Iterator[Outcome[Value]]:
        calls = (
            joblib.delayed(_call)(os.getpid(), work, index, point)
            for index, point in enumerate(points)
        )
        if self._client is not None:
            with joblib.parallel_config(backend="dask", client=self._client):
                parallel = joblib.Parallel(return_as="generator_unordered")
            return iter(parallel(calls))
        parallel = joblib.Parallel(n_jobs=self._jobs, return_as="generator_unordered")
        return iter(parallel(calls))

    def _stop(self, running: Iterator[Outcome[Value]]) -> None:
        """Drop what has not begun and end our own worker processes."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if hasattr(running, "close"):
                running.close()
            if self._client is None and self._jobs != 1:
                get_reusable_executor().shutdown(wait=True, kill_workers=True)


def _in_order(found: list[Outcome[Value]]) -> tuple[Outcome[Value], ...]:
    return tuple(sorted(found, key=lambda outcome: outcome.index))


def _call(parent: int, work: Callable[[Point], Value], index: int, point: Point) -> Outcome[Value]:
    if os.getpid() != parent:
        # Ctrl-C reaches every process of a terminal; the sweep itself decides what ends.
        with contextlib.suppress(ValueError):  # a thread of a Dask worker
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return Outcome(index, work(point))
    except PaisoarError as error:
        return Outcome(index, None, str(error))


@contextlib.contextmanager
def _connected(address: str) -> Iterator[Any]:
    try:
        from distributed import Client  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ToolError(
            "--dask needs the package distributed", advice="pip install 'paisoar[sweep]'"
        ) from error
    try:
        client = Client(address, timeout=_CONNECT_S, set_as_default=False)
    except ValueError as error:
        raise InputError(
            f"--dask {address}: {error}", advice="Write it like tcp://scheduler:8786."
        ) from error
    except OSError as error:
        raise ToolError(
            f"the Dask scheduler at {address} does not answer within {_CONNECT_S} s",
            advice="Start one (`dask scheduler`, `dask worker`), with paisoar on every worker.",
        ) from error
    try:
        yield client
    finally:
        client.close()
