"""A configuration as EOS holds it: blocks of settings, each with one line.

A setting is known by its slot (``mtu``, ``priority-flow-control priority 3``),
so that a new line takes the place of the old one. What is at its default has no
line, and is not printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fabric.twin.eos.order import ORDER, kind_of

INDENT = "   "


@dataclass
class Block:
    """A mode's lines by slot, and the blocks below it by header."""

    lines: dict[str, str] = field(default_factory=dict)
    blocks: dict[str, Block] = field(default_factory=dict)

    def below(self, header: str) -> Block:
        """The block of this header, made where there is none."""
        return self.blocks.setdefault(header, Block())

    def named(self, start: str) -> Iterator[tuple[str, Block]]:
        """Rest of the header and block of those whose header begins so."""
        for header, block in self.blocks.items():
            if header.startswith(start):
                yield header.removeprefix(start), block


@dataclass
class Config(Block):
    """A whole configuration."""

    @property
    def hostname(self) -> str:
        """The switch's name; ``localhost`` where it has none."""
        return self.lines.get("hostname", "hostname localhost").split()[1]

    def interface(self, name: str) -> Block:
        """One interface's block; KeyError where the switch has none of this name."""
        return self.blocks[f"interface {name}"]

    def has_interface(self, name: str) -> bool:
        """Whether there is such an interface."""
        return f"interface {name}" in self.blocks

    def interfaces(self) -> list[str]:
        """Names of all interfaces in the order of printing."""
        names = [name for name, _ in self.named("interface ")]
        return sorted(names, key=interface_key)


def interface_key(name: str) -> tuple[int, tuple[int, ...]]:
    """Sort key of an interface name, with numbers as numbers."""
    kinds = ("Port-Channel", "Ethernet", "Loopback", "Management", "Vlan")
    kind = next(index for index, kind in enumerate(kinds) if name.startswith(kind))
    return kind, tuple(int(number) for number in re.findall(r"\d+", name))


def running_config(config: Config) -> str:
    """The whole configuration, without the comment header."""
    return "\n".join([*_block_lines(config, "config", 0), "!", "end", ""])


def block_text(config: Config, header: str) -> str:
    """One top-level block as it is printed."""
    return "\n".join(_one(header, config.blocks[header], 0)) + "\n"


def _block_lines(block: Block, kind: str, depth: int) -> Iterator[str]:
    items: list[tuple[tuple[int, list[object]], str, Block | None]] = [
        (_key(kind, text), text, None) for text in _joined(block.lines)
    ]
    items += [(_key(kind, header), header, below) for header, below in block.blocks.items()]
    for _, text, below in sorted(items, key=lambda item: item[0]):
        if below is None:
            yield INDENT * depth + text
        elif below.lines or below.blocks or not kind_of(text).startswith("txq"):
            yield INDENT * depth + "!"
            yield from _one(text, below, depth)


def _one(header: str, block: Block, depth: int) -> Iterator[str]:
    yield INDENT * depth + header
    yield from _block_lines(block, kind_of(header), depth + 1)


def _joined(lines: dict[str, str]) -> Iterator[str]:
    """The lines, with maps to the same target in one."""
    maps: dict[tuple[str, str], list[int]] = {}
    for slot, text in lines.items():
        match = re.fullmatch(r"(qos map (?:dscp|traffic-class|cos)) (\d+) (to .*)", text)
        if match and slot.startswith("qos map "):
            maps.setdefault((match[1], match[3]), []).append(int(match[2]))
        else:
            yield text
    for (head, target), numbers in maps.items():
        yield f"{head} {' '.join(map(str, sorted(numbers)))} {target}"


def _key(kind: str, text: str) -> tuple[int, list[object]]:
    starts: Iterable[str] = ORDER.get(kind, ())
    bare = text.removeprefix("no ")
    rank = next((rank for rank, start in enumerate(starts) if bare.startswith(start)), 99)
    parts = re.split(r"(\d+)", text)
    return rank, [(1, int(part)) if part.isdecimal() else (0, part) for part in parts]
