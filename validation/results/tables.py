"""Parquet read without any Python object in the hands of Arrow's threads.

A worker of Arrow that lets go of a Python file or buffer while the interpreter ends takes the
whole process with it ("terminate called without an active exception"; apache/arrow issues
34314, 33975, 50482). So it gets a file or memory of its own kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def read_table(source: bytes | Path, columns: Sequence[str] | None = None) -> pa.Table:
    """A table of Parquet, whole or these columns in this order.

    Raises ArrowException or OSError where it is none, KeyError for a column that it lacks.
    """
    opened = _memory(source) if isinstance(source, bytes) else pa.OSFile(str(source))
    with opened as file:
        table = pq.ParquetFile(file).read(columns=columns, use_threads=False)
    return table if columns is None else table.select(list(columns))


def _memory(data: bytes) -> pa.BufferReader:
    buffer = pa.allocate_buffer(len(data))
    memoryview(buffer).cast("B")[:] = data
    return pa.BufferReader(buffer)
