"""How fast we train, our parameter server and TensorFlow's own ways beside us, in one run.

For each model and number of ranks every way of training is started and warmed
up, then all take turns, some steps each, in an order that changes from round
to round; what is compared was measured within seconds of each other. Base is
``single``: as many independent processes, at the same time on the same cores,
with the same share of threads. Figures are medians over the rounds.
"""

from __future__ import annotations

import contextlib
import socket
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fabric.errors import InputError, PaisoarError
from trainer.bench.ways import (
    PEERS,
    Setup,
    Way,
    breaking_off,
    find_room,
    gather,
    hang_up,
    started,
    take_turn,
)
from trainer.collective.communicator import TransportName
from trainer.spec import MODELS, SYNCS

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


@dataclass(frozen=True)
class BenchRow:
    """One way of training one model.

    ``cpu_ms`` is the processor time of a step and rank, servers included: on a
    machine that is busy with other work it tells more than the clock does.
    ``exposed_comm_ms`` is the time a step in which TensorFlow only waited for
    communication (None: not to be seen from outside). ``efficiency`` is against
    independent processes in the same rounds. ``lockstep`` (of those alone) is the
    efficiency that they would reach without any communication, did they wait for
    each other after each step, as synchronous training must. ``ratio`` is our
    images/s over each peer's; ``absent`` says why a peer has none.
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
    lockstep: float | None = None
    ratio: dict[str, float] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)


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
        setup = Setup(model, count, image_size or side, batch_size or batch, transport)
        names = ["single", *syncs, *(against if count > 1 else ())]
        rows += _measure(setup, names, rounds, steps, on_line or (lambda _line: None), tell)
    return rows


def _measure(
    setup: Setup,
    names: Sequence[str],
    rounds: int,
    steps: int,
    say: Callable[[str], None],
    tell: Callable[[str], None],
) -> list[BenchRow]:
    ways: dict[str, Way] = {}
    transports: dict[str, str] = {}
    with contextlib.ExitStack() as stack, breaking_off(ways):
        control = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
        for name in names:
            way = Way(name, 1 if name == "tf-ps" else setup.ranks)
            ways[name] = way
            tell(f"starting {name}")
            try:
                if name in PEERS:
                    find_room(setup, way, ways["single"])
                alive = stack.enter_context(started(setup, way, control.getsockname()[:2]))
                # Before the way's own end: its processes stay until nobody can tell them more.
                stack.callback(hang_up, control, way)
                gather(control, way, alive)
            except (PaisoarError, OSError) as error:
                if name not in PEERS:
                    raise
                way.failure = str(error)
        running = [way for way in ways.values() if not way.failure]
        for turn in range(rounds):
            tell(f"round {turn + 1} of {rounds}")
            for way in running[turn % len(running) :] + running[: turn % len(running)]:
                if not way.failure:
                    take_turn(setup, way, steps)
        transports = {way.name: _transport(setup, way.name) for way in running}
    rows = [_row(setup, way, ways, transports.get(way.name, "")) for way in ways.values()]
    for way, row in zip(ways.values(), rows, strict=True):
        if not way.failure:
            _print_lines(say, setup, way, row, steps)
    return rows


def _transport(setup: Setup, name: str) -> str:
    if name == "single" or setup.ranks == 1:
        return "none"
    if name in PEERS:
        return "grpc"
    return "shm" if setup.transport == "auto" else setup.transport


def _row(setup: Setup, way: Way, ways: dict[str, Way], transport: str) -> BenchRow:
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
        lockstep=statistics.median(way.lockstep) if way is ways["single"] else None,
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


def _against(way: Way, other: Way) -> float:
    """The median over the rounds of one's speed over the other's in the same round."""
    pairs = zip(way.images_per_s, other.images_per_s, strict=False)
    return statistics.median(mine / theirs for mine, theirs in pairs)


def _print_lines(
    say: Callable[[str], None], setup: Setup, way: Way, row: BenchRow, steps: int
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
