"""Tables as SONiC's ``show`` commands print them (the library ``tabulate``).

A heading, a line of dashes that says where each column is, then rows. One output
may hold several. Other lines (a prompt, a message, a namespace's title) are no
rows of any table.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

_DASHES = re.compile(r"\s*-+(?: +-+)+\s*")


def tables(text: str) -> Iterator[list[dict[str, str]]]:
    """Each table as its rows; a row maps a column's heading to its cell."""
    lines = text.expandtabs().splitlines()
    starts = [index for index, line in enumerate(lines) if index and _DASHES.fullmatch(line)]
    for start in starts:
        spans = [match.span() for match in re.finditer(r"-+", lines[start])]
        heading = _cells(lines[start - 1], spans)
        rows = []
        for line in lines[start + 1 :]:
            if not line.strip() or _DASHES.fullmatch(line) or re.fullmatch(r"\s*-+\s*", line):
                break
            rows.append(dict(zip(heading, _cells(line, spans), strict=True)))
        yield rows


def _cells(line: str, spans: list[tuple[int, int]]) -> list[str]:
    """Cells of a line; columns are two blanks apart, and the last one is open-ended."""
    bounds = [0, *(begin for begin, _ in spans[1:]), max(len(line), spans[-1][0])]
    return [line[begin:end].strip() for begin, end in itertools.pairwise(bounds)]


def number(text: str) -> int | None:
    """A count with or without thousands separators; None for ``N/A``, ``-`` and the like."""
    digits = text.strip().replace(",", "")
    return int(digits) if digits.isdecimal() else None
