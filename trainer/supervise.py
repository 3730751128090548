"""Starts the ranks of a job as processes on this host, watches them, and ends them.

Whatever happens (a rank dies or stops, the launcher is interrupted), no
process is left: ranks run in sessions of their own, are killed on the way
out, and are killed by the kernel should the launcher itself be killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from fabric.errors import InputError, PaisoarError
from trainer.collective.communicator import TransportName
from trainer.collective.errors import LostPeerError, MismatchError, WeightsDifferError
from trainer.collective.rendezvous import Rendezvous, SlowRank, check_size
from trainer.collective.wire import new_token
from trainer.rank import Orders

_POLL_S = 0.05
# A stopped process (SIGSTOP, a debugger) is named after this long.
_STOPPED_S = 2.0
# How long ranks get to say what they saw, once the job has failed.
_LAST_WORDS_S = 4.0
_EXPLAIN_S = 0.5
_TAIL_LINES = 12
# What TensorFlow writes before its own log level is in force, and on hosts without a GPU.
_NOISE = re.compile(
    r"^(WARNING: All log messages before absl|[IW]\d{4} |E\d{4} .*failed call to cuInit)"
)


@dataclass
class _Process:
    rank: int
    popen: subprocess.Popen[bytes]
    log: IO[bytes]
    stopped_since: float | None = None

    def lines(self) -> list[str]:
        """What it wrote to standard output and error, without TensorFlow's noise."""
        self.log.seek(0)
        text = self.log.read().decode(errors="replace")
        return [line for line in text.splitlines() if line.strip() and not _NOISE.match(line)]


@dataclass(frozen=True)
class Outcome:
    """What the ranks returned, by rank, and what they printed."""

    results: tuple[Any, ...]
    printed: tuple[tuple[str, ...], ...]


