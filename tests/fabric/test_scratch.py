"""Folders for a while: gone with their program, also where it was killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fabric import scratch

KEEPS = """
import time
from fabric.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "running-config").write_text("secret")
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def _aged(folder):
    an_hour_ago = time.time() - 3600
    os.utime(folder, (an_hour_ago, an_hour_ago))


def test_it_is_private_and_gone_afterwards(temporary):
    with scratch.scratch_folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
    assert list(temporary.iterdir()) == []


def test_what_a_killed_program_left_goes_with_the_next_one(temporary):
    program = subprocess.Popen(
        [sys.executable, "-c", KEEPS], stdout=subprocess.PIPE, text=True, env=os.environ
    )
    folder = Path(program.stdout.readline().strip())
    _aged(folder)
    scratch.sweep()
    assert folder.exists(), "somebody still holds it"
    program.send_signal(signal.SIGKILL)
    program.communicate()
    scratch.sweep()
    assert list(temporary.iterdir()) == []


def test_what_is_not_ours_stays(temporary):
    other = temporary / "paisoar-site"
    other.mkdir()
    link = temporary / "paisoar-link"
    link.symlink_to(temporary / "elsewhere")
    _aged(other)
    scratch.sweep()
    assert other.is_dir()
    assert link.is_symlink()
