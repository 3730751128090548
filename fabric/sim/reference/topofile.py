"""Topologies in HPCC's format.

First line: number of nodes, switches and links; second line (it may go over
several): the switches' numbers; then one link a line: two nodes, rate, delay,
error rate. Blank lines and text after ``#`` are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fabric.errors import InputError

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMGT]?)(?:bps|b/s|bit/s)")
_RATES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_DELAY = re.compile(r"(\d+(?:\.\d+)?)(ns|us|ms|s)")
_DELAYS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
# What the engine's words and the reference's 16-bit tables leave room for.
MAX_NODES = 1 << 16


@dataclass(frozen=True, slots=True)
class Cable:
    """A link as its line has it: nodes, bits a second each way, nanoseconds."""

    a: int
    b: int
    rate_bps: int
    delay_ns: int
    line: int


@dataclass(frozen=True)
class TopologyFile:
    """Nodes 0..``nodes``-1, of which ``switches`` forward; every other one is a host."""

    path: Path
    nodes: int
    switches: tuple[int, ...]
    cables: tuple[Cable, ...]

    @property
    def hosts(self) -> tuple[int, ...]:
        """Hosts' numbers, ascending."""
        forwarding = set(self.switches)
        return tuple(node for node in range(self.nodes) if node not in forwarding)


def words_by_line(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and words of a text file; InputError where it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", file=path) from error
    for number, line in enumerate(text.splitlines(), 1):
        if words := line.split("#", 1)[0].split():
            yield number, words


def parse_rate(text: str) -> int:
    """Bits a second of ``25Gbps`` or ``40Mb/s``; ValueError otherwise."""
    if not (match := _RATE.fullmatch(text)):
        raise ValueError(f"{text!r} is no rate such as 25Gbps")
    return round(float(match[1]) * _RATES[match[2]])


def parse_delay(text: str) -> int:
    """Nanoseconds of ``1000ns``, ``1us`` or ``0.001ms``; ValueError otherwise."""
    if not (match := _DELAY.fullmatch(text)):
        raise ValueError(f"{text!r} is no time such as 1000ns")
    return round(float(match[1]) * _DELAYS[match[2]])


def whole(text: str, what: str) -> int:
    """A number from 0 up; ValueError names ``what``."""
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"{what} is {text!r}, not a number from 0 up")
    return int(text)


def read_topology(path: Path) -> TopologyFile:  # noqa: PLR0912 - a format with three parts
    """Read a .topo file. InputError with the line for anything that it cannot mean."""
    lines = words_by_line(path)
    at = 1
    try:
        at, words = next(lines, (1, []))
        if len(words) != 3:
            raise ValueError("the first line has to be: NODES SWITCHES LINKS")
        nodes, switch_count, links = (
            whole(word, what)
            for word, what in zip(words, ("nodes", "switches", "links"), strict=True)
        )
        if not 2 <= nodes <= MAX_NODES:
            raise ValueError(f"{nodes} nodes; a fabric has 2 to {MAX_NODES}")
        switches: list[int] = []
        while len(switches) < switch_count:
            at, words = next(lines, (at, []))
            if not words:
                raise ValueError(f"{switch_count} switches announced, {len(switches)} numbered")
            switches.extend(_node(word, nodes) for word in words)
        if len(switches) > switch_count:
            raise ValueError(f"{switch_count} switches announced, {len(switches)} numbered")
        if len(set(switches)) < len(switches):
            raise ValueError("a switch is numbered twice")
        forwarding = set(switches)
        cables: list[Cable] = []
        seen: dict[tuple[int, int], int] = {}
        cabled: dict[int, int] = {}
        for at, words in lines:
            cable = _cable(at, words, nodes)
            ends = (min(cable.a, cable.b), max(cable.a, cable.b))
            if ends in seen:
                raise ValueError(f"{cable.a} and {cable.b} are linked in line {seen[ends]} already")
            seen[ends] = at
            for end in ends:
                if end not in forwarding and end in cabled:
                    raise ValueError(f"host {end} has a link in line {cabled[end]} already")
                cabled[end] = at
            if not forwarding & set(ends):
                raise ValueError(f"{cable.a} and {cable.b} are both hosts: nothing forwards")
            cables.append(cable)
        if len(cables) != links:
            raise ValueError(f"{links} links announced in the first line, {len(cables)} follow")
    except ValueError as error:
        raise InputError(str(error), file=path, line=at) from error
    return TopologyFile(path, nodes, tuple(switches), tuple(cables))


def _node(text: str, nodes: int) -> int:
    number = whole(text, "a node")
    if number >= nodes:
        raise ValueError(f"node {number} is none of the {nodes} (0 to {nodes - 1})")
    return number


def _cable(line: int, words: list[str], nodes: int) -> Cable:
    if len(words) != 5:
        raise ValueError(f"{len(words)} words; a link has 5: NODE NODE RATE DELAY ERROR_RATE")
    a, b = (_node(word, nodes) for word in words[:2])
    if a == b:
        raise ValueError(f"node {a} is linked to itself")
    cable = Cable(a, b, parse_rate(words[2]), parse_delay(words[3]), line)
    if cable.rate_bps < 10**6:
        raise ValueError(f"rate {words[2]}: a link has at least 1Mbps")
    if not 1 <= cable.delay_ns <= 10**7:
        raise ValueError(f"delay {words[3]}: a link has 1ns to 10ms")
    if float(words[4]) != 0:
        raise ValueError(f"error rate {words[4]}: links without errors (0) are simulated only")
    return cable
