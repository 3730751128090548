"""Allreduce of ours and of peers, alternately in one run, as ``paisoar bench allreduce`` shows.

busbw is what a link of a ring has to carry: bytes / seconds * 2(n-1)/n (NVIDIA,
nccl-tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import secrets
import selectors
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from fabric.errors import InputError, ToolError
from trainer.bench.contenders import (
    LIMITS,
    PEERS,
    TRANSPORTS,
    absent,
    contender,
    environment,
)
from trainer.bench.teams import Line, Team, end
from trainer.collective.rendezvous import Rendezvous
from trainer.collective.wire import new_token

ROUNDS = 7
# After this many seconds a contender has no more turns at a size, but for the first few.
_ENOUGH_S, _FEWEST_TURNS = 5.0, 3
# One contender's turn at one size.
TURN_S = 0.06
_MAX_COUNT, _MIN_COUNT = 300, 2
_SHIFTS = {"": 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30}
_START_WITHIN_S = 120.0
_SHARED = Path("/dev/shm")  # noqa: S108 - only for a folder of our own


@dataclass(frozen=True)
class Row:
    """One transport at one size. ``ratio`` is how many times as fast as each peer we are.

    ``ratio["limit"]`` is the part of what the machine can do (see
    :mod:`trainer.bench.workers.limits`) that we reach. ``peers_us`` are the
    peers' and the limit's own latencies.
    """

    transport: str
    ranks: int
    bytes: int
    latency_us: float
    busbw_GBps: float  # noqa: N815 (the unit's own spelling)
    ratio: dict[str, float]
    peers_us: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Comparison:
    """All rows, and for each peer that did not take part the reason."""

    rows: tuple[Row, ...]
    absent: dict[str, str]


def busbw_gbps(nbytes: int, seconds: float, ranks: int) -> float:
    """Bus bandwidth in GB/s (10**9 bytes)."""
    return nbytes / seconds * 2 * (ranks - 1) / ranks / 1e9


def parse_sizes(text: str) -> tuple[int, ...]:
    """Sizes in bytes: ``4KiB,1MiB``, or ``4KiB:256MiB`` for every fourfold from one to the other.

    InputError for what is no such list.
    """
    sizes: list[int] = []
    for part in text.split(","):
        first, colon, last = part.partition(":")
        size, end = _parse_size(first), _parse_size(last if colon else first)
        if size > end:
            raise InputError(f"{part!r} ends before it begins", key="sizes")
        while size < end:
            sizes.append(size)
            size *= 4
        sizes.append(end)
    return tuple(dict.fromkeys(sizes))


def _parse_size(text: str) -> int:
    match = re.fullmatch(r"(\d+)\s*(|B|KiB|MiB|GiB)", text.strip())
    if match is None:
        raise InputError(
            f"{text!r} is no size", key="sizes", advice="Write 4096, 4KiB, 1MiB, or 4KiB:256MiB."
        )
    return int(match[1]) << _SHIFTS[match[2]]


def check_names(kind: str, names: Sequence[str], known: Sequence[str]) -> None:
    """InputError for a name that is not known."""
    for name in names:
        if name not in known:
            raise InputError(
                f"{name!r} is not known", key=kind, advice=f"Choose of: {', '.join(known)}."
            )


def compare(
    ranks: Sequence[int],
    sizes: Sequence[int],
    transports: Sequence[str],
    against: Sequence[str],
    *,
    rounds: int = ROUNDS,
    on_step: Callable[[str, int, int], None] = lambda _word, _done, _total: None,
) -> Comparison:
    """Measure medians of ``rounds`` turns at every size in bytes.

    ``on_step`` gets a word, the turns done and all turns. InputError for what
    cannot be measured; ToolError where one of ours does not start. A peer that
    is not there, or fails, is named in ``absent``.
    """
    check_names("transport", transports, TRANSPORTS)
    check_names("against", against, PEERS)
    for count in ranks:
        if not 2 <= count <= 64:
            raise InputError(f"{count} ranks cannot be compared", key="ranks", advice="2 to 64.")
    for size in sizes:
        if size < 4 or size % 4:
            raise InputError(f"{size} bytes are no whole float32s", key="sizes")
    missing = {peer: reason for peer in against if (reason := absent(peer))}
    total = len(ranks) * len(sizes) * rounds
    rows: list[Row] = []
    for number, count in enumerate(ranks):
        names = [*transports, *(LIMITS[name] for name in transports)]
        names += [peer for peer in against if peer not in missing]
        on_step(f"starting {count} ranks of {', '.join(names)}", len(rows), total)
        with _Field(names, count, missing) as contest:
            for place, size in enumerate(sizes):
                done = (number * len(sizes) + place) * rounds
                tell = functools.partial(
                    _tell_turn, on_step, f"{count} ranks, {size} bytes", done, total
                )
                medians = contest.measure(size, rounds, tell)
                rows += [_row(name, count, size, medians, against) for name in transports]
    return Comparison(tuple(rows), missing)


def _tell_turn(
    on_step: Callable[[str, int, int], None], word: str, before: int, total: int, turn: int
) -> None:
    on_step(word, before + turn, total)


def _row(
    transport: str, ranks: int, size: int, medians: dict[str, float], against: Sequence[str]
) -> Row:
    ours = medians[transport]
    others = {peer: medians[peer] for peer in against if peer in medians}
    others["limit"] = medians[LIMITS[transport]]
    return Row(
        transport,
        ranks,
        size,
        ours * 1e6,
        busbw_gbps(size, ours, ranks),
        {name: seconds / ours for name, seconds in others.items()},
        {name: seconds * 1e6 for name, seconds in others.items()},
    )


class _Field:
    """All contenders with the same number of ranks; use it as a context manager."""

    def __init__(self, names: Sequence[str], ranks: int, missing: dict[str, str]) -> None:
        self._names = names
        self._ranks = ranks
        self._missing = missing
        self._teams: list[Team] = []
        self._started: list[Team] = []
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> _Field:
        with contextlib.ExitStack() as stack:
            # In memory where that can be: peers keep shared memory in it.
            memory = _SHARED if os.access(_SHARED, os.W_OK) else None
            folder = Path(
                stack.enter_context(
                    tempfile.TemporaryDirectory(prefix="paisoar-bench-", dir=memory)
                )
            )
            token = new_token()
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=256))
            address = listener.getsockname()[:2]
            env = environment((str(address[0]), int(address[1])), token)
            # Ours join a job of their own each.
            jobs = {
                name: stack.enter_context(
                    Rendezvous(self._ranks, token, join_within_s=2 * _START_WITHIN_S)
                ).address
                for name in self._names
                if name in TRANSPORTS
            }
            stack.push(self._end)
            for name in self._names:
                who = contender(name, self._ranks, jobs.get(name, ("", 0)), folder)
                team = Team(who, folder / f"{name}.log")
                self._started.append(team)
                self._teams.append(team)
                team.start(env)
                # One after another: twenty imports at once would time out.
                self._admit(team, listener, token)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _end(self, kind: type[BaseException] | None, *_: object) -> None:
        end(self._started, at_once=kind is not None)

    def measure(self, nbytes: int, rounds: int, on_turn: Callable[[int], None]) -> dict[str, float]:
        """Seconds of each contender: the median over its turns."""
        counts: dict[str, int] = {}
        seconds: dict[str, list[float]] = {}
        spent: dict[str, float] = {}
        for turn in range(rounds):
            on_turn(turn)
            for team in list(self._teams):
                if turn >= _FEWEST_TURNS and spent.get(team.name, 0.0) > _ENOUGH_S:
                    continue
                began = time.monotonic()
                with self._excusing(team):
                    if turn == 0:
                        once = team.run(nbytes, _MIN_COUNT)
                        counts[team.name] = max(
                            _MIN_COUNT, min(_MAX_COUNT, int(TURN_S / max(once, 1e-9)))
                        )
                    seconds.setdefault(team.name, []).append(team.run(nbytes, counts[team.name]))
                spent[team.name] = spent.get(team.name, 0.0) + time.monotonic() - began
        return {name: statistics.median(values) for name, values in seconds.items()}

    def _admit(self, team: Team, listener: socket.socket, token: str) -> None:
        with self._excusing(team):
            deadline = time.monotonic() + _START_WITHIN_S
            selector = selectors.DefaultSelector()
            selector.register(listener, selectors.EVENT_READ)
            while len(team.ranks) < self._ranks:
                if team.ended() or time.monotonic() > deadline:
                    raise ToolError(f"{team.name} did not start: {team.said()}")
                if not selector.select(0.2):
                    continue
                sock, _ = listener.accept()
                line = Line(sock)
                try:
                    hello = line.hear(5.0)
                except (ToolError, ValueError):
                    line.close()
                    continue
                known = secrets.compare_digest(str(hello.get("token", "")), token)
                if known and hello["name"] == team.name:
                    team.ranks[int(hello["rank"])] = line
                else:
                    line.close()
            for line in team.ranks.values():
                line.hear(max(1.0, deadline - time.monotonic()))

    @contextlib.contextmanager
    def _excusing(self, team: Team) -> Iterator[None]:
        """Go on without a peer that fails; what is ours must not."""
        try:
            yield
        except ToolError as error:
            if team.name not in PEERS:
                raise ToolError(
                    f"{team.name} with {self._ranks} ranks failed: {error.message}"
                ) from error
            self._missing[team.name] = f"failed with {self._ranks} ranks: {error.message}"
            self._teams.remove(team)
