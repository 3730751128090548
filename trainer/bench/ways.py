"""Ways of training that are alive beside each other: started, timed in turns, ended together."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import IO, Any

import psutil

from fabric.errors import PaisoarError, ToolError
from trainer.bench.teams import uninterrupted
from trainer.bench.training_worker import Task
from trainer.collective.communicator import TransportName
from trainer.launch import NOT_NEEDED
from trainer.spec import SYNCS
from trainer.supervise import run_ranks, threads_for

PEERS = ("tf-ring", "tf-ps")
CLASSES = 10
_READY_WITHIN_S = 400.0
_TURN_WITHIN_S = 300.0


@dataclass
class Way:
    """A way of training that is alive: its connections, and what was measured so far.

    ``lockstep``: by how much the same steps would have gone slower, had everyone waited
    for the slowest after each.
    """

    name: str
    expected: int
    streams: list[Any] = field(default_factory=list)
    processes: list[psutil.Process] = field(default_factory=list)
    images_per_s: list[float] = field(default_factory=list)
    step_s: list[float] = field(default_factory=list)
    waited_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    lockstep: list[float] = field(default_factory=list)
    loss: float = 0.0
    failure: str = ""
    broken_off: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Setup:
    """What all ways of a comparison train; ``batch_size`` is a rank's, ``image_size`` in pixels."""

    model: str
    ranks: int
    image_size: int
    batch_size: int
    transport: TransportName

    def task(self, way: str, control: tuple[str, int], rank: int = 0, **more: Any) -> Task:  # noqa: ANN401
        """Return what one process of a way is told, ``control`` being our address."""
        return Task(
            way=way,
            rank=rank,
            ranks=self.ranks,
            model=self.model,
            image_size=self.image_size,
            batch_size=self.batch_size,
            classes=CLASSES,
            control=control,
            key=way,
            **more,
        )


@contextlib.contextmanager
def breaking_off(ways: dict[str, Way]) -> Iterator[None]:
    """On an error or Ctrl-C all end together; nobody is asked for last words."""
    try:
        yield
    except BaseException:
        for way in ways.values():
            way.broken_off.set()
            for process in way.processes:
                with contextlib.suppress(psutil.Error):
                    process.kill()
        raise


def find_room(setup: Setup, way: Way, single: Way) -> None:
    """ToolError where a peer's processes do not fit beside those that run already.

    Its workers need at least what single processes need, its servers hardly less.
    """
    servers = 2 if way.name == "tf-ps" else 0
    largest = max(process.memory_info().rss for process in single.processes)
    need = largest * (setup.ranks + servers)
    free = psutil.virtual_memory().available
    if need > free:
        raise ToolError(
            f"{way.name} needs about {need >> 20} MiB of memory, {free >> 20} MiB are free"
        )


def hang_up(control: socket.socket, way: Way) -> None:
    """Close the way's connections: its processes take that for the end."""
    control.close()
    for stream in way.streams:
        with contextlib.suppress(OSError):
            stream.close()


@contextlib.contextmanager
def started(setup: Setup, way: Way, control: tuple[str, int]) -> Iterator[Callable[[], str]]:
    """Start a way's processes; the value says why they have failed, or nothing."""
    if way.name in SYNCS:
        yield from _ours(setup, way, control)
    else:
        yield from _separate(setup, way, control)


def _ours(setup: Setup, way: Way, control: tuple[str, int]) -> Iterator[Callable[[], str]]:
    failures: queue.SimpleQueue[str] = queue.SimpleQueue()

    def launch() -> None:
        try:
            run_ranks(
                "trainer.bench.training_worker:ours",
                asdict(setup.task(way.name, control)),
                ranks=setup.ranks,
                transport=setup.transport,
                hidden=NOT_NEEDED,
                stop=way.broken_off,
            )
        except PaisoarError as error:
            failures.put(str(error))

    thread = threading.Thread(target=launch, name=f"bench {way.name}")
    try:
        thread.start()
        yield lambda: failures.get() if not failures.empty() else ""
        # They end by themselves when their control connections have closed.
        thread.join()
    finally:
        with uninterrupted():
            way.broken_off.set()
            thread.join()


