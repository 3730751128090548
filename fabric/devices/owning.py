"""Planning a change where ours are named objects and certain lines of certain ports.

What several line-oriented systems share: an object of ours is named by what it
holds, so that it is never redefined under its name, and lines of ports that the
intent names are ours by their form. Everything else is left as it is, always.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from fabric.devices.base import Change
from fabric.devices.delta import Dialect, commands, diff, with_places
from fabric.devices.sections import Section, find
from fabric.errors import DeviceError

PORT = "interface "


@dataclass(frozen=True)
class Ownership:
    """What of a configuration is ours.

    ``heads`` are the words before an object's name, ``prefix`` how our names begin.
    ``port_lines`` match whole lines of a port that are ours. ``negation`` is the word
    that removes.
    ``left_out`` tells of a section and a line in it whether the system may not show
    the line, since it says what goes without saying. ``tables`` are sections of the
    whole switch whose lines are ours too, each with a key of ``key_words`` words.
    """

    prefix: str
    heads: tuple[str, ...]
    port_lines: re.Pattern[str]
    negation: str = "no"
    left_out: Callable[[str, str], bool] = lambda _section, _line: False
    tables: tuple[str, ...] = ()
    key_words: int = 2


def named(head: str, prefix: str, kind: str, children: Sequence[Section]) -> Section:
    """An object whose name comes from the lines that it holds."""
    text = "\n".join(line for child in children for line in child.texts())
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return Section(f"{head}{prefix}{kind}-{digest}", list(children))


def keep(objects: dict[str, Section], section: Section) -> str:
    """Add an object to those by their first line; its name."""
    objects[section.text] = section
    return section.text.rpartition(" ")[2]


def name_of(section: Section, ownership: Ownership) -> str:
    """The name of an object of ours; empty for anything else."""
    for head in ownership.heads:
        if section.text.startswith(head + ownership.prefix):
            return section.text.removeprefix(head).split()[0]
    return ""


def owned(
    running: Sequence[Section], intended: Sequence[Section], ownership: Ownership
) -> list[Section]:
    """The part of a running configuration that these intended sections replace.

    An object of ours that something else still uses, and that is no longer
    intended, is left to it.
    """
    ports = {section.text for section in intended if section.text.startswith(PORT)}
    wanted = {section.text for section in intended}
    kept = _used_elsewhere(running, ports, ownership)
    found = []
    for section in running:
        name = name_of(section, ownership)
        if name:
            if section.text in wanted or name not in kept:
                found.append(section)
        elif section.text in ports:
            lines = [c for c in section.children if ownership.port_lines.fullmatch(c.text)]
            found.append(Section(section.text, lines))
        elif section.text in ownership.tables:
            found.append(section)
    return found


def _used_elsewhere(running: Iterable[Section], ports: set[str], ownership: Ownership) -> set[str]:
    """Names of ours that lines which are not ours use, and what those objects use."""
    used: set[str] = set()
    ours: dict[str, set[str]] = {}
    for section in running:
        words = {
            word
            for child in section.children
            for line in child.texts()
            for word in line.split()
            if word.startswith(ownership.prefix)
        }
        name = name_of(section, ownership)
        if name:
            ours.setdefault(name, set()).update(words)
        elif section.text not in ports:
            used |= words
    while more := {word for name in used for word in ours.get(name, set())} - used:
        used |= more
    return used


def require_ports(device: str, running: Sequence[Section], intended: Sequence[Section]) -> None:
    """DeviceError where the running configuration lacks a port of the intent."""
    for section in intended:
        if section.text.startswith(PORT) and find(running, section.text) is None:
            raise DeviceError(
                device,
                "planning its configuration",
                f"its running configuration shows no {section.text.removeprefix(PORT)}",
                advice="Correct the cable in fabric.yaml, or break the port out on the switch.",
            )


def plan(
    device: str,
    running: Sequence[Section],
    intended: Sequence[Section],
    ownership: Ownership,
    dialect: Dialect,
) -> Change:
    """Commands, their undoing, and a diff of the lines that are ours.

    Raises DeviceError where the device has no such port.
    """
    require_ports(device, running, intended)
    before = owned(running, intended, ownership)
    after = [_as_shown(section, find(before, section.text), ownership) for section in intended]
    before = with_places(before, _places(after, ownership))
    after = with_places(after, _places(before, ownership))
    return Change(
        diff="".join(f"{line}\n" for line in diff(before, after)),
        commands=tuple(_spoken(commands(before, after, dialect, undo=False), ownership)),
        rollback=tuple(_spoken(commands(after, before, dialect, undo=True), ownership)),
    )


def _as_shown(wanted: Section, shown: Section | None, ownership: Ownership) -> Section:
    """An intended section with what goes without saying as the system shows it."""
    if shown is None:
        return wanted
    if name_of(wanted, ownership):
        kept = [
            child
            for child in wanted.children
            if shown.child(child.text) or not ownership.left_out(wanted.text, child.text)
        ]
        return Section(wanted.text, kept)
    if wanted.text in ownership.tables:
        keys = {_key(child, ownership) for child in wanted.children}
        more = [
            child
            for child in shown.children
            if ownership.left_out(wanted.text, child.text) and _key(child, ownership) not in keys
        ]
        return Section(wanted.text, [*wanted.children, *more])
    return wanted


def _key(line: Section, ownership: Ownership) -> tuple[str, ...]:
    return tuple(line.text.split()[: ownership.key_words])


def _places(sections: Iterable[Section], ownership: Ownership) -> list[str]:
    """Sections that are the switch's own, whatever stands in them."""
    return [
        section.text
        for section in sections
        if section.text.startswith(PORT) or section.text in ownership.tables
    ]


def _spoken(lines: Iterable[str], ownership: Ownership) -> Iterator[str]:
    for line in lines:
        text = line.lstrip()
        if text.startswith("no "):
            text = f"{ownership.negation} {text.removeprefix('no ')}"
        yield line[: len(line) - len(line.lstrip())] + text
