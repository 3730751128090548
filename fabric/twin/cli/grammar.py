"""A command grammar and its parser, with NX-OS's rules for abbreviations.

Commands are written in Cisco's own notation: ``word`` a keyword, ``[x]``
optional, ``(a | b)`` alternatives, ``<name:type>`` a parameter (types in
``values`` unless others are given), and ``{name: a | b}`` a choice of keywords
whose choice is kept under a name.

A keyword may be shortened as long as it stays unique at its place; an exact
word always wins, and a keyword wins over a parameter. Errors point at the word
that cannot be, as NX-OS does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from fabric.twin.cli.values import (
    AMBIGUOUS,
    INCOMPLETE,
    INVALID,
    TYPES,
    Matcher,
    Token,
    Wrong,
    matcher_of,
)

Action = TypeVar("Action")

_LEXER = re.compile(r"<\w+:[\w-]+>|\{\w+:|[\[\](){}|]|[^\s\[\](){}|<>]+")


class RefusedError(Exception):
    """The parser's refusal: NX-OS's text and the column of the caret."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.column = column


@dataclass(frozen=True)
class Match:
    """A parsed command.

    ``words`` holds every keyword that was given, in full; ``values`` the
    parameters and named choices; ``text`` the command as NX-OS prints it.
    """

    words: tuple[str, ...] = ()
    values: dict[str, object] = field(default_factory=dict)
    text: str = ""

    @property
    def no(self) -> bool:
        """Whether this is the ``no`` form."""
        return self.words[:1] == ("no",)

    @property
    def positive(self) -> str:
        """The command's text without a leading ``no``."""
        return self.text.removeprefix("no ")

    def has(self, keyword: str) -> bool:
        """Whether this keyword was given."""
        return keyword in self.words

    def string(self, name: str) -> str:
        """A parameter or choice that must be there, as text."""
        return str(self.values[name])

    def integer(self, name: str) -> int:
        """A numeric parameter that must be there."""
        value = self.values[name]
        assert isinstance(value, int)
        return value

    def numbers(self, name: str) -> tuple[int, ...]:
        """A list parameter that must be there."""
        value = self.values[name]
        assert isinstance(value, tuple)
        return value

    def names(self, name: str) -> tuple[str, ...]:
        """An interface-range parameter; empty where it was left out."""
        value = self.values.get(name, ())
        assert isinstance(value, tuple)
        return value


@dataclass(frozen=True)
class _Keyword:
    text: str
    label: str = ""


@dataclass(frozen=True)
class _Parameter:
    name: str
    kind: str
    matcher: Matcher


@dataclass
class _Node(Generic[Action]):
    edges: list[tuple[_Keyword | _Parameter, _Node[Action]]] = field(default_factory=list)
    accepts: list[Action] = field(default_factory=list)


@dataclass(frozen=True)
class _State(Generic[Action]):
    node: _Node[Action]
    match: Match


class Grammar(Generic[Action]):
    """The commands of one mode, each with what is to be done for it."""

    def __init__(self, types: Mapping[str, Matcher] = TYPES) -> None:
        self._root: _Node[Action] = _Node()
        self._types = types

    def add(self, syntax: str, action: Action) -> None:
        """Accept this command; ValueError where the notation is malformed."""
        tokens = _LEXER.findall(syntax)
        node = _Compiler[Action](tokens, self._types).compile(_Node(accepts=[action]))
        self._root.edges += node.edges

    def parse(self, tokens: Sequence[Token], end: int) -> tuple[Action, Match]:
        """What to do for this line; ``end`` is the column behind it.

        Raises RefusedError with NX-OS's text and the caret's column.
        """
        frontier: dict[int, list[_State[Action]]] = {0: [_State(self._root, Match())]}
        furthest = RefusedError(INVALID, tokens[0].column if tokens else end)
        for at in range(len(tokens)):
            states = frontier.pop(at, None)
            if not states:
                continue
            error = self._step(tokens, at, states, frontier, end)
            if error is not None and error.column >= furthest.column:
                furthest = error
        finished = frontier.get(len(tokens), [])
        for state in finished:
            if state.node.accepts:
                return state.node.accepts[0], state.match
        if finished:
            raise RefusedError(INCOMPLETE, end)
        raise furthest

    def _step(
        self,
        tokens: Sequence[Token],
        at: int,
        states: Sequence[_State[Action]],
        frontier: dict[int, list[_State[Action]]],
        end: int,
    ) -> RefusedError | None:
        """Advance over the token at ``at``; the error where none of the states can."""
        token = tokens[at]
        edges = [(state, edge, node) for state in states for edge, node in state.node.edges]
        keywords = [item for item in edges if isinstance(item[1], _Keyword)]
        chosen = [i for i in keywords if i[1].text.lower() == token.text.lower()]  # type: ignore[union-attr]
        if not chosen:
            chosen = [i for i in keywords if i[1].text.lower().startswith(token.text.lower())]  # type: ignore[union-attr]
            if len({edge.text for _, edge, _ in chosen if isinstance(edge, _Keyword)}) > 1:
                return RefusedError(AMBIGUOUS, token.column)
        for state, edge, node in chosen:
            assert isinstance(edge, _Keyword)
            values = state.match.values
            if edge.label:
                values = {**values, edge.label: edge.text}
            frontier.setdefault(at + 1, []).append(
                _State(node, _grown(state.match, edge.text, values, edge.text))
            )
        if chosen:
            return None
        message = ""
        for state, edge, node in edges:
            if not isinstance(edge, _Parameter):
                continue
            taken = edge.matcher(tokens, at)
            if isinstance(taken, Wrong):
                message = max(message, taken.message, key=_telling)
                continue
            values = {**state.match.values, edge.name: taken.value}
            grown = _grown(state.match, taken.text, values)
            frontier.setdefault(at + taken.count, []).append(_State(node, grown))
            message = ""
            chosen.append((state, edge, node))
        if chosen:
            return None
        column = end if message == INCOMPLETE else token.column
        return RefusedError(message or INVALID, column)

    def completions(self, tokens: Sequence[Token], partial: str) -> list[str]:
        """What may follow these words, for ``?`` and TAB: keywords and ``<parameter>``."""
        frontier: dict[int, list[_State[Action]]] = {0: [_State(self._root, Match())]}
        for at in range(len(tokens)):
            states = frontier.pop(at, [])
            if states:
                self._step(tokens, at, states, frontier, 0)
        found: set[str] = set()
        for state in frontier.get(len(tokens), []):
            for edge, _ in state.node.edges:
                if isinstance(edge, _Parameter):
                    if not partial:
                        found.add(f"<{edge.kind}>")
                elif edge.text.lower().startswith(partial.lower()):
                    found.add(edge.text)
            if state.node.accepts and not partial:
                found.add("<CR>")
        return sorted(found)


