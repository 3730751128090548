"""Commands on hosts over SSH: one connection a host, one ``exec`` a command.

All connections live on one event loop in a background thread and are kept for
the life of the process, so that suites that read counters again and again do
not log in again and again. ``close_hosts`` ends them.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import os
import shlex
import threading
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import asyncssh

from fabric.errors import DeviceError, UnreachableError
from fabric.reach.access import Access
from fabric.reach.sshkeys import check_keys, damaged_key, logging_in, wrong_key

CONNECT_TIMEOUT_S = 15.0
COMMAND_TIMEOUT_S = 60.0
SLOW_FACTOR = 6
# OpenSSH lets one connection hold ten sessions (MaxSessions); this leaves room.
SESSIONS_PER_HOST = 2
# Key exchange is computing, not waiting: more at once only makes each slower.
HOSTS_AT_ONCE = 32

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a host printed on stdout, and how the command ended.

    ``stderr`` is kept apart: it explains a failure and is no data.
    """

    stdout: str
    stderr: str
    exit_status: int

    @property
    def complaint(self) -> str:
        """The failure in one line."""
        last = (self.stderr or self.stdout).strip().splitlines()[-1:]
        return f"exit status {self.exit_status}" + (f": {last[0]}" if last else "")


class _Hosts:
    """The loop's thread and its connections, of one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.connections: dict[tuple[str, int, str], asyncssh.SSHClientConnection] = {}
        self.running: set[asyncio.Task[Any]] = set()
        self.gate = asyncio.Semaphore(HOSTS_AT_ONCE)
        self.thread = threading.Thread(target=self._run, name="paisoar-hosts", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def submit(self, work: Coroutine[Any, Any, _Result]) -> concurrent.futures.Future[_Result]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def start(self, work: Coroutine[Any, Any, _Result]) -> concurrent.futures.Future[_Result]:
        """As :meth:`submit`; ends unfinished when the connections are closed."""
        return self.submit(self._tracked(work))

    async def _tracked(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        task = asyncio.current_task()
        assert task is not None
        self.running.add(task)
        try:
            return await work
        finally:
            self.running.discard(task)

    def close(self) -> None:
        self.submit(self._disconnect()).result(timeout=10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(timeout=10)
        self.loop.close()

    async def _disconnect(self) -> None:
        # After Ctrl-C: what still runs would see its connection break, and connect again.
        for task in self.running:
            task.cancel()
        await asyncio.gather(*self.running, return_exceptions=True)
        connections = list(self.connections.values())
        self.connections.clear()
        for connection in connections:
            connection.close()
        await asyncio.gather(
            *(connection.wait_closed() for connection in connections), return_exceptions=True
        )

    async def connection(
        self, device: str, access: Access
    ) -> tuple[asyncssh.SSHClientConnection, bool]:
        """A connection, and whether it was there before."""
        key = (access.host, access.port, access.user)
        kept = self.connections.get(key)
        if kept is not None and not kept.is_closed():
            return kept, True
        fresh = await _connect(device, access)
        self.connections[key] = fresh
        return fresh, False

    async def run(
        self, device: str, access: Access, commands: Sequence[str], sudo: bool
    ) -> dict[str, Answer]:
        wait_s = _patient(access, COMMAND_TIMEOUT_S)
        async with self.gate:
            connection, kept = await self.connection(device, access)
            try:
                return await _run_all(device, connection, commands, sudo, wait_s)
            except UnreachableError:
                # A connection kept from before may have died since: the host may not.
                connection.abort()
                if not kept:
                    raise
            connection = await _connect(device, access)
            self.connections[(access.host, access.port, access.user)] = connection
            return await _run_all(device, connection, commands, sudo, wait_s)


_lock = threading.Lock()
_hosts: _Hosts | None = None


def _pool() -> _Hosts:
    global _hosts  # noqa: PLW0603 - one loop a process is the point
    with _lock:
        if _hosts is None or _hosts.pid != os.getpid():
            _hosts = _Hosts()
            atexit.register(close_hosts)
        return _hosts


def close_hosts() -> None:
    """End every kept connection to a host; the next command connects again."""
    global _hosts
    with _lock:
        hosts, _hosts = _hosts, None
    if hosts is not None and hosts.pid == os.getpid():
        hosts.close()


def run_on_host(
    device: str, access: Access, commands: Sequence[str], *, sudo: bool = False
) -> concurrent.futures.Future[dict[str, Answer]]:
    """Run these commands side by side, as far as the host's sessions allow.

    ``sudo`` runs each as root through ``sudo -n``. The future's result has one
    answer a command. It raises UnreachableError where the host cannot be reached
    or logged in to, DeviceError where a command does not end in time.
    """
    pool = _pool()
    return pool.start(pool.run(device, access, commands, sudo))


async def _connect(device: str, access: Access) -> asyncssh.SSHClientConnection:
    check_keys(device, access)
    doing = logging_in(access)
    options: dict[str, Any] = {}
    if access.key_file is not None:
        options["client_keys"] = [str(access.key_file)]
        options["agent_path"] = None
    if access.password is not None:
        options["password"] = access.password
    try:
        return await asyncssh.connect(
            access.host,
            access.port,
            username=access.user,
            known_hosts=str(access.known_hosts),
            connect_timeout=_patient(access, CONNECT_TIMEOUT_S),
            **options,
        )
    except asyncssh.HostKeyNotVerifiable as error:
        raise wrong_key(device, access) from error
    except asyncssh.PermissionDenied as error:
        raise UnreachableError(
            device,
            doing,
            f"refused: {error.reason}",
            advice="Set PAISOAR_HOST_USER and PAISOAR_HOST_KEY or PAISOAR_HOST_PASSWORD.",
        ) from error
    except TimeoutError as error:
        raise UnreachableError(
            device,
            doing,
            f"no answer within {_patient(access, CONNECT_TIMEOUT_S):g} s",
            advice=f"Try `ssh -p {access.port} {access.user}@{access.host}`: is it the SSH port of "
            f"{device}, and is the device up?",
        ) from error
    except (OSError, asyncssh.Error) as error:
        errno = error.errno if isinstance(error, OSError) else None
        text = os.strerror(errno) if errno and errno > 0 else str(error)
        raise UnreachableError(device, doing, text or type(error).__name__) from error
    except ValueError as error:
        # asyncssh raises ValueError subclasses for keys that it cannot use.
        raise damaged_key(device, access) or UnreachableError(
            device,
            doing,
            f"the key {access.key_file} cannot be used: {error}",
            advice=f"Is {access.key_file}.pub beside it that of another key?",
        ) from error


def _patient(access: Access, seconds: float) -> float:
    return seconds * (SLOW_FACTOR if access.slow else 1)


async def _run_all(
    device: str,
    connection: asyncssh.SSHClientConnection,
    commands: Sequence[str],
    sudo: bool,
    timeout_s: float,
) -> dict[str, Answer]:
    sessions = asyncio.Semaphore(SESSIONS_PER_HOST)

    async def one(command: str) -> Answer:
        async with sessions:
            sent = f"sudo -n -- sh -c {shlex.quote(command)}" if sudo else command
            return await _run(device, connection, sent, timeout_s)

    answers = await asyncio.gather(*(one(command) for command in commands))
    return dict(zip(commands, answers, strict=True))


async def _run(
    device: str, connection: asyncssh.SSHClientConnection, command: str, timeout_s: float
) -> Answer:
    try:
        done = await connection.run(command, timeout=timeout_s, encoding="utf-8", errors="replace")
    except asyncssh.TimeoutError as error:
        raise DeviceError(
            device, f"run {command!r}", f"it has not ended after {timeout_s:g} s"
        ) from error
    except (OSError, asyncssh.Error) as error:
        raise UnreachableError(
            device, f"run {command!r}", f"the connection broke: {error or type(error).__name__}"
        ) from error
    status = done.exit_status if done.exit_status is not None else -1
    return Answer(_text(done.stdout), _text(done.stderr), status)


def _text(stream: object) -> str:
    return stream if isinstance(stream, str) else ""
