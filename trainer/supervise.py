"""Starts the ranks of a job, watches them, and ends them.

Whatever happens (a rank dies or stops, the launcher is interrupted), no
process is left: ranks run in sessions of their own, are killed on the way
out, and end themselves should the launcher be killed: on this host by the
kernel (PR_SET_PDEATHSIG), on others because their standard input closes with
the SSH session. What ranks of this host keep in their temporary folder goes with
the job: it is a folder of the job's own.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from fabric.errors import PeerError
from fabric.scratch import scratch_folder
from trainer.collective.communicator import TransportName
from trainer.collective.rendezvous import Rendezvous, SlowRank, check_size
from trainer.collective.settings import NetworkSettings
from trainer.collective.wire import new_token
from trainer.failure import TAIL_LINES, failure_of
from trainer.rank import Orders

_POLL_S = 0.05
# A stopped process (SIGSTOP, a debugger) is named after this long.
_STOPPED_S = 2.0
# How long ranks get to say what they saw, once the job has failed.
_LAST_WORDS_S = 6.0
_UNREAD_S = 5.0
_EXPLAIN_S = 0.5
_VMSTAT = Path("/proc/vmstat")
# What TensorFlow writes before its own log level is in force, and on hosts without a GPU.
_NOISE = re.compile(
    r"^(WARNING: All log messages before absl|[IW]\d{4} |E\d{4} .*failed call to cuInit)"
)


@dataclass(frozen=True)
class Place:
    """Where a rank runs, if not as a plain process of this host.

    ``command`` reaches the host and runs the one argument that is appended to
    it in a shell there (``ssh ... HOST``); ``python`` is the interpreter
    there. ``launched`` False: a scheduler has started this rank, we only wait
    for it. ``network`` is how it talks; None: as its environment says.
    """

    name: str = ""
    command: tuple[str, ...] = ()
    python: str = sys.executable
    launched: bool = True
    network: NetworkSettings | None = None


@dataclass(frozen=True)
class Meeting:
    """Where the ranks of a job meet; port 0 and no token: chosen here.

    ``announce`` is told address and token before the first rank is started.
    ``silent_after_s`` is how long a rank may say nothing before it is lost.
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str = ""
    silent_after_s: float = 15.0
    join_within_s: float = 60.0
    announce: Callable[[tuple[str, int], str], None] | None = None


_HERE = Place()
_ANYWHERE = Meeting()


