"""A rank's place in its job: who the others are, and whether they still live."""

from __future__ import annotations

import contextlib
import os
import platform
import select
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Any

from fabric.errors import PaisoarError, PeerError
from trainer.collective.errors import (
    Failure,
    LostPeerError,
    MismatchError,
    RankId,
    WeightsDifferError,
    in_short,
)
from trainer.collective.rendezvous import PROTOCOL
from trainer.collective.wire import LineReader, Message, encode, new_nonce, prove, proves

_BEAT_S = 0.2
# A rank that computes for longer after another was lost has its heartbeat name it.
_SPEAK_AFTER_S = 3.0
# How long to wait for the rendezvous' verdict before blaming a neighbour ourselves.
_VERDICT_S = 3.0
_COMPARED = ("numpy", "ml_dtypes", "tensorflow", "keras", "paisoar")


def own_versions() -> dict[str, str]:
    """What must be equal on all ranks, found without importing any of it."""
    versions = {
        "protocol": str(PROTOCOL),
        "python": platform.python_version(),
        "byteorder": sys.byteorder,
    }
    for name in _COMPARED:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


class Membership:
    """The connection of one rank to its job's rendezvous.

    Serves transports as their :class:`~trainer.collective.transport.Patience`:
    a wait ends with PeerError when the job has failed anywhere, or after
    ``patience_s``. Heartbeats are sent by a thread of its own.
    """

    def __init__(
        self,
        address: tuple[str, int],
        token: str,
        rank: int,
        size: int,
        *,
        patience_s: float = 60.0,
        versions: dict[str, str] | None = None,
    ) -> None:
        self.rank = rank
        self.size = size
        self.host = socket.gethostname()
        self.patience_s = patience_s
        self._token = token
        self._reader = LineReader()
        self._gathered: dict[str, list[Any]] = {}
        self._abort: Message | None = None
        self._told_at: float | None = None
        self._sequence = 0
        self._doing = "starting"
        self._waiting_s = 0.0
        self._grace_s = 0.0
        self._left = self._gone = False
        self._news = threading.Condition()
        self._send_lock = threading.Lock()
        self._sock = self._join(address, versions if versions is not None else own_versions())
        self._thread = threading.Thread(target=self._listen, name="membership", daemon=True)
        self._thread.start()

    def prove(self, purpose: bytes) -> bytes:
        """Proof, for another rank, that we belong to the job; 32 bytes."""
        return prove(self._token, purpose)

    def gather(
        self,
        topic: str,
        value: Any,  # noqa: ANN401 (any JSON)
        ranks: Sequence[int] = (),
    ) -> list[Any]:
        """What every rank says under ``topic``, by rank; all must call it in the same order.

        With ``ranks`` only these take part, and the answer is in their order.
        """
        ranks = tuple(ranks) or tuple(range(self.size))
        if len(ranks) < self.size:
            topic = f"{topic} of ranks {','.join(map(str, ranks))}"
        self._send({"t": "gather", "topic": topic, "value": value, "ranks": ranks})
        began = time.monotonic()
        with self._news:
            while topic not in self._gathered:
                self._news.wait(0.1)
                self.check((self.rank + 1) % self.size, time.monotonic() - began)
            self._waiting_s = 0.0
            return self._gathered.pop(topic)

    def enter(self, sequence: int, doing: str) -> None:
        """Say which collective we are in now; shown to the others should we not leave it."""
        self._sequence, self._doing, self._waiting_s = sequence, doing, 0.0

    def leave_collective(self) -> None:
        """Say that we compute again."""
        self._waiting_s = 0.0

    @contextlib.contextmanager
    def silence(self, seconds: float) -> Iterator[None]:
        """Announce that heartbeats may stop, e.g. while a large library is being loaded."""
        self._grace_s = seconds
        self._beat()
        try:
            yield
        finally:
            self._grace_s = 0.0
            self._beat()

    def send_event(self, value: Any) -> None:  # noqa: ANN401 (any JSON)
        """Send progress to the launcher."""
        self._send({"t": "event", "value": value})

    def send_result(self, value: Any) -> None:  # noqa: ANN401 (any JSON)
        """Send this rank's result to the launcher."""
        self._send({"t": "result", "value": value})

    def fail(self, error: BaseException) -> bool:
        """Tell the launcher and all ranks that this rank ends with ``error``, and leave.

        False where they cannot be told.
        """
        try:
            self._send(self._last_message(error))
            told = not self._gone
        except PeerError:
            told = False
        self._close()
        return told

    @staticmethod
    def _last_message(error: BaseException) -> Message:
        named = in_short(error)
        message: Message = {
            "t": "failed",
            "kind": type(error).__name__,
            "cause": error.message if isinstance(error, PaisoarError) else named,
            "report": str(error) if isinstance(error, PaisoarError) else named,
            "advice": error.advice if isinstance(error, PaisoarError) else "",
        }
        if isinstance(error, LostPeerError):
            culprit = error.failure.culprit
            message["blamed"] = culprit.rank if culprit else -1
            message["cause"] = error.failure.cause
        return message

    def leave(self) -> None:
        """Say goodbye: from now on our silence is no failure."""
        if not self._left:
            with contextlib.suppress(PeerError):
                self._send({"t": "bye"})
            self._close()

    def check(self, peer: int, waited_s: float) -> None:
        """See :class:`~trainer.collective.transport.Patience`."""
        self._waiting_s = waited_s
        self.raise_if_failed()
        if waited_s > self.patience_s:
            self._send({"t": "overdue", "peer": peer, "waited_s": waited_s})
            raise self.lost(peer, "did not come", seconds=waited_s)

    def lost(self, peer: int, cause: str, *, seconds: float = 0.0) -> PeerError:
        """See :class:`~trainer.collective.transport.Patience`."""
        # The neighbour may have gone only because another rank had failed before.
        deadline = time.monotonic() + _VERDICT_S
        with self._news:
            while self._abort is None and time.monotonic() < deadline:
                self._news.wait(0.1)
            if self._abort is None:
                # Nobody knows better. Others blame somebody else, perhaps, at the same
                # time: the rendezvous takes one verdict for all.
                with contextlib.suppress(PeerError):
                    self._send({"t": "lost", "peer": peer, "cause": cause, "seconds": seconds})
                self._news.wait_for(lambda: self._abort is not None, timeout=1.0)
        return self._abort_error() or LostPeerError(
            Failure(RankId(peer, "unknown", -1), cause, "", seconds), doing=self._me()
        )

    @property
    def failed(self) -> bool:
        """Whether the job has failed on any rank."""
        return self._abort is not None

    def raise_if_failed(self) -> None:
        """PeerError when the job has failed on any rank."""
        error = self._abort_error()
        if error:
            raise error

    def _abort_error(self) -> PeerError | None:
        abort = self._abort
        if abort is None:
            return None
        if abort["kind"] == "MismatchError":
            return MismatchError(abort["cause"], advice=abort["advice"] or MismatchError.ADVICE)
        if abort["kind"] == "WeightsDifferError":
            return WeightsDifferError(abort["cause"])
        culprit = RankId(*abort["culprit"]) if abort["culprit"] else None
        failure = Failure(culprit, abort["cause"], abort["at"], abort["seconds"])
        return LostPeerError(failure, doing=self._me())

    def _me(self) -> str:
        return f"rank {self.rank} in {self._doing}"

    def _join(self, address: tuple[str, int], versions: dict[str, str]) -> socket.socket:
        doing = f"rank {self.rank}: joining the job at {address[0]}:{address[1]}"
        try:
            sock = socket.create_connection(address, timeout=10.0)
        except OSError as error:
            raise PeerError(f"{doing}: {error}", advice="Is the launcher still running?") from error
        try:
            challenge = self._expect(sock, "challenge")
            nonce = new_nonce()
            purpose = f"hello {challenge['nonce']} {self.rank} {self.size}".encode()
            hello = {
                "t": "hello",
                "rank": self.rank,
                "size": self.size,
                "host": self.host,
                "pid": os.getpid(),
                "nonce": nonce,
                "proof": prove(self._token, purpose).hex(),
                "versions": versions,
            }
            sock.sendall(encode(hello))
            welcome = self._expect(sock, "welcome")
            proof = bytes.fromhex(welcome["proof"])
            if not proves(self._token, f"welcome {nonce}".encode(), proof):
                raise PeerError(f"{doing}: what answers there does not know this job's token")
        except (OSError, ValueError, KeyError) as error:
            sock.close()
            raise PeerError(f"{doing}: {error}") from error
        except PeerError:
            sock.close()
            raise
        sock.settimeout(None)
        # By this interface the launcher, and so the others, can be reached.
        self.address = str(sock.getsockname()[0])
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def _expect(self, sock: socket.socket, kind: str) -> Message:
        """The next message during the handshake, read byte by byte: nothing may follow it yet."""
        line = bytearray()
        while not line.endswith(b"\n"):
            part = sock.recv(1)
            if not part:
                raise ConnectionError("the connection was closed")
            line += part
        (message,) = LineReader().feed(bytes(line))
        if message["t"] == "refused":
            raise MismatchError(
                f"rank {self.rank} was refused by its job: {message['reason']}",
                advice="Start all ranks of a job with one launcher and one installation.",
            )
        if message["t"] != kind:
            raise ConnectionError(f"expected {kind}, got {message['t']}")
        return message

    def _listen(self) -> None:
        next_beat = 0.0
        while not self._left:
            now = time.monotonic()
            if now >= next_beat:
                next_beat = now + _BEAT_S
                with contextlib.suppress(PeerError):
                    self._beat()
            if self._told_at is not None and now - self._told_at > _SPEAK_AFTER_S:
                self._told_at = None
                with contextlib.suppress(PeerError):
                    self._send(self._last_message(self._abort_error() or PeerError("failed")))
            try:
                readable, _, _ = select.select([self._sock], [], [], _BEAT_S / 2)
                if not readable:
                    continue
                data = self._sock.recv(1 << 20)
            except (OSError, ValueError):
                data = b""
            if not data:
                self._launcher_gone()
                return
            for message in self._reader.feed(data):
                with self._news:
                    if message["t"] == "gathered":
                        self._gathered[message["topic"]] = message["values"]
                    elif message["t"] == "abort":
                        self._abort, self._told_at = message, time.monotonic()
                    self._news.notify_all()

    def _launcher_gone(self) -> None:
        self._gone = True
        with self._news:
            if self._abort is None:
                self._abort = {
                    "kind": "",
                    "advice": "",
                    "culprit": None,
                    "cause": "the launcher of the job is gone",
                    "at": "",
                    "seconds": 0.0,
                }
            self._news.notify_all()

    def _beat(self) -> None:
        self._send(
            {
                "t": "beat",
                "sequence": self._sequence,
                "doing": self._doing,
                "waiting_s": round(self._waiting_s, 3),
                "grace_s": self._grace_s,
            }
        )

    def _send(self, message: Message) -> None:
        try:
            with self._send_lock:
                self._sock.sendall(encode(message))
        except OSError as error:
            self.raise_if_failed()
            raise LostPeerError(
                Failure(None, f"the launcher of the job is gone ({error})"), doing=self._me()
            ) from error

    def _close(self) -> None:
        self._left = True
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._sock.close()
