"""One session's place in a tree of modes, and how a line is carried out there.

A command is looked for in the current mode, then in the modes above it, and last
among the commands that work everywhere. What is refused is refused in the words
of the system, which each emulator puts in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fabric.twin.cli import filters
from fabric.twin.cli.grammar import Grammar, Match, RefusedError
from fabric.twin.cli.values import TYPES, Matcher, Token, tokenize


class CliError(Exception):
    """A command that parses and still cannot be."""


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


Handler = Callable[[Any, Match], "str | None"]
Registered = TypeVar("Registered", bound=Handler)


class Commands:
    """The commands of a system by mode, filled by its modules as they are imported."""

    def __init__(self, types: Mapping[str, Matcher] = TYPES) -> None:
        self.grammars: dict[str, Grammar[Handler]] = {}
        self._types = types

    def __call__(self, mode: str, *syntaxes: str) -> Callable[[Registered], Registered]:
        """Register a handler for these commands of a mode."""

        def register(handler: Registered) -> Registered:
            for syntax in syntaxes:
                self.add(mode, syntax, handler)
            return handler

        return register

    def add(self, mode: str, syntax: str, handler: Handler) -> None:
        """Register one command of a mode."""
        self.grammars.setdefault(mode, Grammar(self._types)).add(syntax, handler)


class ModalCli(ABC):
    """A command-line session with modes; subclasses know the system's words."""

    commands: Commands
    more = "--More--"

    def __init__(self) -> None:
        self.stack: list[Frame] = []
        self.closed = False
        self.length = 24
        self.width = 80

    @property
    @abstractmethod
    def prompt(self) -> str:
        """What stands before the line to be typed."""

    @property
    @abstractmethod
    def everywhere(self) -> tuple[str, ...]:
        """Modes whose commands work in every mode."""

    @abstractmethod
    def refusal(self, error: RefusedError, tokens: Sequence[Token], offset: int) -> str:
        """The system's words for a line that it cannot parse, typed at ``offset``."""

    @abstractmethod
    def complaint(self, error: CliError) -> str:
        """The system's words for a command that cannot be."""

    def parts(self, line: str) -> Sequence[str]:
        """The commands of a line."""
        return (line,)

    def before(self) -> None:  # noqa: B027 - most systems do nothing here
        """What happens before each command."""

    def configured(self) -> None:  # noqa: B027 - nor here
        """The configuration may have changed."""

    def piped(self, line: str) -> tuple[str, tuple[filters.Filter, ...]]:
        """A line without its output filters, and the filters."""
        if "|" in line and "show".startswith(line.split(maxsplit=1)[0].lower()[:4]):
            return filters.split(line)
        return line, ()

    @property
    def frame(self) -> Frame:
        """The current configuration mode; only while there is one."""
        return self.stack[-1]

    def enter(self, mode: str, *target: str) -> None:
        """Go one mode deeper."""
        self.stack.append(Frame(mode, target))

    def end(self) -> None:
        """Leave every configuration mode."""
        self.stack.clear()

    def execute(self, line: str, *, interactive: bool = False) -> Answer:
        """Carry out a line; on a terminal the prompt stands before it."""
        texts: list[str] = []
        accepted = True
        for part in self.parts(line.replace("\t", " ")):
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
            return Answer(self.refusal(error, tokenize(line), offset), accepted=False)
        except CliError as error:
            return Answer(self.complaint(error), accepted=False)

    def _run(self, line: str) -> Answer:
        line, pipes = self.piped(line)
        self.before()
        handler, match, depth = self._parse(tokenize(line), len(line))
        if depth is not None:
            del self.stack[depth:]
        text = handler(self, match) or ""
        if depth is not None:
            self.configured()
        for pipe in pipes:
            text = pipe(text)
        return Answer(text)

    def _modes(self) -> Iterator[tuple[str, int | None]]:
        """Modes in the order of search, with the stack's depth (None: works everywhere)."""
        for depth in range(len(self.stack), 0, -1):
            yield self.stack[depth - 1].mode, depth
        for mode in self.everywhere:
            yield mode, None

    def _parse(self, tokens: list[Token], end: int) -> tuple[Handler, Match, int | None]:
        """The handler, its match, and the stack depth of its mode (None for exec)."""
        refused: RefusedError | None = None
        for mode, depth in self._modes():
            try:
                handler, match = self.commands.grammars[mode].parse(tokens, end)
            except RefusedError as error:
                if refused is None or error.column > refused.column:
                    refused = error
            else:
                return handler, match, depth
        assert refused is not None
        raise refused

    def help(self, line: str) -> list[str]:
        """What may come next, for ``?`` and TAB."""
        partial = "" if not line or line.endswith(" ") else line.rsplit(maxsplit=1)[-1]
        tokens = tokenize(line[: len(line) - len(partial)])
        found: set[str] = set()
        for mode, _ in self._modes():
            found.update(self.commands.grammars[mode].completions(tokens, partial))
        return sorted(found)
