"""How fast we train, our parameter server and TensorFlow's own ways beside us, in one run.

For each model and number of ranks every way of training is started and warmed
up, then all take turns, some steps each, in an order that changes from round
to round; what is compared was measured within seconds of each other. Base is
``single``: as many independent processes, at the same time on the same cores,
with the same share of threads. Figures are medians over the rounds.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import IO, Any

import psutil

from fabric.errors import InputError, PaisoarError, ToolError
from trainer.bench.teams import uninterrupted
from trainer.bench.training_worker import Task
from trainer.collective.communicator import TransportName
from trainer.launch import NOT_NEEDED
from trainer.spec import MODELS, SYNCS
from trainer.supervise import run_ranks, threads_for

PEERS = ("tf-ring", "tf-ps")
# Sizes at which a step of the large models lasts one to two seconds on one core, and at which
# all ways of training the largest, on two ranks, live at once in 18 GB of memory.
SIZES: dict[str, tuple[int, int]] = {
    "greennet": (32, 64),
    "alexnet": (96, 32),
    "inception_v3": (96, 32),
    "resnet50": (64, 16),
    "resnet152": (64, 16),
    "vgg16": (48, 32),
}
CLASSES = 10
_READY_WITHIN_S = 400.0
_TURN_WITHIN_S = 300.0


@dataclass(frozen=True)
class BenchRow:
    """One way of training one model.

    ``cpu_ms`` is the processor time of a step and rank, servers included: on a
    machine that is busy with other work it tells more than the clock does.
    ``exposed_comm_ms`` is the time a step in which TensorFlow only waited for
    communication (None: not to be seen from outside). ``efficiency`` is against
    independent processes in the same rounds. ``ratio`` is our images/s over
    each peer's; ``absent`` says why a peer has none.
    """

    model: str
    ranks: int
    sync: str
    transport: str
    images_per_s: float
    step_ms: float
    cpu_ms: float
    exposed_comm_ms: float | None
    efficiency: float | None
    uncertainty: float
    jitter: float
    loss: float
    ratio: dict[str, float] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)


@dataclass
class _Way:
    """A way of training that is alive: its connections, and what was measured so far."""

    name: str
    expected: int
    streams: list[Any] = field(default_factory=list)
    processes: list[psutil.Process] = field(default_factory=list)
    images_per_s: list[float] = field(default_factory=list)
    step_s: list[float] = field(default_factory=list)
    waited_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    loss: float = 0.0
    failure: str = ""
    broken_off: threading.Event = field(default_factory=threading.Event)


def bench_train(
    models: Sequence[str],
    ranks: Sequence[int],
    *,
    syncs: Sequence[str] = ("ring",),
    against: Sequence[str] = (),
    transport: TransportName = "auto",
    rounds: int = 5,
    steps: int = 3,
    batch_size: int = 0,
    image_size: int = 0,
    on_step: Callable[[str, int, int], None] | None = None,
    on_line: Callable[[str], None] | None = None,
) -> list[BenchRow]:
    """Measure; one row a model, number of ranks and way. InputError for unknown names.

    ``on_line`` gets the lines that tf_cnn_benchmarks would print. A peer that
    cannot be started is named in its rows as absent, with the reason.
    """
    for key, names, known in (
        ("models", models, tuple(MODELS)),
        ("sync", syncs, SYNCS),
        ("against", against, PEERS),
    ):
        for name in names:
            if name not in known:
                raise InputError(
                    f"{name!r} is not known", key=key, advice=f"Choose of: {', '.join(known)}."
                )
    rows: list[BenchRow] = []
    pairs = [(model, count) for model in models for count in ranks]
    for number, (model, count) in enumerate(pairs):

        def tell(doing: str, model: str = model, count: int = count, number: int = number) -> None:
            if on_step:
                on_step(f"{model}, {count} ranks: {doing}", number, len(pairs))

        side, batch = SIZES[model]
        setup = _Setup(model, count, image_size or side, batch_size or batch, transport)
        names = ["single", *syncs, *(against if count > 1 else ())]
        rows += _measure(setup, names, rounds, steps, on_line or (lambda _line: None), tell)
    return rows


@dataclass(frozen=True)
class _Setup:
    model: str
    ranks: int
    image_size: int
    batch_size: int
    transport: TransportName

    def task(self, way: str, control: tuple[str, int], rank: int = 0, **more: Any) -> Task:  # noqa: ANN401
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


def _measure(
    setup: _Setup,
    names: Sequence[str],
    rounds: int,
    steps: int,
    say: Callable[[str], None],
    tell: Callable[[str], None],
) -> list[BenchRow]:
    ways: dict[str, _Way] = {}
    transports: dict[str, str] = {}
    with contextlib.ExitStack() as stack, _breaking_off(ways):
        control = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
        for name in names:
            way = _Way(name, 1 if name == "tf-ps" else setup.ranks)
            ways[name] = way
            tell(f"starting {name}")
            try:
                if name in PEERS:
                    _find_room(setup, way, ways["single"])
                alive = stack.enter_context(_started(setup, way, control.getsockname()[:2]))
                # Before the way's own end: its processes stay until nobody can tell them more.
                stack.callback(_hang_up, control, way)
                _gather(control, way, alive)
            except (PaisoarError, OSError) as error:
                if name not in PEERS:
                    raise
                way.failure = str(error)
        running = [way for way in ways.values() if not way.failure]
        for turn in range(rounds):
            tell(f"round {turn + 1} of {rounds}")
            for way in running[turn % len(running) :] + running[: turn % len(running)]:
                if not way.failure:
                    _take_turn(setup, way, steps)
        transports = {way.name: _transport(setup, way.name) for way in running}
    rows = [_row(setup, way, ways, transports.get(way.name, "")) for way in ways.values()]
    for way, row in zip(ways.values(), rows, strict=True):
        if not way.failure:
            _print_lines(say, setup, way, row, steps)
    return rows


@contextlib.contextmanager
def _breaking_off(ways: dict[str, _Way]) -> Iterator[None]:
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


def _find_room(setup: _Setup, way: _Way, single: _Way) -> None:
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


def _hang_up(control: socket.socket, way: _Way) -> None:
    control.close()
    for stream in way.streams:
        with contextlib.suppress(OSError):
            stream.close()


def _transport(setup: _Setup, name: str) -> str:
    if name == "single" or setup.ranks == 1:
        return "none"
    if name in PEERS:
        return "grpc"
    return "shm" if setup.transport == "auto" else setup.transport


@contextlib.contextmanager
def _started(setup: _Setup, way: _Way, control: tuple[str, int]) -> Iterator[Callable[[], str]]:
    """Start a way's processes; the value says why they have failed, or nothing."""
    if way.name in SYNCS:
        yield from _ours(setup, way, control)
    else:
        yield from _separate(setup, way, control)


