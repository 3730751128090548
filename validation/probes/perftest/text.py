"""perftest's report in text, of every release since 4.5-0.17.

Formats read in linux-rdma/perftest, src/perftest_parameters.h (``RESULT_FMT*``,
``REPORT_FMT*``), perftest_parameters.c (``ctx_print_test_info``) and
perftest_communication.c (``ctx_print_pingpong_data``). Releases since March 2024
write ``MiB`` where older ones wrote ``MB`` for the same number; newer ones put two
keys on a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from validation.probes.hosts.gids import plain_address
from validation.probes.hosts.instrument import ReportError

# Per unit of a bandwidth column: bits per second.
UNITS_BPS = {"Gb/sec": 1e9, "MB/sec": 8 * 2**20, "MiB/sec": 8 * 2**20}

_COLUMN = re.compile(r"#\w+|tps average|[^\s#\[]+(?: [^\s#\[]+)*\[[^\]]*\]")
_SAMPLE = re.compile(r"\s*\d+, (\S+)\s*")
_TITLE = re.compile(r"\s*(\S.*?) Test\s*")
_END = re.compile(r" (local|remote) address: ")
_SAMPLES_HEAD = re.compile(r"#, (\w+)")


@dataclass(frozen=True)
class Report:
    """One report.

    ``rows`` hold numbers by column: ``#bytes``, ``BW average[Gb/sec]`` and so on.
    ``info`` is the block above, ``gids`` the addresses of ``local`` and ``remote``
    as far as they are printed. ``samples_us`` is what ``-U`` adds, in order.
    """

    title: str
    info: Mapping[str, str]
    gids: Mapping[str, str]
    rows: tuple[Mapping[str, float], ...]
    samples_us: NDArray[np.float64]


def parse_report(text: str) -> Report:
    """Read what one end printed. Raises ReportError where it holds no table of results."""
    title, columns = "", []
    info: dict[str, str] = {}
    gids: dict[str, str] = {}
    rows: list[Mapping[str, float]] = []
    side = ""
    for line in text.splitlines():
        if line.lstrip().startswith("#bytes"):
            columns = _COLUMN.findall(line)
        elif columns:
            rows += _row(columns, line)
        elif (found := _TITLE.fullmatch(line)) and not title:
            title = found[1]
        elif found := _END.match(line):
            side = found[1]
        elif line.startswith(" GID: ") and side:
            gids.setdefault(side, _gid(line.removeprefix(" GID: ").strip()))
        else:
            info.update(_info(line))
    if not rows:
        raise ReportError("its report has no row of results")
    return Report(title, info, gids, tuple(rows), _samples(text))


def without_samples(text: str) -> str:
    """The report without the lines that ``-U`` adds, which are kept as numbers."""
    return "\n".join(line for line in text.splitlines() if not _SAMPLE.fullmatch(line))


def column(report: Report, head: str) -> tuple[str, str]:
    """Full name and unit of the column that begins so. Raises ReportError where none does."""
    for name in report.rows[0]:
        if name.startswith(f"{head}["):
            return name, name.removeprefix(f"{head}[").rstrip("]")
    raise ReportError(f"its report has no column {head!r}")


def _row(columns: list[str], line: str) -> Iterator[Mapping[str, float]]:
    words = line.split()
    if not words or _SAMPLE.fullmatch(line):
        return
    try:
        values = [float(word) for word in words]
    except ValueError:
        return
    if len(values) != len(columns):
        raise ReportError(
            f"a row of its report has {len(values)} values under {len(columns)} columns: "
            f"{line.strip()!r}"
        )
    yield dict(zip(columns, values, strict=True))


def _info(line: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"\t+(?=[A-Za-z])", line):
        key, colon, value = part.partition(":")
        if colon and key.strip():
            yield key.strip(), value.strip()


def _gid(text: str) -> str:
    """Sixteen decimal numbers, or eight hexadecimal ones; empty for another form."""
    parts = text.split(":")
    if len(parts) != 16:
        return plain_address(text)
    try:
        packed = bytes(int(part) for part in parts)
    except ValueError:
        return ""
    return plain_address(":".join(packed[i : i + 2].hex() for i in range(0, 16, 2)))


def _samples(text: str) -> NDArray[np.float64]:
    """The first list only: ``-U`` makes some releases print a sorted one after it."""
    lines = iter(text.splitlines())
    for line in lines:
        if head := _SAMPLES_HEAD.fullmatch(line.strip()):
            if head[1] != "usec":
                raise ReportError(f"its samples are in {head[1]}, not in usec")
            break
    values = []
    for line in lines:
        found = _SAMPLE.fullmatch(line)
        if not found:
            break
        try:
            values.append(float(found[1]))
        except ValueError as error:
            raise ReportError(f"a sample is no number: {line.strip()!r}") from error
    return np.array(values, dtype=np.float64)
