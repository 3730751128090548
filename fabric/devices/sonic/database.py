"""CONFIG_DB as JSON holds it: table, key, field, value.

Keys of port tables are ``PORT|INDEX``; an index may be a range (``3-4``), and
releases before 202012 put several ports into one key (``Ethernet0,Ethernet4|3``).
Releases before 202111 wrote references as ``[TABLE|NAME]``. Source: SONiC wiki,
"Configuration"; sonic-net/sonic-buildimage src/sonic-yang-models.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fabric.devices.base import ReadError

Row = dict[str, str]
Table = dict[str, Row]
Tables = dict[str, Table]

# What FRR says of itself in the same document: no part of CONFIG_DB.
_NOT_CONFIG_DB = {"bgpraw"}
_REFERENCE = re.compile(r"\[[A-Z0-9_]+\|(.+)\]")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def parse(text: str, command: str) -> Tables:
    """The tables of a JSON document; what stands before its first brace is skipped.

    Raises ReadError where there is no JSON object of objects of objects.
    """
    start = text.find("{")
    try:
        data, _ = json.JSONDecoder().raw_decode(text, start if start >= 0 else len(text))
    except ValueError as error:
        raise ReadError(f"'{command}' printed no JSON: {error}") from error
    tables: Tables = {}
    for name, table in data.items():
        if name in _NOT_CONFIG_DB:
            continue
        if not isinstance(table, dict) or not all(isinstance(row, dict) for row in table.values()):
            raise ReadError(f"'{command}': {name} is no table of CONFIG_DB")
        tables[name] = {
            key: {field: _text(value) for field, value in row.items()} for key, row in table.items()
        }
    return tables


def _text(value: Any) -> str:  # noqa: ANN401 - whatever JSON holds
    if isinstance(value, list):  # CONFIG_DB's own notation: ``field@`` in Redis
        return ",".join(map(str, value))
    return str(value)


def to_text(tables: Mapping[str, Mapping[str, Mapping[str, str]]]) -> str:
    """JSON as ``sonic-cfggen --print-data`` lays it out, empty tables left out."""
    held = {name: table for name, table in tables.items() if table}
    return json.dumps(held, indent=4, sort_keys=True) + "\n"


def sha256(tables: Tables) -> str:
    """Hash of what the tables hold, whatever the order."""
    return hashlib.sha256(to_text(tables).encode()).hexdigest()


def copy(tables: Tables) -> Tables:
    """A copy that shares nothing."""
    return {name: {key: dict(row) for key, row in table.items()} for name, table in tables.items()}


def reference(value: str) -> str:
    """The name that a field refers to, in the old notation or the new."""
    match = _REFERENCE.fullmatch(value)
    return match[1] if match else value


def numbers(text: str) -> tuple[int, ...]:
    """Numbers of ``3``, ``3-4`` or ``3,4``; empty for anything else."""
    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            return ()
        low = int(match[1])
        found.update(range(low, int(match[2] or low) + 1))
    return tuple(sorted(found))


def integer(row: Row, field: str, where: str) -> int | None:
    """The number in a field, None where the row has none; ReadError where it is none."""
    text = row.get(field, "")
    if not text:
        return None
    if not re.fullmatch(r"-?\d+", text, re.ASCII):
        raise ReadError(f"{where}: {field} is {text!r}, no number")
    return int(text)


def place(key: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Ports and indices of a key of ``QUEUE`` or ``BUFFER_PG``; both empty for other keys."""
    ports, bar, index = key.rpartition("|")
    if not bar or "|" in ports:  # VOQ keys name a host and an ASIC, too
        return (), ()
    return tuple(ports.split(",")), numbers(index)


def cells(table: Mapping[str, Row], port: str) -> dict[int, Row]:
    """What each index of a port has; a key of one port and one index goes before others."""
    found: dict[int, Row] = {}
    for key, row in sorted(table.items(), key=lambda item: -_width(item[0])):
        ports, indices = place(key)
        if port in ports:
            found.update(dict.fromkeys(indices, row))
    return found


def _width(key: str) -> int:
    ports, indices = place(key)
    return len(ports) * len(indices)


def spans(indices: Iterable[int]) -> Iterator[str]:
    """Indices as few keys as possible name them: ``0``, ``3-4``."""
    run: list[int] = []
    for index in [*sorted(indices), None]:
        if index is not None and (not run or index == run[-1] + 1):
            run.append(index)
            continue
        if run:
            yield str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}"
        run = [] if index is None else [index]