@dataclass
class _Process:
    rank: int
    popen: subprocess.Popen[bytes]
    log: IO[bytes]
    here: bool = True
    stopped_since: float | None = None
    ended_since: float | None = None
    ooms: int = 0
    shown_bytes: int = 0

    def lines(self) -> list[str]:
        """What it wrote to standard output and error, without TensorFlow's noise."""
        self.log.seek(0)
        text = self.log.read().decode(errors="replace")
        return [line for line in text.splitlines() if line.strip() and not _NOISE.match(line)]

    def new_lines(self, *, ended: bool = False) -> list[str]:
        """What it has written since the last call: whole lines, until it has ``ended``."""
        fd = self.log.fileno()
        # The file's offset is the rank's, too: pread leaves it alone.
        data = os.pread(fd, os.fstat(fd).st_size - self.shown_bytes, self.shown_bytes)
        data = data[: None if ended else data.rfind(b"\n") + 1]
        self.shown_bytes += len(data)
        lines = data.decode(errors="replace").removesuffix("\n").split("\n") if data else []
        return [line for line in lines if not _NOISE.match(line)]


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
    on_line: Callable[[int, str], None] | None = None,
    path: Sequence[Path] = (),
    hidden: Sequence[str] = (),
    timeline: bool = False,
    places: Sequence[Place] | None = None,
    meeting: Meeting = _ANYWHERE,
    logs: Path | None = None,
    stop: threading.Event | None = None,
) -> Outcome:
    """Run ``module:function`` on so many ranks and return what each gave.

    ``path`` and ``hidden`` as in :class:`~trainer.rank.Orders`; ``places`` has
    one entry a rank, all ranks are processes of this host where it is None.
    ``on_event``, ``on_slow`` and ``on_line`` are called in this thread, the
    last with what a rank started here prints, as it comes. ``logs`` is a folder
    for what the ranks of a failed job wrote, should it be long. PeerError, once
    every process is gone, when a rank failed: which, why, and what the others
    said; and when another thread has set ``stop``, which ends the job at once.
    """
    check_size(ranks)
    places = places or [_HERE] * ranks
    news: queue.SimpleQueue[tuple[int, Any] | SlowRank] = queue.SimpleQueue()
    processes: list[_Process] = []

    def explain(rank: int) -> str:
        process = next((p for p in processes if p.rank == rank), None)
        return _explain(process) if process else "ended: its connection closed"

    def tell(*, ended: bool = False) -> None:
        if on_line:
            for process in processes:
                for line in process.new_lines(ended=ended):
                    on_line(process.rank, line)
        while not news.empty():
            item = news.get()
            if isinstance(item, SlowRank):
                if on_slow:
                    on_slow(item)
            elif on_event:
                on_event(*item)

    token = meeting.token or new_token()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch_folder())
        rendezvous = stack.enter_context(
            Rendezvous(
                ranks,
                token,
                on_event=lambda rank, value: news.put((rank, value)),
                on_slow=news.put,
                explain=explain,
                host=meeting.host,
                port=meeting.port,
                silent_after_s=meeting.silent_after_s,
                join_within_s=meeting.join_within_s,
            )
        )
        stack.callback(_end, processes)
        if meeting.announce:
            meeting.announce(rendezvous.address, token)
        for rank, place in enumerate(places):
            if not place.launched:
                continue
            orders = Orders(
                program=program,
                payload=payload,
                address=rendezvous.address,
                token=token,
                rank=rank,
                size=ranks,
                transport=transport,
                patience_s=patience_s,
                launcher_pid=0 if place.command else os.getpid(),
                threads=threads_for(sum(other.name == place.name for other in places)),
                path=tuple(str(folder) for folder in path),
                hidden=tuple(hidden),
                timeline=timeline,
            )
            processes.append(start(orders, place, folder))
        while len(rendezvous.results) < ranks or any(p.popen.poll() is None for p in processes):
            tell()
            if stop is not None and stop.is_set():
                raise PeerError("the job was stopped")
            if rendezvous.failure is not None:
                break
            _watch(processes, rendezvous)
            time.sleep(_POLL_S)
        _watch(processes, rendezvous)
        if rendezvous.failure is not None:
            culprit = rendezvous.failure.culprit
            others = set(range(ranks)) - ({culprit.rank} if culprit else set())
            _last_words(
                [p for p in processes if p.rank in others],
                lambda: others <= rendezvous.reports.keys(),
            )
        tell(ended=True)
        if rendezvous.failure is not None:
            written = {process.rank: process.lines() for process in processes}
            raise failure_of(rendezvous, written, ranks, logs)
        return Outcome(
            tuple(rendezvous.results[rank] for rank in range(ranks)),
            tuple(tuple(process.lines()) for process in processes),
        )


def run_one(orders: Orders, network: NetworkSettings | None = None) -> tuple[str, ...]:
    """Run one rank of a job that another process launches, and return what it printed.

    PeerError with its last lines.
    """
    with scratch_folder() as folder:
        process = start(orders, Place(network=network), folder)
        try:
            process.popen.wait()
            if process.popen.returncode:
                # Schedulers end all ranks when one has ended: rank 0 first says who failed.
                _await_end_of(orders.address)
                lines = "".join(f"\n  {line}" for line in process.lines()[-TAIL_LINES:])
                raise PeerError(f"rank {orders.rank} {_explain(process)}{':' * bool(lines)}{lines}")
            return tuple(process.lines())
        finally:
            _end([process])


