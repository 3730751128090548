"""What readers of configurations in lines share: the lines of a port, and facts of a switch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from fabric.devices import sections as tree
from fabric.devices.base import Outputs
from fabric.devices.sections import Section
from fabric.unread import Fact, lacking


class PortLines:
    """The lines of one port, and the objects of the switch that they name.

    What they do not tell goes to ``unread``.
    """

    def __init__(
        self, name: str, section: Section, sections: Sequence[Section], unread: list[str]
    ) -> None:
        self.name = name
        self.lines = section.lines()
        self.sections = sections
        self.unread = unread

    def first(self, pattern: str) -> str:
        """The first group of the first line that is of this form; empty for none."""
        return first(self.lines, pattern)

    def number(self, start: str) -> int | None:
        """The number behind these words. ReadError where no number stands there."""
        return tree.number(self.lines, start, self.name)

    def lack(self, fact: Fact, why: str, of: str = "") -> None:
        """Note that a fact is not known; ``of`` is its queue or priority."""
        self.unread.append(lacking(self.name, fact, why, of))

    def object_lines(self, text: str, fact: Fact, of: str = "") -> list[str]:
        """The lines of an object that the port names, which tells this fact."""
        found = tree.find(self.sections, text)
        if found is None:
            self.lack(fact, f"{text} is not shown", of)
            return []
        return found.lines()


def first(lines: Iterable[str], pattern: str) -> str:
    """The first group of the first of these lines that is of this form; empty for none."""
    return next((m[1] for line in lines if (m := re.fullmatch(pattern, line)) and m[1]), "")


def lost_ports(
    sections: Sequence[Section],
    configured: Mapping[str, Section],
    seen: Iterable[str],
    *,
    broken: bool = False,
) -> set[str]:
    """Ports whose section a configuration that was cut off lacks, wholly or in part.

    Of systems that show every front port, and lines of other kinds behind them: then the
    rest is there. ``seen`` are the ports that other outputs show; ``broken`` says that the
    last line is not a whole one.
    """
    if configured and not sections[-1].text.startswith("interface "):
        return set()
    lost = set(seen) - set(configured)
    if lost or broken:
        lost |= {name for name, section in configured.items() if section is sections[-1]}
    return lost


def ports_of(
    sections: Iterable[Section], name_of: Callable[[str], str], is_port: Callable[[str], bool]
) -> Iterator[tuple[str, Section]]:
    """Name and section of every front port of a configuration."""
    for section in sections:
        if section.text.startswith("interface "):
            name = name_of(section.text.removeprefix("interface "))
            if is_port(name):
                yield name, section


def shown(
    outputs: Outputs,
    command: str,
    pattern: str,
    fact: str,
    unread: list[str],
    *,
    fold: bool = False,
) -> str:
    """What a command shows of the switch itself; empty, and unread, where it does not."""
    flags = re.MULTILINE | (re.IGNORECASE if fold else 0)
    match = re.search(pattern, outputs.get(command, ""), flags)
    if match is None:
        unread.append(f"{fact}: '{command}' does not show it")
    return match[1] if match else ""


def is_saved(
    outputs: Outputs,
    running: str,
    startup: str,
    sha256: Callable[[str], str],
    unread: list[str],
) -> bool | None:
    """Whether the switch boots with what it runs; None where that is not shown."""
    if startup not in outputs:
        unread.append(f"startup configuration: '{startup}' was not answered")
        return None
    return sha256(outputs[startup]) == sha256(outputs[running])
