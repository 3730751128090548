"""One session's place in the command tree, and how a line is carried out there.

NX-OS looks for a command in the current mode, then in the modes above it, and
last among the exec commands, which work in every configuration mode. Several
commands may stand in one line, parted by `` ; ``. A command that cannot be
parsed is answered with a caret under the offending word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.twin.cli import filters
from fabric.twin.cli.grammar import Grammar, Match, RefusedError
from fabric.twin.cli.values import Token, tokenize
from fabric.twin.nxos.config import Config

if TYPE_CHECKING:
    from fabric.twin.nxos.switch import EmulatedSwitch

EXEC = "exec"
CONFIG = "config"


class CliError(Exception):
    """A command that parses and still cannot be; printed as ``ERROR: ...``."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A configuration mode and what it configures."""

    mode: str
    target: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a line printed, and whether it was accepted."""

    text: str = ""
    accepted: bool = True


# Whether what a mode configures is still there: another session may have removed it.
_ALIVE: dict[str, Callable[[Config, tuple[str, ...]], bool]] = {
    "config-if": lambda config, target: all(name in config.interfaces for name in target),
    "config-cmap-qos": lambda config, target: target[0] in config.class_maps,
    "config-pmap-qos": lambda config, target: target[0] in config.qos_policies,
    "config-pmap-c-qos": lambda config, target: target[1] in config.qos_policies[target[0]].classes,
    "config-pmap-nqos": lambda config, target: target[0] in config.network_policies,
    "config-pmap-nqos-c": lambda config, target: (
        target[1] in config.network_policies[target[0]].classes
    ),
    "config-pmap-que": lambda config, target: target[0] in config.queuing_policies,
    "config-pmap-c-que": lambda config, target: (
        target[1] in config.queuing_policies[target[0]].classes
    ),
}

Handler = Callable[["Cli", Match], str | None]

GRAMMARS: dict[str, Grammar[Handler]] = {}


def command(mode: str, *syntaxes: str) -> Callable[[Handler], Handler]:
    """Register a handler for these commands of a mode."""

    def register(handler: Handler) -> Handler:
        grammar = GRAMMARS.setdefault(mode, Grammar())
        for syntax in syntaxes:
            grammar.add(syntax, handler)
        return handler

    return register


class Cli:
    """A command-line session. Without a switch it only loads configuration text."""

    more = "--More--"

    def __init__(self, switch: EmulatedSwitch | None, config: Config | None = None) -> None:
        self._switch = switch
        self._config = config
        self.stack: list[Frame] = []
        self.closed = False
        self.length = 24
        self.width = 80

    @property
    def switch(self) -> EmulatedSwitch:
        """The switch that this session is logged in to."""
        assert self._switch is not None
        return self._switch

    @property
    def config(self) -> Config:
        """The configuration that this session works on."""
        return self.switch.config if self._config is None else self._config

    @property
    def frame(self) -> Frame:
        """The current configuration mode; only while there is one."""
        return self.stack[-1]

    @property
    def prompt(self) -> str:
        """``leaf1(config-if)# ``, as NX-OS prints it."""
        if not self.stack:
            return f"{self.config.hostname}# "
        mode = self.frame.mode
        if mode == "config-if" and len(self.frame.target) > 1:
            mode = "config-if-range"
        return f"{self.config.hostname}({mode})# "

    def end(self) -> None:
        """Back to exec mode."""
        self.stack.clear()

    def enter(self, mode: str, *target: str) -> None:
        """Go one mode deeper."""
        self.stack.append(Frame(mode, target))

    def execute(self, line: str, *, interactive: bool = False) -> Answer:
        """Carry out a line; the caret is shifted by the prompt where there is one."""
        texts: list[str] = []
        accepted = True
        for part in line.replace("\t", " ").split(" ; "):
            offset = len(self.prompt) if interactive else 0
            answer = self._execute_one(part.rstrip(), offset)
            accepted = accepted and answer.accepted
            if answer.text:
                texts.append(answer.text.rstrip("\n") + "\n")
            if self.closed:
                break
        return Answer("".join(texts), accepted)

    def _execute_one(self, line: str, offset: int) -> Answer:
        if not line.strip() or line.lstrip().startswith("!"):
            return Answer()
        try:
            return self._run(line)
        except RefusedError as error:
            return Answer(f"{' ' * (offset + error.column)}^\n{error.message}", accepted=False)
        except CliError as error:
            return Answer(f"ERROR: {error}", accepted=False)

    def _run(self, line: str) -> Answer:
        pipes: tuple[filters.Filter, ...] = ()
        if "|" in line and "show".startswith(line.split(maxsplit=1)[0].lower()[:4]):
            line, pipes = filters.split(line)
        self._leave_removed()
        tokens = tokenize(line)
        handler, match, depth = self._parse(tokens, len(line))
        if depth is not None:
            del self.stack[depth:]
        text = handler(self, match) or ""
        if depth is not None and self._switch is not None:
            self._switch.configured()
        for pipe in pipes:
            text = pipe(text)
        return Answer(text)

    def _leave_removed(self) -> None:
        for depth, frame in enumerate(self.stack):
            alive = _ALIVE.get(frame.mode)
            if alive is not None and not alive(self.config, frame.target):
                del self.stack[depth:]
                return

    def _parse(self, tokens: list[Token], end: int) -> tuple[Handler, Match, int | None]:
        """The handler, its match, and the stack depth of its mode (None for exec)."""
        refused: RefusedError | None = None
        for depth in range(len(self.stack), 0, -1):
            try:
                handler, match = GRAMMARS[self.stack[depth - 1].mode].parse(tokens, end)
            except RefusedError as error:
                if refused is None or error.column > refused.column:
                    refused = error
            else:
                return handler, match, depth
        if self._switch is not None:
            try:
                handler, match = GRAMMARS[EXEC].parse(tokens, end)
            except RefusedError as error:
                if refused is None or error.column > refused.column:
                    refused = error
            else:
                return handler, match, None
        assert refused is not None
        raise refused

    def help(self, line: str) -> list[str]:
        """What may come next, for ``?`` and TAB."""
        partial = "" if not line or line.endswith(" ") else line.rsplit(maxsplit=1)[-1]
        tokens = tokenize(line[: len(line) - len(partial)])
        found: set[str] = set()
        for mode in [frame.mode for frame in self.stack] + [EXEC]:
            found.update(GRAMMARS[mode].completions(tokens, partial))
        return sorted(found)


def load(text: str, config: Config) -> Config:
    """Fill ``config`` from configuration text, as a switch does when it boots.

    Indentation says which mode a line belongs to. Raises ValueError that
    quotes the line that the grammar does not accept.
    """
    cli = Cli(None, config)
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith(("!", "version ")):
            continue
        indent = len(line) - len(line.lstrip())
        cli.stack = (cli.stack or [Frame(CONFIG)])[: indent // 2 + 1]
        answer = cli.execute(line.strip())
        if not answer.accepted:
            raise ValueError(f"line {number}: {line.strip()!r}: {answer.text.strip()}")
    return config