def _separate(setup: Setup, way: Way, control: tuple[str, int]) -> Iterator[Callable[[], str]]:
    name = way.name
    tasks = [setup.task(name, control, rank) for rank in range(setup.ranks)]
    if name == "tf-ring":
        cluster = {"worker": _addresses(setup.ranks)}
        tasks = [setup.task(name, control, rank, cluster=cluster) for rank in range(setup.ranks)]
    elif name == "tf-ps":
        cluster = {
            "worker": _addresses(setup.ranks),
            "ps": _addresses(1),
            "chief": _addresses(1),
        }
        tasks = [setup.task(name, control, rank, cluster=cluster) for rank in range(setup.ranks)]
        tasks += [
            setup.task(name, control, 0, role=role, cluster=cluster) for role in ("ps", "chief")
        ]
    processes: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
    try:
        for task in tasks:
            processes.append(_spawn(task, setup.ranks))
            way.processes.append(psutil.Process(processes[-1][0].pid))

        def failed() -> str:
            for popen, log in processes:
                if popen.poll() is not None:
                    log.seek(0)
                    lines = log.read().decode(errors="replace").strip().splitlines()
                    return f"ended with {popen.returncode}: {lines[-1] if lines else ''}"
            return ""

        yield failed
    finally:
        with uninterrupted():
            for popen, log in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(popen.pid, signal.SIGKILL)
                popen.wait()
                log.close()


def _spawn(task: Task, ranks: int) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    threads = str(threads_for(ranks))
    environment = {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TF_NUM_INTRAOP_THREADS": threads,
        "KERAS_BACKEND": "tensorflow",
        "OMP_NUM_THREADS": threads,
        "NUMBA_NUM_THREADS": threads,
    }
    if task.way != "tf-ps":
        # As for our ranks. TensorFlow's own servers hang with few of them.
        environment["TF_NUM_INTEROP_THREADS"] = str(threads_for(ranks) + 1)
    log = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
    popen = subprocess.Popen(
        [sys.executable, "-P", "-m", "trainer.bench.training_worker"],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        env=environment,
        start_new_session=True,
    )
    assert popen.stdin is not None
    with contextlib.suppress(BrokenPipeError), popen.stdin as stdin:
        stdin.write(json.dumps(asdict(task)).encode() + b"\n")
    return popen, log


def _addresses(count: int) -> list[str]:
    """Free addresses on loopback, for TensorFlow's servers, which cannot choose their own."""
    with contextlib.ExitStack() as stack:
        servers = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
        ]
        return [f"127.0.0.1:{server.getsockname()[1]}" for server in servers]


def gather(control: socket.socket, way: Way, failed: Callable[[], str]) -> None:
    """Wait until all processes of a way are warm; ToolError where one fails."""
    deadline = time.monotonic() + _READY_WITHIN_S
    control.settimeout(0.5)
    order: list[int] = []
    while len(way.streams) < way.expected:
        reason = failed()
        if reason or time.monotonic() > deadline:
            raise ToolError(f"{way.name}: {reason or f'not ready within {_READY_WITHIN_S:g} s'}")
        with contextlib.suppress(TimeoutError):
            sock, _ = control.accept()
            sock.settimeout(_TURN_WITHIN_S)
            stream = sock.makefile("rw", encoding="utf-8")
            sock.close()
            hello = json.loads(stream.readline())
            if hello["key"] == way.name:
                way.streams.append(stream)
                order.append(int(hello["rank"]))
                if way.name in SYNCS:
                    way.processes.append(psutil.Process(hello["pid"]))
    by_rank = sorted(range(len(order)), key=lambda number: order[number])
    way.streams = [way.streams[number] for number in by_rank]


def take_turn(setup: Setup, way: Way, steps: int) -> None:
    """Let a way train for some steps and add what it took; ToolError where one of ours fails."""
    before = _cpu_s(way)
    try:
        for stream in way.streams:
            stream.write(json.dumps({"steps": steps}) + "\n")
            stream.flush()
        answers = [json.loads(stream.readline()) for stream in way.streams]
    except (OSError, ValueError) as error:
        way.failure = f"failed while it was measured: {error}"
        if way.name not in PEERS:
            raise ToolError(f"{way.name} {way.failure}") from error
        return
    images = setup.batch_size * steps
    if way.name == "tf-ps":
        rate = images * setup.ranks / answers[0]["spent_s"]
    else:
        rate = sum(images / answer["spent_s"] for answer in answers)
    way.images_per_s.append(rate)
    if way.expected == setup.ranks:
        slowest_s = [max(each) for each in zip(*(a["seconds"] for a in answers), strict=True)]
        way.lockstep.append(images * setup.ranks / sum(slowest_s) / rate)
    way.step_s += [second for answer in answers for second in answer["seconds"]]
    way.waited_s += [answer["waited_s"] / steps for answer in answers]
    way.cpu_s.append((_cpu_s(way) - before) / steps / setup.ranks)
    way.loss = answers[0]["loss"]


def _cpu_s(way: Way) -> float:
    """Processor time that the way's processes have used so far."""
    times = [process.cpu_times() for process in way.processes if process.is_running()]
    return sum(float(time.user + time.system) for time in times)
