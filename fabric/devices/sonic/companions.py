"""What belongs to one command of a change, where only a part of the change is sent."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from fabric.devices.sonic.change import CLI
from fabric.devices.sonic.database import place

_CELLS = ("QUEUE", "BUFFER_PG")


@dataclass(frozen=True, slots=True)
class _Command:
    verb: str
    table: str
    key: str
    words: tuple[str, ...]

    @property
    def cells(self) -> set[tuple[str, int]]:
        """Ports and indices that a row of queues or priority groups speaks of."""
        ports, indices = place(self.key)
        return {(port, index) for port in ports for index in indices}


def companions(line: str, lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """Commands to be sent ahead of this one, and others of the change that belong to it.

    A row of several queues or ports is removed before one of them gets a row of its
    own, and the others get theirs. Before PFC and a port's buffers are set, its cable
    has no length, or buffermgrd puts its own buffer there.
    """
    mine = _parsed(line)
    changed = [(other, _parsed(other)) for other in lines]
    if mine.table in _CELLS:
        along = [
            other
            for other, command in changed
            if command.table == mine.table
            and "DEL" in (mine.verb, command.verb)
            and mine.cells & command.cells
        ]
    else:
        along = [
            other
            for other, command in changed
            if "pfc_enable" in mine.words
            and command.table == "BUFFER_PG"
            and mine.key in place(command.key)[0]
        ]
    return list(_cables(mine, [command for _, command in changed])), along


def _cables(mine: _Command, changed: Sequence[_Command]) -> Iterator[str]:
    if mine.table == "BUFFER_PG" and mine.verb == "HSET":
        ports = place(mine.key)[0]
    elif "pfc_enable" in mine.words:
        ports = (mine.key,)
    else:
        return
    for command in changed:
        if command.table == "CABLE_LENGTH":
            for port in ports:
                if port in command.words[::2]:
                    length = command.words[command.words.index(port) + 1]
                    yield f"{CLI} HSET 'CABLE_LENGTH|{command.key}' {port} {length}"


@lru_cache(maxsize=4096)
def _parsed(line: str) -> _Command:
    verb, row, *words = shlex.split(line.removeprefix(CLI))
    table, _, key = row.partition("|")
    return _Command(verb, table, key, tuple(words))
