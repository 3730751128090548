"""What ``grep -H`` prints of files: sysfs, debugfs, configfs, our own.

One ``grep -rH . PATHS`` shows a whole tree in one command, ``grep -H '' FILES``
whole files with their empty lines. What it prints about a path that is missing
or may not be read is kept, because it says why a fact is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

# A colon ends the path, except inside a PCI address (0000:3b:00.0).
_VALUE = re.compile(r"(/(?:[^:]|:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]/)*):(.*)")
_COMPLAINT = re.compile(r"grep: (/.*): ([^:]+)")

MISSING = "No such file or directory"


@dataclass(frozen=True, slots=True)
class Dump:
    """Files with their lines, and grep's complaints by path."""

    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    complaints: Mapping[str, str] = field(default_factory=dict)

    def text(self, path: str) -> str | None:
        """A file's first line without blanks around it; None where it is not shown."""
        lines = self.files.get(path)
        return lines[0].strip() if lines else None

    def number(self, path: str) -> int | None:
        """A file's first line as a number; None where it is not shown or none."""
        text = self.text(path)
        try:
            return int(text, 0) if text is not None else None
        except ValueError:
            return None

    def content(self, path: str) -> str | None:
        """A whole file, from ``grep -H ''``; None where it is not shown."""
        lines = self.files.get(path)
        return "".join(f"{line}\n" for line in lines) if lines is not None else None

    def complaint(self, path: str) -> str | None:
        """Why this path is not shown: what grep said about it or a folder above."""
        while path:
            if path in self.complaints:
                return self.complaints[path]
            path = path.rpartition("/")[0]
        return None


@lru_cache(maxsize=256)
def parse_dump(text: str) -> Dump:
    """Read the output of ``grep -H``. Lines of any other form are skipped.

    Hosts of one build print the same, thousands of them.
    """
    files: dict[str, list[str]] = {}
    complaints: dict[str, str] = {}
    for line in text.splitlines():
        if match := _COMPLAINT.fullmatch(line):
            complaints[match[1]] = match[2].strip()
        elif match := _VALUE.fullmatch(line):
            files.setdefault(match[1], []).append(match[2])
    return Dump({path: tuple(lines) for path, lines in files.items()}, complaints)
