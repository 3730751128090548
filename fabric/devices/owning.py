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
    ``port_lines`` are the lines of a port that are ours, ``top_lines`` those outside
    of any section; both match a whole line. ``negation`` is the word that removes.
    ``left_out`` tells of a line of our objects whether the system may not show it,
    since it says what goes without saying.
    """

    prefix: str
    heads: tuple[str, ...]
    port_lines: re.Pattern[str]
    top_lines: re.Pattern[str] = re.compile(r"(?!)")
    negation: str = "no"
    left_out: Callable[[str], bool] = lambda _line: False


def named(head: str, prefix: str, kind: str, children: Sequence[Section]) -> Section:
    """An object whose name comes from the lines that it holds."""
    text = "\n".join(line for child in children for line in child.texts())
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return Section(f"{head}{prefix}{kind}-{digest}", list(children))


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
        elif ownership.top_lines.fullmatch(section.text) and not section.children:
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
    for section in intended:
        if section.text.startswith(PORT) and find(running, section.text) is None:
            raise DeviceError(
                device,
                "planning its configuration",
                f"its running configuration shows no {section.text.removeprefix(PORT)}",
                advice="Correct the cable in fabric.yaml, or break the port out on the switch.",
            )
    before = owned(running, intended, ownership)
    after = [_as_shown(section, find(before, section.text), ownership) for section in intended]
    before = with_places(before, _places(after))
    after = with_places(after, _places(before))
    return Change(
        diff="".join(f"{line}\n" for line in diff(before, after)),
        commands=tuple(_spoken(commands(before, after, dialect, undo=False), ownership)),
        rollback=tuple(_spoken(commands(after, before, dialect, undo=True), ownership)),
    )


def _as_shown(wanted: Section, shown: Section | None, ownership: Ownership) -> Section:
    """An intended object without the lines that the system does not show of it."""
    if shown is None or not name_of(wanted, ownership):
        return wanted
    kept = [c for c in wanted.children if shown.child(c.text) or not ownership.left_out(c.text)]
    return Section(wanted.text, kept)


def _places(sections: Iterable[Section]) -> list[str]:
    return [section.text for section in sections if section.text.startswith(PORT)]


def _spoken(lines: Iterable[str], ownership: Ownership) -> Iterator[str]:
    for line in lines:
        text = line.lstrip()
        if text.startswith("no "):
            text = f"{ownership.negation} {text.removeprefix('no ')}"
        yield line[: len(line) - len(line.lstrip())] + text