def run_ranks(
    program: str,
    payload: Any,  # noqa: ANN401 (any JSON)
    *,
    ranks: int,
    transport: TransportName = "auto",
    patience_s: float = 60.0,
    on_event: Callable[[int, Any], None] | None = None,
    on_slow: Callable[[SlowRank], None] | None = None,
    path: Sequence[Path] = (),
    hidden: Sequence[str] = (),
) -> Outcome:
    """Run ``module:function`` on so many ranks and return what each gave.

    ``path`` and ``hidden`` as in :class:`~trainer.rank.Orders`.
    ``on_event`` and ``on_slow`` are called in this thread. PeerError, once
    every process is gone, when a rank failed: which, why, and what the others
    said.
    """
    check_size(ranks)
    news: queue.SimpleQueue[tuple[int, Any] | SlowRank] = queue.SimpleQueue()
    processes: list[_Process] = []

    def explain(rank: int) -> str:
        return _explain(processes[rank].popen)

    def tell() -> None:
        while not news.empty():
            item = news.get()
            if isinstance(item, SlowRank):
                if on_slow:
                    on_slow(item)
            elif on_event:
                on_event(*item)

    token = new_token()
    with contextlib.ExitStack() as stack:
        rendezvous = stack.enter_context(
            Rendezvous(
                ranks,
                token,
                on_event=lambda rank, value: news.put((rank, value)),
                on_slow=news.put,
                explain=explain,
            )
        )
        stack.callback(_end, processes)
        for rank in range(ranks):
            orders = Orders(
                program=program,
                payload=payload,
                address=rendezvous.address,
                token=token,
                rank=rank,
                size=ranks,
                transport=transport,
                patience_s=patience_s,
                launcher_pid=os.getpid(),
                threads=max(1, len(os.sched_getaffinity(0)) // ranks),
                path=tuple(str(folder) for folder in path),
                hidden=tuple(hidden),
            )
            processes.append(_start(orders))
        while any(process.popen.poll() is None for process in processes):
            tell()
            if rendezvous.failure is not None:
                break
            _watch(processes, rendezvous)
            time.sleep(_POLL_S)
        _watch(processes, rendezvous)
        if rendezvous.failure is not None:
            culprit = rendezvous.failure.culprit
            _last_words([p for p in processes if culprit is None or p.rank != culprit.rank])
        tell()
        if rendezvous.failure is not None:
            raise _error(rendezvous, processes)
        return Outcome(
            tuple(rendezvous.results[rank] for rank in range(ranks)),
            tuple(tuple(process.lines()) for process in processes),
        )


def _start(orders: Orders) -> _Process:
    threads = str(orders.threads)
    environment = {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"),
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "TF_NUM_INTRAOP_THREADS": threads,
        "TF_NUM_INTEROP_THREADS": threads,
        "KERAS_BACKEND": "tensorflow",
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "NUMBA_NUM_THREADS": threads,
        "PYTHONUNBUFFERED": "1",
    }
    log = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
    popen = subprocess.Popen(
        # -P: what lies in the user's folder is no module of ours.
        [sys.executable, "-P", "-m", "trainer.rank"],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        env=environment,
        start_new_session=True,
    )
    assert popen.stdin is not None
    with contextlib.suppress(BrokenPipeError), popen.stdin as stdin:
        stdin.write(json.dumps(asdict(orders)).encode())
    return _Process(orders.rank, popen, log)


def _watch(processes: Sequence[_Process], rendezvous: Rendezvous) -> None:
    """Notice what ranks cannot say themselves: that they have ended, or are stopped."""
    for process in processes:
        code = process.popen.poll()
        if code is not None:
            if process.rank not in rendezvous.results:
                rendezvous.abort(process.rank, _explain(process.popen))
            continue
        if _state(process.popen.pid) not in {"T", "t"}:
            process.stopped_since = None
            continue
        process.stopped_since = process.stopped_since or time.monotonic()
        stopped_s = time.monotonic() - process.stopped_since
        if stopped_s > _STOPPED_S:
            rendezvous.abort(process.rank, "is stopped (SIGSTOP or a debugger)", seconds=stopped_s)


def _state(pid: int) -> str:
    """The process' state letter as in proc(5), empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _explain(popen: subprocess.Popen[bytes]) -> str:
    with contextlib.suppress(subprocess.TimeoutExpired):
        code = popen.wait(_EXPLAIN_S)
        if code < 0:
            return f"was killed by signal {-code} ({signal.Signals(-code).name})"
        return f"ended with exit code {code}"
    return "closed its connection"


def _last_words(processes: Sequence[_Process]) -> None:
    deadline = time.monotonic() + _LAST_WORDS_S
    while time.monotonic() < deadline:
        running = [p for p in processes if p.popen.poll() is None]
        # One that is stopped says nothing more.
        if not any(_state(p.popen.pid) not in {"T", "t"} for p in running):
            return
        time.sleep(_POLL_S)


def _end(processes: Sequence[_Process]) -> None:
    for process in processes:
        # The whole session: also what the rank itself has started.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.popen.pid, signal.SIGKILL)
    for process in processes:
        process.popen.wait()
        process.log.close()


def _error(rendezvous: Rendezvous, processes: Sequence[_Process]) -> PaisoarError:
    failure = rendezvous.failure
    assert failure is not None
    culprit = failure.culprit.rank if failure.culprit else None
    kind = rendezvous.failure_kind
    if kind == "InputError":
        return InputError(failure.cause.removeprefix("failed: "))
    lines = [
        f"rank {rank} reported: {report}"
        for rank, report in sorted(rendezvous.reports.items())
        if rank != culprit and kind not in {"MismatchError", "WeightsDifferError"}
    ]
    for process in processes:
        tail = process.lines()[-_TAIL_LINES:]
        if tail and process.rank in {culprit, *(() if culprit is not None else (process.rank,))}:
            lines.append(f"rank {process.rank} wrote last:")
            lines += [f"  {line}" for line in tail]
    detail = "".join(f"\n{line}" for line in lines)
    if kind == "MismatchError":
        return MismatchError(failure.cause + detail)
    if kind == "WeightsDifferError":
        return WeightsDifferError(failure.cause + detail)
    doing = f"a job of {len(processes)} ranks was ended"
    return LostPeerError(failure, doing=doing, detail=detail)
