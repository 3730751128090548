"""Flows in HPCC's format.

First line: how many; then one flow a line: source host, target host, priority
group, UDP target port, bytes, start in seconds. Starts never decrease, because
the reference reads one line after the other as its time goes on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from fabric.errors import InputError
from fabric.sim.reference.fixedpoint import nanoseconds
from fabric.sim.reference.topofile import TopologyFile, whole, words_by_line

# A sequence number's offset within its message has this many bits in the engine.
MAX_BYTES = 1 << 40
MAX_PORT = 0xFFFF


@dataclass(frozen=True, slots=True)
class FileFlow:
    """A flow as its line has it; ``start_ns`` is truncated as the reference does."""

    source: int
    target: int
    group: int
    udp_port: int
    size_bytes: int
    start_ns: int
    line: int


@dataclass(frozen=True)
class FlowFile:
    """All flows, in the order of the file."""

    path: Path
    flows: tuple[FileFlow, ...]


def read_flows(path: Path, topology: TopologyFile) -> FlowFile:
    """Read a .flow file. InputError with the line for anything that it cannot mean."""
    lines = words_by_line(path)
    hosts = frozenset(topology.hosts)
    at = 1
    flows: list[FileFlow] = []
    try:
        at, words = next(lines, (1, []))
        if len(words) != 1:
            raise ValueError("the first line has to be the number of flows")
        count = whole(words[0], "the number of flows")
        for at, words in lines:
            flow = _flow(at, words)
            for end in (flow.source, flow.target):
                if end not in hosts:
                    raise ValueError(f"{end} is no host of {topology.path.name}")
            if flow.source == flow.target:
                raise ValueError(f"host {flow.source} sends to itself")
            if flows and flow.group != flows[0].group:
                raise ValueError(
                    f"priority group {flow.group}, but {flows[0].group} in line {flows[0].line}: "
                    "the reference runs have one data priority"
                )
            if flows and flow.start_ns < flows[-1].start_ns:
                raise ValueError(
                    f"starts before the flow of line {flows[-1].line}: sort the flows by start"
                )
            flows.append(flow)
        if len(flows) != count:
            raise ValueError(f"{count} flows announced in the first line, {len(flows)} follow")
        if not flows:
            raise ValueError("no flows")
    except ValueError as error:
        raise InputError(str(error), file=path, line=at) from error
    return FlowFile(path, tuple(flows))


def _flow(line: int, words: list[str]) -> FileFlow:
    if len(words) != 6:
        raise ValueError(f"{len(words)} words; a flow has 6: SOURCE TARGET GROUP PORT BYTES START")
    source, target = whole(words[0], "the source"), whole(words[1], "the target")
    group, udp_port = whole(words[2], "the priority group"), whole(words[3], "the UDP port")
    size = whole(words[4], "the size in bytes")
    start = float(words[5])
    if not 1 <= group <= 7:
        raise ValueError(f"priority group {group}; data has 1 to 7")
    if udp_port > MAX_PORT:
        raise ValueError(f"UDP port {udp_port}; there are 0 to {MAX_PORT}")
    if not 1 <= size < MAX_BYTES:
        raise ValueError(f"{size} bytes; a flow has 1 to {MAX_BYTES - 1}")
    if not (math.isfinite(start) and 0 <= start < 10**6):
        raise ValueError(f"start {words[5]}; it is in seconds, from 0 up")
    return FileFlow(source, target, group, udp_port, size, nanoseconds(start), line)
