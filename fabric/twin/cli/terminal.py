"""Carrying an SSH session of a switch: a shell with editing and paging, or commands.

asyncssh's line editor does echo, cursor keys and history. ``?`` and TAB work at
the end of the line; longer answers stop at ``--More--`` (or the system's own
word for it), where SPACE shows a page, RETURN a line, and ``q`` stops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import asyncssh

# Exit status of a one-shot command that the switch refused.
REFUSED = 16


class Reply(Protocol):
    """What a line printed, and whether it was accepted."""

    @property
    def text(self) -> str:
        """What was printed."""

    @property
    def accepted(self) -> bool:
        """Whether the line was taken."""


class Session(Protocol):
    """A command-line session that can be carried by a terminal.

    ``length`` 0 never pauses; ``more`` is what a pause prints. Where that is empty it
    is a shell: it never pauses, and ``?`` is a character like others.
    """

    closed: bool
    length: int
    width: int
    more: str

    @property
    def prompt(self) -> str:
        """What stands before the line to be typed."""

    def execute(self, line: str, *, interactive: bool = False) -> Reply:
        """Carry out a line."""

    def help(self, line: str) -> list[str]:
        """What may come next."""

    def end(self) -> None:
        """Leave every configuration mode (control-Z)."""


async def serve(
    cli: Session, process: asyncssh.SSHServerProcess[str], done: Callable[[], None]
) -> None:
    """Carry one session until it ends; ``done`` is called then, however it ended."""
    try:
        if process.command is not None:
            answer = cli.execute(process.command)
            process.stdout.write(answer.text)
            process.exit(0 if answer.accepted else REFUSED)
        elif process.subsystem is not None:
            process.exit(1)
        elif process.term_type is None:
            await _script(cli, process)
        else:
            await _Shell(cli, process).run()
    except (asyncssh.ConnectionLost, BrokenPipeError):
        return
    finally:
        done()


async def _script(cli: Session, process: asyncssh.SSHServerProcess[str]) -> None:
    """Commands from a pipe: no prompt, no echo, no paging."""
    accepted = True
    async for line in process.stdin:
        answer = cli.execute(line.rstrip("\r\n"))
        accepted = accepted and answer.accepted
        process.stdout.write(answer.text)
        if cli.closed:
            break
    process.exit(0 if accepted else REFUSED)


class _Shell:
    """An interactive session."""

    def __init__(self, cli: Session, process: asyncssh.SSHServerProcess[str]) -> None:
        self.cli = cli
        self.process = process
        self.channel: asyncssh.SSHLineEditorChannel = process.channel  # type: ignore[assignment]
        width, height = process.term_size[:2]
        self.cli.width = width or self.cli.width
        self.cli.length = height or self.cli.length

    async def run(self) -> None:
        """Prompt, read, answer, until ``exit`` or the end of input."""
        self.channel.register_key("\t", self._complete)
        if self.cli.more:
            self.channel.register_key("?", self._question)
        self.channel.register_key("\x1a", self._control_z)
        while not self.cli.closed:
            self.process.stdout.write(self.cli.prompt)
            line = await self._read()
            if line is None:
                break
            await self._show(self.cli.execute(line, interactive=True).text)
        self.process.exit(0)

    async def _read(self) -> str | None:
        """One line; None at the end of input. ^C starts a new one."""
        while True:
            try:
                line = await self.process.stdin.readline()
            except asyncssh.BreakReceived:
                self.channel.clear_input()
                self.process.stdout.write(f"^C\n{self.cli.prompt}")
                continue
            except asyncssh.TerminalSizeChanged as size:
                self.cli.width, self.cli.length = size.width, size.height
                continue
            except asyncssh.SignalReceived:
                continue
            if not line:
                return None
            return line.rstrip("\r\n")

    async def _show(self, text: str) -> None:
        lines = text.splitlines(keepends=True)
        page = self.cli.length
        if not page or not self.cli.more or len(lines) <= page:
            self.process.stdout.write(text)
            return
        room = page - 1
        self.channel.set_line_mode(False)
        self.channel.set_echo(False)
        try:
            while lines:
                self.process.stdout.write("".join(lines[:room]))
                del lines[:room]
                if not lines:
                    break
                self.process.stdout.write(self.cli.more)
                key = await self._key()
                self.process.stdout.write("\r" + " " * len(self.cli.more) + "\r")
                if key in ("q", "Q", "\x03", ""):
                    break
                room = 1 if key in ("\r", "\n") else page - 1
        finally:
            self.channel.set_line_mode(True)
            self.channel.set_echo(True)

    async def _key(self) -> str:
        while True:
            try:
                return await self.process.stdin.read(1)
            except asyncssh.BreakReceived:
                return "q"
            except (asyncssh.TerminalSizeChanged, asyncssh.SignalReceived):
                continue

    def _complete(self, line: str, position: int) -> tuple[str, int] | bool:
        if position != len(line):
            return False
        words = [word for word in self.cli.help(line) if not word.startswith("<")]
        partial = "" if not line or line.endswith(" ") else line.rsplit(maxsplit=1)[-1]
        if len(words) == 1 and partial:
            line = f"{line[: len(line) - len(partial)]}{words[0]} "
        return line, len(line)

    def _question(self, line: str, position: int) -> tuple[str, int] | bool:
        if position != len(line):
            return False
        words = self.cli.help(line) or ["% Unrecognized command"]
        # In one piece: the editor takes the input line away around each write.
        listing = "".join(f"  {word}\n" for word in words)
        self.process.stdout.write(f"{line}?\n{listing}{self.cli.prompt}")
        return line, len(line)

    def _control_z(self, _line: str, _position: int) -> tuple[str, int] | bool:
        self.cli.end()
        self.process.stdout.write(f"^Z\n{self.cli.prompt}")
        return "", 0
