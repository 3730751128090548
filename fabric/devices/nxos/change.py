"""The smallest change from a running configuration to the intended one.

hier_config finds the difference between the lines that are ours now and the
lines that should be; here they are put into an order that a switch accepts:
objects are defined before they are attached and detached before they are
deleted. A policy is detached before another takes its place, which NX-OS
accepts whether or not it would also replace it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hier_config import get_hconfig_driver, get_hconfig_fast_load
from hier_config.models import (
    IdempotentCommandsRule,
    MatchRule,
    NegationDefaultWithRule,
    Platform,
)

from fabric.devices.base import Change
from fabric.devices.nxos.config import Section, find, to_lines
from fabric.devices.nxos.owned import adopt, owned
from fabric.devices.nxos.render import SHUTDOWN_MULTIPLIER
from fabric.errors import DeviceError

# Settings with one value each: a new one takes the place of the old.
_ONE_VALUE = (
    (MatchRule(startswith=SHUTDOWN_MULTIPLIER),),
    (MatchRule(startswith="priority-flow-control watch-dog-interval"),),
    (MatchRule(startswith="interface "), MatchRule(startswith="mtu ")),
    (MatchRule(startswith="interface "), MatchRule(startswith="flowcontrol receive ")),
    (MatchRule(startswith="interface "), MatchRule(startswith="flowcontrol send ")),
    (MatchRule(startswith="interface "), MatchRule(startswith="priority-flow-control mode ")),
    (
        MatchRule(startswith="interface "),
        MatchRule(startswith="priority-flow-control watch-dog-interval "),
    ),
    *(
        (
            MatchRule(startswith="policy-map "),
            MatchRule(startswith="class "),
            MatchRule(startswith=s),
        )
        for s in ("mtu ", "set qos-group ", "bandwidth remaining ", "random-detect ", "pause ")
    ),
)
# `off` is the default of link-level flow control, and how it is switched off.
_OFF = tuple(
    NegationDefaultWithRule(
        match_rules=(
            MatchRule(startswith="interface "),
            MatchRule(startswith=f"flowcontrol {direction} "),
        ),
        use=f"flowcontrol {direction} off",
    )
    for direction in ("receive", "send")
)

# Sections that are the switch's; only lines in them are ours.
_PLACES = ("interface ", "system qos")

_SYSTEM, _INTERFACE = 4, 5
_RANK = (
    ("no policy-map", 8),
    ("no class-map", 9),
    ("no priority-flow-control", 1),
    ("priority-flow-control", 1),
    ("class-map", 2),
    ("policy-map", 3),
    ("system qos", _SYSTEM),
    ("interface ", _INTERFACE),
)


def change(device: str, running: Sequence[Section], intended: Sequence[Section]) -> Change:
    """Commands, their undoing, and a diff of the lines that are ours.

    Raises DeviceError where the device has no such port.
    """
    for section in intended:
        if section.text.startswith("interface ") and find(running, section.text) is None:
            name = section.text.removeprefix("interface ")
            raise DeviceError(
                device,
                "planning its configuration",
                f"its running configuration shows no {name}",
                advice="Correct the cable in fabric.yaml, or break the port out on the switch.",
            )
    before = owned(running, intended)
    after = adopt(running, intended)
    places = [s.text for s in (*before, *after) if s.text.startswith(_PLACES)]
    before, after = _with_places(before, places), _with_places(after, places)
    return Change(
        diff="".join(f"{line}\n" for line in _diff(before, after)),
        commands=tuple(_commands(before, after, undo=False)),
        rollback=tuple(_commands(after, before, undo=True)),
    )


def _with_places(sections: Sequence[Section], places: Iterable[str]) -> list[Section]:
    """The sections, and an empty one for each place that they lack.

    Without it a place that is ours on one side only would differ as a whole, and
    be removed as a whole: ``no interface Ethernet1/1``.
    """
    found = list(sections)
    for text in dict.fromkeys(places):
        if find(found, text) is None:
            found.append(Section(text))
    return found


def _commands(before: Sequence[Section], after: Sequence[Section], *, undo: bool) -> Iterator[str]:
    driver = get_hconfig_driver(Platform.GENERIC)
    driver.rules.idempotent_commands.extend(
        IdempotentCommandsRule(match_rules=rules) for rules in _ONE_VALUE
    )
    driver.rules.negate_with.extend(_OFF)
    now = get_hconfig_fast_load(driver, list(to_lines(before)))
    then = get_hconfig_fast_load(driver, list(to_lines(after)))
    delta = now.config_to_get_to(then)
    for child in sorted(delta.children, key=lambda child: _rank(child.text, undo=undo)):
        yield from _flat(child, 0)


def _rank(text: str, *, undo: bool) -> int:
    rank = next(rank for start, rank in _RANK if text.startswith(start))
    if undo and rank in (_SYSTEM, _INTERFACE):
        # Ports stop to use the lossless class before it is taken away.
        return _SYSTEM + _INTERFACE - rank
    return rank


def _flat(node: Any, depth: int) -> Iterator[str]:  # noqa: ANN401 - an untyped HConfigChild
    yield "  " * depth + node.text
    for child in sorted(node.children, key=lambda child: _turn(child.text)):
        yield from _flat(child, depth + 1)


def _turn(text: str) -> int:
    """What goes comes first, then what is switched off.

    PFC and link-level pause exclude each other.
    """
    if text.startswith("no "):
        return 0
    return 1 if text.endswith((" off", " auto")) else 2


def _diff(before: Iterable[Section], after: Sequence[Section], depth: int = 0) -> Iterator[str]:
    """Lines with ``-``, ``+`` or, for the section that they stand in, a blank."""
    old = list(before)
    indent = "  " * depth
    for section in old:
        same = find(after, section.text)
        if same is None:
            yield from (f"-{indent}{line}" for line in to_lines([section]))
        else:
            below = list(_diff(section.children, same.children, depth + 1))
            if below:
                yield f" {indent}{section.text}"
                yield from below
    for section in after:
        if find(old, section.text) is None:
            yield from (f"+{indent}{line}" for line in to_lines([section]))
