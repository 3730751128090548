"""A configuration as ``display set`` prints it: one statement a line."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fabric.devices.base import ReadError

# The words of a statement, without ``set``. Quoted text is one word, quotes included.
Statement = tuple[str, ...]

PREFIX = "PAISOAR-"
COS = "class-of-service"

# A line must fit on a terminal, or its echo is broken.
_MEMBERS_A_LINE = 24

_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')
_PHYSICAL = re.compile(r"(?:et|xe|ge)-\d+/\d+/\d+(?::\d+)?")

# Statements that are entries of a list, by their first words and length: an entry
# stays, empty, when what is below it is deleted, and goes only by itself.
_ENTRIES: tuple[tuple[Statement, int], ...] = (
    ((COS, "interfaces"), 3),
    ((COS, "drop-profiles"), 3),
    ((COS, "schedulers"), 3),
    ((COS, "scheduler-maps"), 3),
    ((COS, "congestion-notification-profile"), 3),
    ((COS, "classifiers", "dscp"), 4),
    ((COS, "forwarding-classes", "class"), 4),
    ((COS, "shared-buffer", "ingress", "buffer-partition"), 5),
    (("interfaces",), 2),
)


def parse(text: str) -> tuple[Statement, ...]:
    """The active statements of a configuration; anything else is passed over.

    ``[ a b ]`` becomes a statement for each member. What a ``deactivate`` line
    names has no effect, and is left out.
    """
    found: dict[Statement, None] = {}
    for line in text.splitlines():
        words = tuple(_WORD.findall(line.strip()))
        if words[:1] == ("set",):
            found.update(dict.fromkeys(_members(words[1:])))
    paths = inactive_paths(text)
    return tuple(s for s in found if not any(s[: len(path)] == path for path in paths))


def inactive_paths(text: str) -> tuple[Statement, ...]:
    """What ``deactivate`` lines name: it stays without effect whatever is set below it."""
    found = (tuple(_WORD.findall(line.strip())) for line in text.splitlines())
    return tuple(words[1:] for words in found if words[:1] == ("deactivate",))


def _members(words: Statement) -> Iterator[Statement]:
    if "[" not in words:
        yield words
        return
    at = words.index("[")
    for word in words[at + 1 :]:
        if word != "]":
            yield (*words[:at], word)


def sha256(text: str) -> str:
    """Hash of a configuration: of its lines, without what stands around them."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    kept = [line for line in lines if line.startswith(("set ", "deactivate ", "protect "))]
    return hashlib.sha256("\n".join(kept).encode()).hexdigest()


def is_physical(name: str) -> bool:
    """Whether this is a port, channelized ones (``et-0/0/4:1``) included; units are not."""
    return _PHYSICAL.fullmatch(name) is not None


def entry_of(statement: Statement) -> Statement | None:
    """The list entry that this statement is in; None where it is in none."""
    for start, length in _ENTRIES:
        if statement[: len(start)] == start and len(statement) >= length:
            return statement[:length]
    return None


@dataclass(frozen=True)
class Config:
    """Statements that can be asked for by path."""

    statements: Sequence[Statement]

    def under(self, *path: str) -> list[Statement]:
        """What stands behind this path in every statement that begins with it."""
        return [s[len(path) :] for s in self.statements if s[: len(path)] == path]

    def value(self, *path: str) -> str | None:
        """The word behind this path; None where there is none."""
        return next((rest[0] for rest in self.under(*path) if rest), None)

    def has(self, *path: str) -> bool:
        """Whether there is this statement, or one below it."""
        return any(True for s in self.statements if s[: len(path)] == path)

    def number(self, *path: str) -> int | None:
        """The number behind this path; None where there is none.

        Raises ReadError where no number stands there: a default must not take its place.
        """
        text = self.value(*path)
        if text is None:
            return None
        if not (text.isascii() and text.isdecimal()):
            raise ReadError(f"{' '.join(path)} is {text!r}, no number")
        return int(text)


def lines(statements: Iterable[Statement]) -> Iterator[str]:
    """The statements as lines without ``set``, lists of code points in one."""
    groups: dict[Statement, list[str]] = {}
    for statement in statements:
        if "code-points" in statement[:-1]:
            groups.setdefault(statement[:-1], []).append(statement[-1])
        else:
            groups[statement] = []
    for statement, members in groups.items():
        if not members:
            yield " ".join(statement)
        for at in range(0, len(members), _MEMBERS_A_LINE):
            some = " ".join(members[at : at + _MEMBERS_A_LINE])
            yield f"{' '.join(statement)} {some if len(members) == 1 else f'[ {some} ]'}"
