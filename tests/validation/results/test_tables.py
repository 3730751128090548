"""Tables of evidence, read so that no thread holds anything when the interpreter ends."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from validation.results.tables import read_table

THREADS = """
import os, sys
from pathlib import Path
from fabric.site import load_site
from validation.results.frames import bandwidth_frame, counters_frame, latency_frame
from validation.results.kept import counters_of
from validation.results.store import latest_run

run = latest_run(load_site(Path(sys.argv[1])))
before = len(os.listdir("/proc/self/task"))
assert len(bandwidth_frame(run)) and len(latency_frame(run)) and len(counters_frame(run))
assert counters_of(run, run.suite("latency"))[0]
print(len(os.listdir("/proc/self/task")) - before)
"""


def test_reading_evidence_starts_no_pool_of_threads(measured, site):
    """Arrow's reader has one worker of its own; a Python file would have brought one a core."""
    done = subprocess.run(
        [sys.executable, "-c", THREADS, str(site.path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) <= 1


def test_a_table_of_bytes_or_of_a_file_is_the_same(tmp_path):
    table = pa.table({"a": [1, 2], "b": ["x", None]})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    for source in (path, path.read_bytes()):
        assert read_table(source) == table
        assert read_table(source, ["b", "a"]).column_names == ["b", "a"]
        with pytest.raises(KeyError):
            read_table(source, ["a", "c"])
    with pytest.raises(pa.ArrowInvalid):
        read_table(b"no table")
