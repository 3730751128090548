"""Output filters: ``show ... | include X``, ``| section X``, ``| no-more`` and so on.

Source: Cisco Nexus 9000 NX-OS fundamentals guide, "Filtering show command
output". Patterns are regular expressions; quotes around one are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from fabric.twin.cli.grammar import RefusedError
from fabric.twin.cli.values import AMBIGUOUS, INCOMPLETE, INVALID

Filter = Callable[[str], str]


def include(text: str, pattern: re.Pattern[str]) -> list[str]:
    """Lines that match."""
    return [line for line in text.splitlines() if pattern.search(line)]


def exclude(text: str, pattern: re.Pattern[str]) -> list[str]:
    """Lines that do not match."""
    return [line for line in text.splitlines() if not pattern.search(line)]


def begin(text: str, pattern: re.Pattern[str]) -> list[str]:
    """Everything from the first match on."""
    lines = text.splitlines()
    for index, line in enumerate(lines):
        if pattern.search(line):
            return lines[index:]
    return []


def section(text: str, pattern: re.Pattern[str]) -> list[str]:
    """Lines that match, each with the deeper indented lines below it."""
    kept: list[str] = []
    inside: int | None = None
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if inside is not None and line.strip() and indent > inside:
            kept.append(line)
        elif pattern.search(line):
            kept.append(line)
            inside = indent
        else:
            inside = None
    return kept


_PATTERN_FILTERS = {
    "include": include,
    "grep": include,
    "egrep": include,
    "exclude": exclude,
    "begin": begin,
    "section": section,
}
_PLAIN = ("no-more", "count")
_LAST = "last"


def split(line: str) -> tuple[str, tuple[Filter, ...]]:
    """A line without its filters, and the filters in order.

    Raises RefusedError for a filter that NX-OS would not take.
    """
    head, *parts = line.split("|")
    found: list[Filter] = []
    column = len(head) + 1
    for part in parts:
        found.append(_filter(part, column))
        column += len(part) + 1
    return head.rstrip(), tuple(found)


def _filter(text: str, column: int) -> Filter:
    start = column + len(text) - len(text.lstrip())
    name, _, argument = text.strip().partition(" ")
    argument = argument.strip().strip("\"'")
    names = [*_PATTERN_FILTERS, *_PLAIN, _LAST]
    if not name:
        raise RefusedError(INCOMPLETE, column + len(text))
    matches = [name] if name in names else [n for n in names if n.startswith(name.lower())]
    if not matches:
        raise RefusedError(INVALID, start)
    if len(matches) > 1:
        raise RefusedError(AMBIGUOUS, start)
    name = matches[0]
    if name in _PLAIN and argument:
        raise RefusedError(INVALID, start + len(name) + 1)
    if name == "no-more":
        return lambda output: output
    if name == "count":
        return lambda output: f"{len(output.splitlines())}\n"
    if not argument:
        raise RefusedError(INCOMPLETE, column + len(text.rstrip()))
    if name == _LAST:
        if not argument.isdigit():
            raise RefusedError(INVALID, start + len(name) + 1)
        return lambda output: _joined(output.splitlines()[-int(argument) :])
    try:
        pattern = re.compile(argument)
    except re.error:
        raise RefusedError(INVALID, start + len(name) + 1) from None
    return lambda output: _joined(_PATTERN_FILTERS[name](output, pattern))


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
