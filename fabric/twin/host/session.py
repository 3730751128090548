"""Carrying one SSH session of an emulated host: a command or a shell, with or without a terminal.

Bytes pass unchanged: module archives and file contents are not text. The server
should open the channel as bytes, or in latin-1, where one character is one
byte; a channel in another encoding is switched, but what a quick client sends
before that is decoded already.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import struct
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import asyncssh

CHUNK = 65536
HANG_UP_S = 1.0
# One character per byte: a text channel in this encoding carries any bytes.
TRANSPARENT = "latin-1"
# Goes home as sshd does, then becomes the command: $0 is the program, the rest its arguments.
_AT_HOME = 'cd "$HOME" && exec "$0" "$@"'


async def carry(
    process: asyncssh.SSHServerProcess[Any],
    enter: Sequence[str],
    shell: str,
    environment: Mapping[str, str],
    home: Path,
) -> int:
    """Run the session's command (or a login shell) inside; its exit status, negative by a signal.

    ``enter`` are the words that put a command line into the host's namespaces.
    The session ends with the command and the last holder of its output, as with
    sshd, or when the client goes away: then the command is hung up.
    """
    if process.channel.get_encoding()[0] not in (None, TRANSPARENT):
        process.channel.set_encoding(TRANSPARENT)
    run = [shell, "-c", process.command] if process.command is not None else [shell, "--login"]
    if process.command is None and shell.endswith("/sh"):
        run = [shell, "-l"]
    words = [*enter, "sh", "-c", _AT_HOME, *run]
    if process.term_type is None:
        return await _with_pipes(process, words, environment, home)
    return await _with_terminal(process, words, environment, home)


async def _with_pipes(
    process: asyncssh.SSHServerProcess[Any],
    words: Sequence[str],
    environment: Mapping[str, str],
    home: Path,
) -> int:
    child = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(environment),
        cwd=home,
        start_new_session=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    stdin = child.stdin

    async def feed(data: bytes) -> None:
        if not data:
            stdin.close()
            return
        stdin.write(data)
        await stdin.drain()

    outputs = (
        _pump_out(child.stdout, process.stdout),
        _pump_out(child.stderr, process.stderr),
    )
    return await _until_done(process, child, feed, outputs)


async def _with_terminal(
    process: asyncssh.SSHServerProcess[Any],
    words: Sequence[str],
    environment: Mapping[str, str],
    home: Path,
) -> int:
    ours, theirs = os.openpty()
    _resize(ours, process.term_size)
    try:
        child = await asyncio.create_subprocess_exec(
            *("setsid", "--ctty", *words),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**environment, "TERM": process.term_type or "dumb"},
            cwd=home,
        )
    finally:
        os.close(theirs)
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(ours), "rb", 0)
    )

    async def feed(data: bytes) -> None:
        # A client that closes its input has typed the end-of-file character.
        await asyncio.to_thread(os.write, ours, data or b"\x04")

    try:
        return await _until_done(
            process, child, feed, (_pump_out(reader, process.stdout),), terminal=ours
        )
    finally:
        transport.close()
        os.close(ours)


async def _until_done(
    process: asyncssh.SSHServerProcess[Any],
    child: asyncio.subprocess.Process,
    feed: Any,  # noqa: ANN401 - a coroutine function of bytes
    outputs: Sequence[Any],
    *,
    terminal: int | None = None,
) -> int:
    """Pump until the outputs have ended or the client is gone; the exit status."""
    pump_in = asyncio.create_task(_pump_in(process, child, feed, terminal))
    gone = asyncio.create_task(process.channel.wait_closed())
    done = asyncio.create_task(_finish(child, outputs))
    try:
        await asyncio.wait({gone, done}, return_when=asyncio.FIRST_COMPLETED)
        return done.result() if done.done() else -signal.SIGHUP
    finally:
        # The client is gone, or the server stops: the command must not outlive its session.
        for task in (pump_in, gone, done):
            task.cancel()
        await asyncio.gather(pump_in, gone, done, return_exceptions=True)
        if child.stdin is not None:
            child.stdin.close()
        await _hang_up(child)


async def _hang_up(child: asyncio.subprocess.Process) -> None:
    """SIGHUP for what still runs, SIGKILL for what does not heed it."""
    for number in (signal.SIGHUP, signal.SIGKILL):
        if child.returncode is not None:
            return
        _signal(child, number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(child.wait(), HANG_UP_S)


async def _finish(child: asyncio.subprocess.Process, outputs: Sequence[Any]) -> int:
    await asyncio.gather(*outputs)
    return await child.wait()


async def _pump_out(source: asyncio.StreamReader, sink: asyncssh.SSHWriter[Any]) -> None:
    text = sink.channel.get_encoding()[0] is not None
    # A terminal whose last holder has left gives EIO instead of an end of file; a
    # channel that the client has closed takes nothing more.
    with contextlib.suppress(OSError, asyncssh.Error):
        while data := await source.read(CHUNK):
            sink.write(data.decode(TRANSPARENT) if text else data)
            await sink.drain()


async def _pump_in(
    process: asyncssh.SSHServerProcess[Any],
    child: asyncio.subprocess.Process,
    feed: Any,  # noqa: ANN401 - a coroutine function of bytes
    terminal: int | None,
) -> None:
    with contextlib.suppress(OSError, asyncssh.Error):
        while True:
            try:
                data = await process.stdin.read(CHUNK)
            except asyncssh.TerminalSizeChanged as change:
                if terminal is not None:
                    _resize(terminal, change.term_size)
                continue
            except asyncssh.SignalReceived as received:
                _signal(child, getattr(signal, f"SIG{received.signal}", signal.SIGTERM))
                continue
            except asyncssh.BreakReceived:
                _signal(child, signal.SIGINT)
                continue
            await feed(data if isinstance(data, bytes) else _bytes(data))
            if not data:
                return


def _bytes(text: str) -> bytes:
    try:
        return text.encode(TRANSPARENT)
    except UnicodeEncodeError:  # decoded before the channel was switched
        return text.encode(errors="surrogateescape")


def as_sent(process: asyncssh.SSHServerProcess[Any], text: str) -> Any:  # noqa: ANN401
    """A message of ours in UTF-8, as text or bytes, as the channel takes it."""
    data = text.encode()
    if process.channel.get_encoding()[0] is None:
        return data
    return data.decode(process.channel.get_encoding()[0] or "ascii")


def _signal(child: asyncio.subprocess.Process, number: int) -> None:
    """Signal the command's whole process group, which it leads."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def _resize(terminal: int, size: tuple[int, int, int, int]) -> None:
    columns, rows, width, height = size
    if columns and rows:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, width, height))