def _await_end_of(rendezvous: tuple[str, int]) -> None:
    deadline = time.monotonic() + _LAST_WORDS_S + 2.0
    with contextlib.suppress(OSError):
        while time.monotonic() < deadline:
            socket.create_connection(rendezvous, timeout=1.0).close()
            time.sleep(4 * _POLL_S)


def threads_for(ranks_here: int) -> int:
    """The share of this host's cores of one of so many ranks on it."""
    return max(1, len(os.sched_getaffinity(0)) // max(1, ranks_here))


def start(orders: Orders, place: Place, folder: Path) -> _Process:
    """Start a rank's process and give it its orders; ``folder`` is its temporary one on this host.

    A rank that is killed cannot remove what libraries have written there.
    """
    threads = str(orders.threads)
    wanted = {
        "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"),
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "TF_NUM_INTRAOP_THREADS": threads,
        # One more: while an operation waits for other ranks, others go on.
        "TF_NUM_INTEROP_THREADS": str(orders.threads + 1),
        "KERAS_BACKEND": "tensorflow",
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "NUMBA_NUM_THREADS": threads,
        "PYTHONUNBUFFERED": "1",
        **(place.network.to_environment() if place.network else {}),
    }
    # -P: what lies in the user's folder is no module of ours.
    command = [place.python, "-P", "-m", "trainer.rank"]
    if place.command:
        there = shlex.join(["env", *(f"{k}={v}" for k, v in wanted.items()), *command])
        command = [*place.command, f"exec {there}"]
    else:
        wanted["TMPDIR"] = str(folder)
    log = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
    popen = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        env={**os.environ, **wanted},
        start_new_session=True,
    )
    assert popen.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        popen.stdin.write(json.dumps(asdict(orders)).encode() + b"\n")
        popen.stdin.flush()
        if not place.command:
            popen.stdin.close()
    return _Process(orders.rank, popen, log, not place.command, ooms=_ooms())


def _watch(processes: Sequence[_Process], rendezvous: Rendezvous) -> None:
    """Notice what ranks cannot say themselves: that they have ended, or are stopped."""
    for process in processes:
        code = process.popen.poll()
        if code is not None:
            # On a busy machine, what it said last may still wait to be read.
            process.ended_since = process.ended_since or time.monotonic()
            waited_s = time.monotonic() - process.ended_since
            if process.rank not in rendezvous.results and (code or waited_s > _UNREAD_S):
                rendezvous.abort(process.rank, _explain(process))
            continue
        if not process.here or _state(process.popen.pid) not in {"T", "t"}:
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


def _explain(process: _Process) -> str:
    with contextlib.suppress(subprocess.TimeoutExpired):
        code = process.popen.wait(_EXPLAIN_S)
        if not process.here:
            return f"ended: its SSH session closed with exit code {code}"
        if code < 0:
            memory = code == -signal.SIGKILL and _ooms() > process.ooms
            why = ", out of memory" if memory else ""
            return f"was killed by signal {-code} ({signal.Signals(-code).name}){why}"
        return f"ended with exit code {code}"
    return "closed its connection"


def _ooms() -> int:
    """How many processes the kernel has killed for want of memory, on this host."""
    with contextlib.suppress(OSError):
        for line in _VMSTAT.read_text().splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return 0


def _last_words(processes: Sequence[_Process], all_said: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _LAST_WORDS_S
    while time.monotonic() < deadline and not all_said():
        running = [p for p in processes if p.popen.poll() is None]
        # One that is stopped says nothing more.
        if not any(_state(p.popen.pid) not in {"T", "t"} for p in running):
            return
        time.sleep(_POLL_S)


def _end(processes: Sequence[_Process]) -> None:
    for process in processes:
        if process.popen.stdin is not None:
            # On another host this is what ends the rank.
            with contextlib.suppress(OSError):
                process.popen.stdin.close()
        # The whole session: also what the rank itself has started.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.popen.pid, signal.SIGKILL)
    for process in processes:
        process.popen.wait()
        process.log.close()
