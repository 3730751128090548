"""Pinned paths: which switches a flow's packets pass, instead of what a hash chooses.

One flow a line: source host, target host, the switches joined by ``-``, and the
same for the ACKs on their way back where that is pinned too::

    0 13 32-37-33
    1 14 32-36-33 33-37-32

Or a table with commas whose header names the columns ``src``, ``dst`` and
``switch_path`` (``ack_path`` if there is one), as ``perflow.csv`` of the reference
runs. Its ``run`` column, if any, may name several runs: rows of flows that the
flow file does not have are passed over.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fabric.errors import InputError
from fabric.sim.reference import columns as c
from fabric.sim.reference.flowfile import FlowFile
from fabric.sim.reference.topofile import whole, words_by_line
from fabric.sim.reference.wiring import Wiring


@dataclass(frozen=True, slots=True)
class Pin:
    """Engine words of a flow's way out and of its ACKs' way back; None: by hash."""

    out: tuple[int, ...] | None = None
    back: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    source: str
    target: str
    out: str
    back: str


def read_paths(path: Path, wiring: Wiring, flows: FlowFile) -> tuple[Pin, ...]:
    """One pin for each flow; InputError with the line of a path that packets cannot take."""
    wanted = {(flow.source, flow.target) for flow in flows.flows}
    pins: dict[tuple[int, int], tuple[_Row, Pin]] = {}
    rows, table = _rows(path)
    for row in rows:
        try:
            ends = whole(row.source, "the source"), whole(row.target, "the target")
            if ends not in wanted:
                if table:
                    continue
                raise ValueError(f"{flows.path.name} has no flow from {ends[0]} to {ends[1]}")
            out = _hops(wiring, *ends, row.out)
            back = _hops(wiring, ends[1], ends[0], row.back) if row.back else None
            if ends in pins and pins[ends][1] != Pin(out, back):
                raise ValueError(f"line {pins[ends][0].line} pins this flow to another path")
            pins[ends] = row, Pin(out, back)
        except ValueError as error:
            raise InputError(str(error), file=path, line=row.line) from error
    return tuple(
        pins[flow.source, flow.target][1] if (flow.source, flow.target) in pins else Pin()
        for flow in flows.flows
    )


def _rows(path: Path) -> tuple[Iterator[_Row], bool]:
    lines = list(words_by_line(path))
    if lines and "," in lines[0][1][0]:
        return _table(path), True
    return _plain(path), False


def _plain(path: Path) -> Iterator[_Row]:
    for line, words in words_by_line(path):
        if len(words) not in (3, 4):
            raise InputError(
                f"{len(words)} words; a path has 3 or 4: SOURCE TARGET PATH [ACK_PATH]",
                file=path,
                line=line,
            )
        yield _Row(line, words[0], words[1], words[2], words[3] if len(words) == 4 else "")


def _table(path: Path) -> Iterator[_Row]:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        missing = {"src", "dst", "switch_path"} - set(reader.fieldnames or ())
        if missing:
            raise InputError(f"no column {', '.join(sorted(missing))}", file=path, line=1)
        for row in reader:
            if any(row[name] is None for name in ("src", "dst", "switch_path")):
                raise InputError("a value is missing", file=path, line=reader.line_num)
            back = row.get("ack_path") or ""
            yield _Row(reader.line_num, row["src"], row["dst"], row["switch_path"], back)


def _hops(wiring: Wiring, source: int, target: int, text: str) -> tuple[int, ...]:
    """Engine words of a path; ValueError where it is none."""
    switches = [whole(word, "a switch of the path") for word in text.split("-")]
    for switch in switches:
        if switch not in wiring.switch_set:
            raise ValueError(f"{switch} in the path {text} is no switch")
        if switches.count(switch) > 1:
            raise ValueError(f"the path {text} is cyclic: it passes switch {switch} twice")
    if len(switches) >= c.MAX_HOPS:
        raise ValueError(f"the path {text} passes more than {c.MAX_HOPS - 1} switches")
    nodes = [source, *switches, target]
    words: list[int] = []
    for before, switch, after in zip(nodes, nodes[1:], nodes[2:], strict=False):
        for one, other in ((before, switch), (switch, after)):
            if (one, other) not in wiring.to_peer:
                raise ValueError(f"the path {text}: {one} and {other} are not linked")
        words += [wiring.to_peer[switch, after].row, wiring.to_peer[switch, before].row]
    return (*words, c.NONE, wiring.of_node[target][0].row)
