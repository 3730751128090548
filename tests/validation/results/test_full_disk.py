"""A disk that fills up in the middle of a validation: said with the path, and gone on with."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("full_disk.py")

pytestmark = pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode != 0,
    reason="needs user namespaces for a disk of its own",
)


@pytest.mark.parametrize(
    ("step", "file"),
    [(3, "preflight.flows.parquet"), (5, "latency.journal"), (17, "incast.flows.parquet")],
)
def test_a_run_that_finds_no_room_is_gone_on_with_when_there_is_some(tmp_path, step, file):
    line = (
        f"mount -t tmpfs -o size=3m tmpfs {tmp_path} && "
        f"exec {sys.executable} {SCRIPT} {tmp_path} {step}"
    )
    done = subprocess.run(
        ["unshare", "-rm", "bash", "-c", line],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    found = json.loads(done.stdout)
    assert f"{file}: cannot be written: No space left on device" in found["said"]
    assert found["status"] == "running"
    # What was over before the disk was full is not measured again.
    assert found["sent_again"] <= 1
    assert (found["verdict"], found["lacking"]) == ("PASS", [])
    assert (found["altered"], found["partial"]) == ([], [])
