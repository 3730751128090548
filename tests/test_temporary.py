"""What tests write for a while is gone when they end, whoever wrote it."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
WRITES = """
import os, subprocess, sys, tempfile

def test_writes(tmp_path):
    tempfile.mkdtemp()
    code = "import os, tempfile; tempfile.mkstemp(prefix='left-'); os._exit(0)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert tempfile.gettempdir() != {outside!r}
    assert str(tmp_path).startswith({outside!r} + "/pytest-of-")
"""


def _session(folder, *options):
    outside = folder / "outside"
    outside.mkdir()
    (folder / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (folder / "test_it.py").write_text(WRITES.format(outside=str(outside)))
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(folder)],
        env={**kept, "TMPDIR": str(outside)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [path.name for path in outside.iterdir() if not path.name.startswith("pytest-of-")]


def test_one_process_leaves_nothing(tmp_path):
    assert _session(tmp_path) == []


def test_workers_leave_nothing(tmp_path):
    assert _session(tmp_path, "-n", "2") == []
