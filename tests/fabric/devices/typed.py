"""A configuration that lines are typed into, without a vendor's grammar.

For systems that are not emulated: ``no`` (or ``undo``) and a line's beginning remove
every setting of the section that begins so, and a new value takes the place of the
old one where the test says that there is only one. ``removes`` says what a removal
takes away where that is not each line with its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from fabric.devices.sections import Section, find, parse, to_lines

Line = tuple[str, ...]


class Typed:
    """The lines of a switch; ``one_value`` are beginnings of settings with one value each."""

    def __init__(
        self,
        text: str,
        *,
        negation: str = "no",
        removes: Mapping[str, str] | None = None,
        one_value: tuple[str, ...] = (
            "mtu ",
            "flowcontrol receive ",
            "flowcontrol transmit ",
            "priority-flow-control mode ",
            "service-policy input type network-qos ",
            "service-policy output type queuing ",
            "trust-map ",
            "qos-map traffic-class ",
        ),
    ) -> None:
        self._top = parse(text)
        self._negation = f"{negation} "
        self._one_value = one_value
        self._removes = removes or {}

    def text(self) -> str:
        """All of it, as a running configuration shows it."""
        return "".join(f"{line}\n" for line in to_lines(self._top, indent=" "))

    def lines(self) -> set[Line]:
        """Every line with those above it; empty ports and sections count."""
        return set(_lines(self._top, ()))

    def enter(self, commands: Iterable[str]) -> None:
        """Type these lines, whose indentation says in which section they are."""
        path: list[list[Section]] = [self._top]
        for command in commands:
            text = command.lstrip()
            depth = (len(command) - len(text)) // 2
            del path[depth + 1 :]
            path.append(self._type(path[depth], text, top=depth == 0))

    def _type(self, place: list[Section], text: str, *, top: bool) -> list[Section]:
        if text.startswith(self._negation):
            start = text.removeprefix(self._negation)
            pattern = self._removes.get(start, rf"{re.escape(start)}(?: .*)?")
            gone = [section for section in place if re.fullmatch(pattern, section.text)]
            assert gone, f"nothing to remove: {text}"
            place[:] = [section for section in place if section not in gone]
            return []
        found = find(place, text)
        if found is None:
            kind = "" if top else next((s for s in self._one_value if text.startswith(s)), "")
            if kind:
                place[:] = [s for s in place if not s.text.startswith(kind)]
            found = Section(text)
            place.append(found)
        return found.children


def _lines(sections: Iterable[Section], above: Line) -> Iterable[Line]:
    for section in sections:
        yield (*above, section.text)
        yield from _lines(section.children, (*above, section.text))
