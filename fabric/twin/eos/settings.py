"""Declaring settings: a command that keeps its line in a slot, and what takes it away."""

from __future__ import annotations

from collections.abc import Callable

from fabric.twin.cli.grammar import Match
from fabric.twin.eos.cli import Cli, command

Check = Callable[[Cli, Match], None]


def setting(
    modes: str | tuple[str, ...],
    slot: str,
    *syntaxes: str,
    short: str = "",
    default: str = "",
    check: Check | None = None,
) -> None:
    """A setting with one line in each of these modes.

    ``slot`` may name parameters of the command (``ntp server {server}``), each
    value of which is a setting of its own. ``no`` and ``default`` take the whole
    line or ``short``. A line equal to ``default`` is what EOS does anyway and is
    not kept. ``check`` raises CliError for what parses and cannot be.
    """

    def keep(cli: Cli, match: Match) -> None:
        if check is not None:
            check(cli, match)
        name = slot.format(**match.values)
        for block in cli.blocks():
            block.lines.pop(name, None)
            if match.text != default.format(**match.values):
                block.lines[name] = match.text

    def forget(cli: Cli, match: Match) -> None:
        for block in cli.blocks():
            block.lines.pop(slot.format(**match.values), None)

    for mode in (modes,) if isinstance(modes, str) else modes:
        for syntax in syntaxes:
            command.add(mode, syntax, keep)
            command.add(mode, f"(no | default) {syntax}", forget)
        if short:
            command.add(mode, f"(no | default) {short}", forget)


def switchable(
    modes: str | tuple[str, ...], slot: str, syntax: str, *, on: bool, short: str = ""
) -> None:
    """A setting that is on or off: ``on`` is the default, the other is printed.

    ``no`` and its line are a setting of their own here (``no switchport``).
    """

    def choose(cli: Cli, match: Match) -> None:
        for block in cli.blocks():
            block.lines.pop(slot, None)
            if match.words[:1] != ("default",) and match.no == on:
                block.lines[slot] = f"no {slot}" if match.no else slot

    for mode in (modes,) if isinstance(modes, str) else modes:
        command.add(mode, syntax, choose)
        command.add(mode, f"(no | default) {short or syntax}", choose)
