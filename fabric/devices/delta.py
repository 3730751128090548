"""From one configuration to another: the commands between them, and a diff for people.

hier_config finds the difference between two trees of lines; a ``Dialect`` says
what a system wants to be told instead of a plain ``no``, and in which order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from fabric.devices.sections import Section, find, to_lines

if TYPE_CHECKING:
    from hier_config.models import MatchRule

# The beginnings of a line and of those above it, outermost first.
Chain = tuple[str, ...]


@dataclass(frozen=True)
class Dialect:
    """How a system is told of a change.

    ``one_value``: settings with one value each, a new one takes the place of the
    old. ``negations``: what removes a setting where that is not ``no`` and its
    line. ``rank`` orders sections (``undo`` is True for the way back), ``turn`` the
    lines in one.
    """

    one_value: tuple[Chain, ...]
    negations: tuple[tuple[Chain, str], ...]
    rank: Callable[[str, bool], int]
    turn: Callable[[str], int]


def commands(
    before: Sequence[Section], after: Sequence[Section], dialect: Dialect, *, undo: bool
) -> Iterator[str]:
    """Configuration lines that make ``after`` of ``before``, indented by two a level."""
    # Imported where something changes: those who only read, as the gate, are quicker.
    from hier_config import get_hconfig_fast_load  # noqa: PLC0415

    driver = _driver(dialect)
    now = get_hconfig_fast_load(driver, list(to_lines(before)))
    then = get_hconfig_fast_load(driver, list(to_lines(after)))
    delta = now.config_to_get_to(then)
    for child in sorted(delta.children, key=lambda child: dialect.rank(child.text, undo)):
        yield from _flat(child, 0, dialect)


@cache
def _driver(dialect: Dialect) -> Any:  # noqa: ANN401 - an untyped library
    from hier_config import get_hconfig_driver  # noqa: PLC0415
    from hier_config.models import (  # noqa: PLC0415
        IdempotentCommandsRule,
        NegationDefaultWithRule,
        Platform,
    )

    driver = get_hconfig_driver(Platform.GENERIC)
    driver.rules.idempotent_commands.extend(
        IdempotentCommandsRule(match_rules=_rules(chain)) for chain in dialect.one_value
    )
    driver.rules.negate_with.extend(
        NegationDefaultWithRule(match_rules=_rules(chain), use=use)
        for chain, use in dialect.negations
    )
    return driver


def _rules(chain: Chain) -> tuple[MatchRule, ...]:
    from hier_config.models import MatchRule  # noqa: PLC0415

    return tuple(MatchRule(startswith=start) for start in chain)


def _flat(node: Any, depth: int, dialect: Dialect) -> Iterator[str]:  # noqa: ANN401 - likewise
    yield "  " * depth + node.text
    for child in sorted(node.children, key=lambda child: dialect.turn(child.text)):
        yield from _flat(child, depth + 1, dialect)


def with_places(sections: Sequence[Section], places: Iterable[str]) -> list[Section]:
    """The sections, and an empty one for each place that they lack.

    Without it a place that is ours on one side only would differ as a whole, and
    be removed as a whole: ``no interface Ethernet1/1``.
    """
    found = list(sections)
    for text in dict.fromkeys(places):
        if find(found, text) is None:
            found.append(Section(text))
    return found


def diff(before: Iterable[Section], after: Sequence[Section], depth: int = 0) -> Iterator[str]:
    """Lines with ``-``, ``+`` or, for the section that they stand in, a blank."""
    old = list(before)
    indent = "  " * depth
    for section in old:
        same = find(after, section.text)
        if same is None:
            yield from (f"-{indent}{line}" for line in to_lines([section]))
        else:
            below = list(diff(section.children, same.children, depth + 1))
            if below:
                yield f" {indent}{section.text}"
                yield from below
    for section in after:
        if find(old, section.text) is None:
            yield from (f"+{indent}{line}" for line in to_lines([section]))
