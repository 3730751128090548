"""Allreduce of ours and of peers, alternately in one run, as ``paisoar bench allreduce`` shows.

busbw is what a link of a ring has to carry: bytes / seconds * 2(n-1)/n (NVIDIA,
nccl-tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import secrets
import selectors
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fabric.errors import InputError, ToolError
from trainer.bench.contenders import (
    LIMITS,
    PEERS,
    TRANSPORTS,
    Contender,
    absent,
    contender,
    environment,
)
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
_TURN_WITHIN_S = 120.0


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


class _Team:
    """The processes of one contender, and the connections to its ranks."""

    def __init__(self, who: Contender, env: dict[str, str], folder: Path) -> None:
        self.name = who.name
        self.ranks: dict[int, _Line] = {}
        self._log = (folder / f"{who.name}.log").open("w+b")
        self._processes = [
            subprocess.Popen(
                command,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            for command in who.commands
        ]

    def ended(self) -> bool:
        """Whether a process has ended, which none does by itself."""
        return any(process.poll() is not None for process in self._processes)

    def run(self, nbytes: int, count: int) -> float:
        """The median seconds of ``count`` allreduces, of the slowest rank."""
        for line in self.ranks.values():
            line.say({"bytes": nbytes, "count": count})
        answers = [line.hear(_TURN_WITHIN_S) for line in self.ranks.values()]
        return max(statistics.median(map(float, answer["seconds"])) for answer in answers)

    def said(self) -> str:
        """The last that its processes printed."""
        self._log.flush()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return " / ".join(lines[-3:])

    def close(self) -> None:
        """End its processes."""
        for line in self.ranks.values():
            line.close()
        deadline = time.monotonic() + 5.0
        for process in self._processes:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.terminate()
        for process in self._processes:
            try:
                process.wait(3.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._log.close()


class _Line:
    """Lines of JSON to and from one worker."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._file = sock.makefile("rw")

    def say(self, message: dict[str, Any]) -> None:
        try:
            self._file.write(json.dumps(message) + "\n")
            self._file.flush()
        except OSError as error:
            raise ToolError(f"a worker has gone ({error})") from error

    def hear(self, within_s: float) -> dict[str, Any]:
        self.sock.settimeout(within_s)
        try:
            line = self._file.readline()
        except OSError as error:
            raise ToolError(f"no answer within {within_s:.0f} s") from error
        if not line:
            raise ToolError("a worker has ended")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ToolError(str(answer["error"]))
        return answer

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        self.sock.close()


class _Field:
    """All contenders with the same number of ranks; use it as a context manager."""

    def __init__(self, names: Sequence[str], ranks: int, missing: dict[str, str]) -> None:
        self._names = names
        self._ranks = ranks
        self._missing = missing
        self._teams: list[_Team] = []
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> _Field:
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            token = new_token()
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=256))
            address = listener.getsockname()[:2]
            env = environment((str(address[0]), int(address[1])), token)
            for name in self._names:
                # Ours join a job of their own each.
                job = (
                    stack.enter_context(Rendezvous(self._ranks, token))
                    if (name in TRANSPORTS)
                    else None
                )
                meeting = job.address if job else ("", 0)
                team = _Team(contender(name, self._ranks, meeting, folder), env, folder)
                stack.callback(team.close)
                self._teams.append(team)
                # One after another: twenty imports at once would time out.
                self._admit(team, listener, token)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

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

    def _admit(self, team: _Team, listener: socket.socket, token: str) -> None:
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
                line = _Line(sock)
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
    def _excusing(self, team: _Team) -> Iterator[None]:
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