def _grown(match: Match, text: str, values: dict[str, object], keyword: str = "") -> Match:
    words = (*match.words, keyword) if keyword else match.words
    return Match(words, values, f"{match.text} {text}".strip())


def _telling(message: str) -> int:
    """A refusal that says more than "invalid" is the one to print."""
    return 0 if not message else 1 if message == INVALID else 2


@dataclass
class _Group:
    """A bracketed part of the notation."""

    optional: bool
    label: str
    branches: list[list[_Item]]


_Item: TypeAlias = "str | _Group"


def _items(tokens: Sequence[str]) -> list[_Item]:
    """The notation's items: keywords and parameters as text, brackets as groups.

    Raises ValueError where brackets do not match.
    """
    closing = {"[": "]", "(": ")", "{": "}"}
    stack: list[tuple[str, _Group]] = []
    top: list[_Item] = []
    for mark in tokens:
        if mark[0] in closing:
            stack.append((closing[mark[0]], _Group(mark == "[", mark[1:-1], [[]])))
        elif mark in closing.values():
            if not stack or stack[-1][0] != mark:
                raise ValueError(f"unbalanced {mark} in {' '.join(tokens)}")
            group = stack.pop()[1]
            (stack[-1][1].branches[-1] if stack else top).append(group)
        elif mark == "|":
            if not stack:
                raise ValueError(f"alternatives need brackets in {' '.join(tokens)}")
            stack[-1][1].branches.append([])
        else:
            (stack[-1][1].branches[-1] if stack else top).append(mark)
    if stack:
        raise ValueError(f"a bracket stays open in {' '.join(tokens)}")
    return top


class _Compiler(Generic[Action]):
    """Recursive descent over the notation, building nodes back to front."""

    def __init__(self, tokens: Sequence[str], types: Mapping[str, Matcher]) -> None:
        self.tokens = tokens
        self.types = types

    def compile(self, accept: _Node[Action]) -> _Node[Action]:
        return self._link(_items(self.tokens), accept)

    def _link(self, items: Sequence[_Item], after: _Node[Action]) -> _Node[Action]:
        for item in reversed(items):
            after = self._before(item, after)
        return after

    def _before(self, item: _Item, after: _Node[Action]) -> _Node[Action]:
        if isinstance(item, str):
            return _Node(edges=[(self._edge(item), after)])
        node: _Node[Action] = _Node()
        for branch in item.branches:
            if item.label:
                assert len(branch) == 1
                assert isinstance(branch[0], str)
                node.edges.append((_Keyword(branch[0], item.label), after))
            else:
                node.edges += self._link(branch, after).edges
        if item.optional:
            node.edges += after.edges
            node.accepts += after.accepts
        return node

    def _edge(self, text: str) -> _Keyword | _Parameter:
        if text.startswith("<"):
            name, _, kind = text[1:-1].partition(":")
            return _Parameter(name, kind, matcher_of(kind, self.types))
        return _Keyword(text)
