"""A running configuration as a tree of lines, for systems that nest by indentation.

Comments (``!``) are dropped, a banner is one line, whatever it contains.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fabric.devices.base import ReadError


@dataclass(slots=True)
class Section:
    """One line, and the lines below it."""

    text: str
    children: list[Section] = field(default_factory=list)

    def child(self, text: str) -> Section | None:
        """The line with exactly this text below this one."""
        return find(self.children, text)

    def lines(self) -> list[str]:
        """The lines right below it."""
        return [child.text for child in self.children]

    def texts(self) -> Iterator[str]:
        """The line itself and every line below it."""
        yield self.text
        for child in self.children:
            yield from child.texts()


def find(sections: Iterable[Section], text: str) -> Section | None:
    """The first of these sections with exactly this text."""
    return next((section for section in sections if section.text == text), None)


def parse(text: str) -> list[Section]:
    """The top-level lines of a configuration, each with what is below it."""
    top: list[Section] = []
    path: list[tuple[int, Section]] = []
    lines = iter(text.splitlines())
    for raw in lines:
        line = raw.rstrip()
        stripped = line.lstrip()
        if not stripped or stripped.startswith("!"):
            continue
        if line.startswith("banner "):
            section = Section("\n".join(_banner(line, lines)))
            top.append(section)
            path = [(0, section)]
            continue
        indent = len(line) - len(stripped)
        while path and path[-1][0] >= indent:
            path.pop()
        section = Section(" ".join(stripped.split()))
        (path[-1][1].children if path else top).append(section)
        path.append((indent, section))
    return top


def _banner(first: str, lines: Iterator[str]) -> Iterator[str]:
    """A banner's lines up to its delimiter: the character after its name, or ``EOF`` (EOS)."""
    yield first
    words = first.split(maxsplit=2)
    delimiter = words[2][0] if len(words) == 3 else "EOF"
    if len(words) == 3 and delimiter in words[2][1:]:
        return
    for line in lines:
        yield line
        if delimiter in line:
            return


def to_lines(sections: Iterable[Section], depth: int = 0, indent: str = "  ") -> Iterator[str]:
    """The lines of these sections, each level indented by ``indent``."""
    for section in sections:
        yield indent * depth + section.text
        yield from to_lines(section.children, depth + 1, indent)


def to_text(sections: Sequence[Section], indent: str = "  ") -> str:
    """The text of these sections; empty for none."""
    return "".join(f"{line}\n" for line in to_lines(sections, indent=indent))


def without_comments(text: str) -> str:
    """The text without comment and empty lines: what two configurations differ in.

    Times and the command that was typed are comments.
    """
    lines = (line.rstrip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("!"))


def sha256(text: str) -> str:
    """Hash of a configuration's text without comments."""
    return hashlib.sha256(without_comments(text).encode()).hexdigest()


def number(lines: Iterable[str], start: str, where: str) -> int | None:
    """The number behind these words in the last line that has them; None without one.

    Raises ReadError where no number stands there: a default must not take its place.
    """
    found = None
    for line in lines:
        if line.startswith(f"{start} "):
            word = line.removeprefix(f"{start} ").split()[0]
            if not (word.isascii() and word.isdecimal()):
                raise ReadError(f"{where}: no number in {line!r}")
            found = int(word)
    return found