def _ours(setup: _Setup, way: _Way, control: tuple[str, int]) -> Iterator[Callable[[], str]]:
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


def _separate(setup: _Setup, way: _Way, control: tuple[str, int]) -> Iterator[Callable[[], str]]:
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


def _gather(control: socket.socket, way: _Way, failed: Callable[[], str]) -> None:
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


def _take_turn(setup: _Setup, way: _Way, steps: int) -> None:
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
    way.step_s += [second for answer in answers for second in answer["seconds"]]
    way.waited_s += [answer["waited_s"] / steps for answer in answers]
    way.cpu_s.append((_cpu_s(way) - before) / steps / setup.ranks)
    way.loss = answers[0]["loss"]


def _cpu_s(way: _Way) -> float:
    """Processor time that the way's processes have used so far."""
    times = [process.cpu_times() for process in way.processes if process.is_running()]
    return sum(float(time.user + time.system) for time in times)


def _row(setup: _Setup, way: _Way, ways: dict[str, _Way], transport: str) -> BenchRow:
    if way.failure:
        return BenchRow(
            setup.model, setup.ranks, way.name, "grpc", 0.0, 0.0, 0.0, None, None, 0.0, 0.0, 0.0,
            absent={way.name: way.failure},
        )  # fmt: skip
    median = statistics.median(way.images_per_s)
    spread = statistics.stdev(way.images_per_s) if len(way.images_per_s) > 1 else 0.0
    jitter = 1.4826 * statistics.median(abs(rate - median) for rate in way.images_per_s)
    ours = way.name in SYNCS
    return BenchRow(
        model=setup.model,
        ranks=setup.ranks,
        sync=way.name,
        transport=transport,
        images_per_s=median,
        step_ms=1e3 * statistics.median(way.step_s),
        cpu_ms=1e3 * statistics.median(way.cpu_s),
        exposed_comm_ms=1e3 * statistics.median(way.waited_s) if ours else None,
        efficiency=_against(way, ways["single"]),
        uncertainty=spread / len(way.images_per_s) ** 0.5,
        jitter=jitter,
        loss=way.loss,
        ratio={
            name: _against(way, peer)
            for name, peer in ways.items()
            if ours and name in PEERS and not peer.failure
        },
        absent={
            name: peer.failure
            for name, peer in ways.items()
            if ours and name in PEERS and peer.failure
        },
    )


def _against(way: _Way, other: _Way) -> float:
    """The median over the rounds of one's speed over the other's in the same round."""
    pairs = zip(way.images_per_s, other.images_per_s, strict=False)
    return statistics.median(mine / theirs for mine, theirs in pairs)


def _print_lines(
    say: Callable[[str], None], setup: _Setup, way: _Way, row: BenchRow, steps: int
) -> None:
    """The lines of tf_cnn_benchmarks' output, one a round."""
    say(f"{setup.model}, {setup.ranks} ranks, {way.name}: batch {setup.batch_size} a rank")
    say("Step\tImg/sec\ttotal_loss")
    for number, rate in enumerate(way.images_per_s, start=1):
        say(
            f"{number * steps}\timages/sec: {rate:.1f} +/- {row.uncertainty:.1f} "
            f"(jitter = {row.jitter:.1f})\t{row.loss:.3f}"
        )
    say(f"total images/sec: {row.images_per_s:.2f}")
