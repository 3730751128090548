"""Archives that the kernel unpacks as its first root file system.

Format: "initramfs buffer format" in the kernel's documentation (newc: a header of 13
numbers of eight hexadecimal digits; names and contents padded to four bytes).
Archives can be put one behind the other.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from dataclasses import dataclass

_MAGIC = "070701"
_END = "TRAILER!!!"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file, or with ``content`` None one folder. ``name`` has no leading slash."""

    name: str
    content: bytes | None = None
    mode: int = 0o644


def archive(entries: Iterable[Entry]) -> bytes:
    """These entries, all owned by root; folders must come before what is in them."""
    parts = [_record(number, entry) for number, entry in enumerate(entries, start=1)]
    parts.append(_record(0, Entry(_END, b"", 0)))
    return b"".join(parts)


def _record(number: int, entry: Entry) -> bytes:
    name = entry.name.encode() + b"\0"
    content = entry.content or b""
    kind = stat.S_IFDIR if entry.content is None else stat.S_IFREG
    mode = (kind | entry.mode) if number else 0
    # inode, mode, uid, gid, links, time, size, four device numbers, length of name, checksum
    numbers = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
    header = (_MAGIC + "".join(f"{value:08X}" for value in numbers)).encode()
    return _padded(header + name) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
