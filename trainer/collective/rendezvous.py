"""Where the ranks of a job meet, and where it is noticed that one has failed.

A :class:`Rendezvous` runs in the launcher, on loopback unless told otherwise.
Each rank keeps one connection to it for the whole job: it gathers what ranks
must know of each other, takes their heartbeats, and tells all ranks at once
when one is lost: a process that ends closes its connection, one that is
stopped falls silent, one that hangs makes the others report it as overdue.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fabric.errors import InputError
from trainer.collective.errors import Failure, RankId
from trainer.collective.wire import LineReader, Message, encode, new_nonce, prove, proves

PROTOCOL = 3
_TICK_S = 0.1
_HELLO_WITHIN_S = 5.0


@dataclass(frozen=True)
class SlowRank:
    """A rank that keeps the others waiting, and has not failed."""

    who: RankId
    doing: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.who} keeps the others waiting for {self.seconds:.1f} s, at {self.doing}"


@dataclass
class _Connection:
    sock: socket.socket
    nonce: str
    since: float
    reader: LineReader = field(default_factory=LineReader)
    outgoing: bytearray = field(default_factory=bytearray)
    rank: int | None = None


@dataclass
class _Member:
    who: RankId
    connection: _Connection
    versions: dict[str, str]
    heard: float
    grace_s: float = 0.0
    sequence: int = 0
    doing: str = "starting"
    waiting_s: float = 0.0
    left: bool = False


class Rendezvous:
    """The meeting point of one job; use it as a context manager.

    ``on_event(rank, value)`` gets what ranks send with ``send_event``;
    ``on_slow`` gets ranks that hold up the others for ``slow_after_s``;
    ``explain(rank)`` may say why a rank's connection closed (its exit status).
    All three are called in the rendezvous' own thread.
    """

    def __init__(
        self,
        size: int,
        token: str,
        *,
        on_event: Callable[[int, Any], None] | None = None,
        on_slow: Callable[[SlowRank], None] | None = None,
        explain: Callable[[int], str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        join_within_s: float = 60.0,
        silent_after_s: float = 15.0,
        slow_after_s: float = 2.0,
    ) -> None:
        self.size = size
        self.results: dict[int, Any] = {}
        self.reports: dict[int, str] = {}
        self._token = token
        self._on_event = on_event
        self._on_slow = on_slow
        self._explain = explain
        self._join_within_s = join_within_s
        self._silent_after_s = silent_after_s
        self._slow_after_s = slow_after_s
        self._failure: Failure | None = None
        self._kind = self._advice = ""
        self._members: dict[int, _Member] = {}
        self._gathering: dict[tuple[str, tuple[int, ...]], dict[int, Any]] = {}
        self._reported_slow: set[tuple[int, int]] = set()
        self._lock = threading.RLock()
        self._stopping = threading.Event()
        self._began = time.monotonic()
        try:
            self._listener = socket.create_server((host, port), backlog=max(size, 16))
        except OSError as error:
            raise InputError(
                f"the ranks cannot meet at {host}:{port}: {error.strerror or error}",
                key="MASTER_ADDR, MASTER_PORT" if port else "",
                advice="The address must be one of rank 0's host, and the port free there.",
            ) from error
        self._listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="rendezvous", daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port where ranks join."""
        host, port = self._listener.getsockname()[:2]
        return host, port

    @property
    def failure(self) -> Failure | None:
        """The first failure of the job, if any."""
        return self._failure

    @property
    def failure_kind(self) -> str:
        """The class of the first failure, as it is raised on every rank."""
        return self._kind

    @property
    def failure_advice(self) -> str:
        """What the rank that reported the first failure advises; empty: nothing of its own."""
        return self._advice

    def who(self, rank: int) -> RankId | None:
        """Where a rank runs; None while it has not joined."""
        member = self._members.get(rank)
        return member.who if member else None

    def __enter__(self) -> Rendezvous:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()

    def abort(
        self,
        rank: int | None,
        cause: str,
        *,
        kind: str = "",
        advice: str = "",
        seconds: float = 0.0,
    ) -> None:
        """Tell every rank that the job has failed because of ``rank``; the first call counts."""
        with self._lock:
            if self._failure is not None:
                return
            member = self._members.get(rank) if rank is not None else None
            culprit = member.who if member else None
            if culprit is None and rank is not None:
                cause = f"rank {rank} {cause}"
            doing = member.doing if member else ""
            waiting_s = [m.waiting_s for m in self._members.values() if m is not member]
            seconds = seconds or max(waiting_s, default=0.0)
            if member and not seconds:
                seconds = time.monotonic() - member.heard
            self._failure = Failure(culprit, cause, doing, seconds)
            self._kind, self._advice = kind, advice
            message = self._abort_message()
            for member in self._members.values():
                if not member.left:
                    self._send(member.connection, message)

    # -- the serving thread ------------------------------------------------

    def _serve(self) -> None:
        while not self._stopping.is_set():
            for key, events in self._selector.select(_TICK_S):
                if key.fileobj is self._listener:
                    self._accept()
                    continue
                connection: _Connection = key.data
                if events & selectors.EVENT_WRITE:
                    self._flush(connection)
                if events & selectors.EVENT_READ:
                    self._read(connection)
            self._watch()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            sock, _ = self._listener.accept()
            sock.setblocking(False)
            connection = _Connection(sock, new_nonce(), time.monotonic())
            self._selector.register(sock, selectors.EVENT_READ, connection)
            self._send(connection, {"t": "challenge", "nonce": connection.nonce})

    def _read(self, connection: _Connection) -> None:
        try:
            data = connection.sock.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._closed(connection)
            return
        try:
            for message in connection.reader.feed(data):
                if connection.rank is None:
                    self._hello(connection, message)
                else:
                    self._handle(self._members[connection.rank], message)
        except (ValueError, KeyError, TypeError) as error:
            # A stranger, or a rank of another version: it has no place here.
            self._closed(connection, f"sent a message that is not understood ({error!r})")

    def _hello(self, connection: _Connection, message: Message) -> None:
        rank, size = int(message["rank"]), int(message["size"])
        purpose = f"hello {connection.nonce} {rank} {size}".encode()
        if not proves(self._token, purpose, bytes.fromhex(message["proof"])):
            self._refuse(connection, "it does not know this job's token")
            return
        versions = {str(k): str(v) for k, v in message["versions"].items()}
        who = RankId(rank, str(message["host"]), int(message["pid"]))
        problem = self._cannot_join(rank, size, versions)
        if problem:
            self._refuse(connection, problem)
            if rank not in self._members:
                self.abort(None, f"{who} was refused: {problem}", kind="MismatchError")
            return
        connection.rank = rank
        with self._lock:
            self._members[rank] = _Member(who, connection, versions, time.monotonic())
        answer = prove(self._token, f"welcome {message['nonce']}".encode()).hex()
        self._send(connection, {"t": "welcome", "proof": answer})
        if self._failure:
            self._send(connection, self._abort_message())

    def _cannot_join(self, rank: int, size: int, versions: dict[str, str]) -> str:
        if size != self.size or not 0 <= rank < self.size:
            return f"it calls itself rank {rank} of {size}, this job has {self.size} ranks"
        if rank in self._members:
            return f"there is a rank {rank} already: {self._members[rank].who}"
        for member in self._members.values():
            differing = [
                f"{name} {versions.get(name, 'absent')} (rank {member.who.rank}: {theirs})"
                for name, theirs in member.versions.items()
                if versions.get(name, "absent") != theirs
            ]
            if differing:
                return f"it has {', '.join(differing)}"
            break
        return ""

    def _handle(self, member: _Member, message: Message) -> None:
        member.heard = time.monotonic()
        rank = member.who.rank
        match message["t"]:
            case "beat":
                member.sequence = int(message["sequence"])
                member.doing = str(message["doing"])
                member.waiting_s = float(message["waiting_s"])
                member.grace_s = float(message["grace_s"])
            case "gather":
                ranks = tuple(int(other) for other in message["ranks"])
                self._gather(rank, str(message["topic"]), message["value"], ranks)
            case "event":
                if self._on_event:
                    self._on_event(rank, message["value"])
            case "result":
                self.results[rank] = message["value"]
            case "overdue":
                self._overdue(member, int(message["peer"]), float(message["waited_s"]))
            case "lost":
                self.abort(
                    int(message["peer"]), str(message["cause"]), seconds=float(message["seconds"])
                )
            case "failed":
                self._failed(member, message)
            case "bye":
                member.left = True

    def _gather(
        self,
        rank: int,
        topic: str,
        value: Any,  # noqa: ANN401 (any JSON)
        ranks: tuple[int, ...],
    ) -> None:
        values = self._gathering.setdefault((topic, ranks), {})
        values[rank] = value
        if all(other in values for other in ranks):
            del self._gathering[topic, ranks]
            answer = {
                "t": "gathered",
                "topic": topic,
                "values": [values[other] for other in ranks],
            }
            for other in ranks:
                self._send(self._members[other].connection, answer)

    def _overdue(self, waiter: _Member, peer: int, waited_s: float) -> None:
        """Blame who is furthest behind; the waiter only knows its neighbour."""
        absent = {
            rank
            for (_, ranks), values in self._gathering.items()
            if waiter.who.rank in values
            for rank in ranks
            if rank not in values
        }
        behind = min(
            (rank for rank in range(self.size) if rank != waiter.who.rank),
            key=lambda rank: (
                rank not in absent,
                self._members[rank].sequence if rank in self._members else -1,
                rank != peer,
            ),
        )
        self.abort(behind, "did not come", seconds=waited_s)

    def _failed(self, member: _Member, message: Message) -> None:
        self.reports[member.who.rank] = str(message["report"])
        member.left = True
        blamed = message.get("blamed")
        if message["kind"] in {"MismatchError", "WeightsDifferError"}:
            self.abort(
                None,
                str(message["cause"]),
                kind=str(message["kind"]),
                advice=str(message["advice"]),
            )
        elif blamed is None:
            self.abort(
                member.who.rank,
                f"failed: {message['cause']}",
                kind=str(message["kind"]),
                advice=str(message["advice"]),
            )
        else:
            self.abort(int(blamed) if int(blamed) >= 0 else None, str(message["cause"]))

    def _closed(self, connection: _Connection, cause: str = "") -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(connection.sock)
        connection.sock.close()
        rank = connection.rank
        if rank is None or self._members[rank].left:
            return
        self._members[rank].left = True
        if not cause and self._explain and self._failure is None:
            cause = self._explain(rank)
        self.abort(rank, cause or "ended: its connection closed")

    def _refuse(self, connection: _Connection, reason: str) -> None:
        self._send(connection, {"t": "refused", "reason": reason})
        self._closed(connection)

    def _watch(self) -> None:
        now = time.monotonic()
        for key in list(self._selector.get_map().values()):
            connection = key.data
            if (
                connection is not None
                and connection.rank is None
                and now - connection.since > _HELLO_WITHIN_S
            ):
                self._closed(connection)
        if self._failure is not None:
            return
        missing = [rank for rank in range(self.size) if rank not in self._members]
        if missing and now - self._began > self._join_within_s:
            self.abort(missing[0], "has not joined", seconds=now - self._began)
        for rank, member in self._members.items():
            silent_s = now - member.heard
            if not member.left and silent_s > max(self._silent_after_s, member.grace_s):
                self.abort(
                    rank, "has fallen silent (stopped, or its machine is lost)", seconds=silent_s
                )
        self._watch_slow()

    def _watch_slow(self) -> None:
        members = self._members.values()
        waiting_s = max((member.waiting_s for member in members), default=0.0)
        if self._on_slow is None or waiting_s < self._slow_after_s:
            return
        ahead = max(member.sequence for member in members)
        for member in members:
            key = (member.who.rank, ahead)
            if member.sequence < ahead and not member.waiting_s and key not in self._reported_slow:
                self._reported_slow.add(key)
                self._on_slow(SlowRank(member.who, member.doing, waiting_s))

    def _abort_message(self) -> Message:
        assert self._failure is not None
        failure = self._failure
        who = failure.culprit
        return {
            "t": "abort",
            "kind": self._kind,
            "advice": self._advice,
            "culprit": [who.rank, who.host, who.pid] if who else None,
            "cause": failure.cause,
            "at": failure.at,
            "seconds": failure.seconds,
        }

    def _send(self, connection: _Connection, message: Message) -> None:
        with self._lock:
            connection.outgoing += encode(message)
            self._flush(connection)

    def _flush(self, connection: _Connection) -> None:
        with self._lock, contextlib.suppress(OSError, KeyError, ValueError):
            with contextlib.suppress(BlockingIOError):
                while connection.outgoing:
                    del connection.outgoing[: connection.sock.send(connection.outgoing)]
            events = selectors.EVENT_READ
            if connection.outgoing:
                events |= selectors.EVENT_WRITE
            self._selector.modify(connection.sock, events, connection)


def check_size(ranks: int) -> None:
    """InputError unless ``ranks`` is a possible number of ranks."""
    if not 1 <= ranks <= 65535:
        raise InputError(
            f"{ranks} ranks are not possible", key="ranks", advice="Ask for 1 to 65535 ranks."
        )
