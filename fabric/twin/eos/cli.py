"""A session on an EOS switch: privilege, modes, configuration sessions.

Logged in, a user stands before ``leaf1>`` until ``enable``. A configuration
session works on a copy of the running configuration, which it becomes when the
session is committed. Refusals are EOS's own: ``% Invalid input``, ``% Incomplete
command``, ``% Ambiguous command``, with the token that cannot be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from fabric.twin.cli import filters
from fabric.twin.cli.grammar import RefusedError
from fabric.twin.cli.modal import Answer, CliError, Commands, Frame, ModalCli
from fabric.twin.cli.values import AMBIGUOUS, INCOMPLETE, Token
from fabric.twin.eos.config import Block, Config
from fabric.twin.eos.values import EOS_TYPES

if TYPE_CHECKING:
    from fabric.twin.eos.switch import EmulatedSwitch

__all__ = ["Answer", "Cli", "CliError", "command", "load"]

USER = "user"
EXEC = "exec"
CONFIG = "config"
SESSION = "session"

# Headers of nested blocks in one frame's target.
SEPARATOR = "\n"
# How many letters of a session's name the prompt shows.
SHOWN_NAME = 6

_SHORT: dict[str, Callable[[str], str]] = {
    "if": lambda header: f"if-{_short(header.removeprefix('interface '))}",
    "qos-profile": lambda header: header.replace(" ", "-"),
    "mmu-profile": lambda header: f"mmu-queue-profile-{header.rpartition(' ')[2]}",
    "txq": lambda header: header.replace("tx-queue ", "txq-"),
    "txq-mc": lambda header: header.replace("tx-queue ", "txq-"),
}

command = Commands(EOS_TYPES)


def _short(interface: str) -> str:
    for full, short in (("Ethernet", "Et"), ("Management", "Ma"), ("Loopback", "Lo")):
        if interface.startswith(full):
            return short + interface.removeprefix(full)
    return interface


class Cli(ModalCli):
    """A command-line session. Without a switch it only loads configuration text."""

    commands = command

    def __init__(self, switch: EmulatedSwitch | None, config: Config | None = None) -> None:
        super().__init__()
        self._switch = switch
        self._config = config
        self.enabled = False
        self.session = ""
        self.json = False

    @property
    def switch(self) -> EmulatedSwitch:
        """The switch that this session is logged in to."""
        assert self._switch is not None
        return self._switch

    @property
    def config(self) -> Config:
        """The configuration that this session works on."""
        if self._config is not None:
            return self._config
        if self.session:
            return self.switch.session(self.session)
        return self.switch.config

    @property
    def prompt(self) -> str:
        """``leaf1(config-s-paisoa-if-Et1)#``, as EOS prints it."""
        config = self.config if self._config is not None else self.switch.config
        if not self.stack:
            return config.hostname + ("#" if self.enabled else ">")
        parts = ["config"]
        if self.session:
            parts.append(f"s-{self.session[:SHOWN_NAME]}")
        if self.frame.mode not in (CONFIG, SESSION):
            headers = [path.split(SEPARATOR) for path in self.frame.target]
            for depth, frame in enumerate(f for f in self.stack if f.target):
                header = headers[0][depth]
                shown = _SHORT.get(frame.mode)
                parts.append(shown(header) if shown else header.replace(" ", "-"))
        return f"{config.hostname}({'-'.join(parts)})#"

    @property
    def everywhere(self) -> tuple[str, ...]:
        """Exec commands; those of privileged users once one is."""
        if self._switch is None:
            return ()
        return (EXEC, USER) if self.enabled else (USER,)

    def refusal(self, error: RefusedError, tokens: Sequence[Token], offset: int) -> str:  # noqa: ARG002
        """EOS counts the tokens of a line from zero."""
        if error.message == INCOMPLETE:
            return "% Incomplete command"
        words = {AMBIGUOUS: "Ambiguous command"}.get(error.message, "Invalid input")
        at = next((i for i, token in enumerate(tokens) if token.column >= error.column), None)
        where = "" if at is None else f" (at token {at}: '{tokens[at].text}')"
        return f"% {words}{where}"

    def complaint(self, error: CliError) -> str:
        """``% ...``."""
        return f"% {error}"

    def piped(self, line: str) -> tuple[str, tuple[filters.Filter, ...]]:
        """``| json`` is a form of the answer, not a filter of its text."""
        head, *pipes = line.split("|")
        self.json = any(pipe.strip() == "json" for pipe in pipes)
        return super().piped("|".join([head, *(p for p in pipes if p.strip() != "json")]))

    def configured(self) -> None:
        """Only what is not in a configuration session takes effect."""
        if self._switch is not None and not self.session:
            self._switch.configured()

    def before(self) -> None:
        """A commit that nobody has confirmed in time is taken back; sessions may be gone."""
        if self._switch is None:
            return
        self._switch.tick()
        if self.session and not self._switch.has_session(self.session):
            self.end()

    def end(self) -> None:
        """Back to privileged exec mode; a configuration session waits."""
        super().end()
        self.session = ""

    def blocks(self) -> Iterator[Block]:
        """The blocks that the current mode configures."""
        for path in self.frame.target:
            block: Block = self.config
            for header in path.split(SEPARATOR):
                block = block.below(header)
            yield block
        if not self.frame.target:
            yield self.config

    def go(self, mode: str, *headers: str) -> None:
        """Enter these blocks of the current ones."""
        above = self.frame.target or ("",)
        paths = [
            f"{path}{SEPARATOR}{header}" if path else header for path in above for header in headers
        ]
        self.enter(mode, *paths)


def load(text: str, config: Config) -> Config:
    """Fill ``config`` from configuration text, as a switch does when it boots.

    Indentation says which mode a line belongs to. Raises ValueError that
    quotes the line that the grammar does not accept.
    """
    cli = Cli(None, config)
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("!") or line == "end":
            continue
        indent = len(line) - len(line.lstrip())
        cli.stack = (cli.stack or [Frame(CONFIG)])[: indent // 3 + 1]
        answer = cli.execute(line.strip())
        if not answer.accepted:
            raise ValueError(f"line {number}: {line.strip()!r}: {answer.text.strip()}")
    return config
