"""``make setup`` that fails says so in one line that tells where to look."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_a_failed_setup_is_explained_and_stays_failed(tmp_path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts" / "setup.sh"
    script.write_text("#!/bin/sh\necho 'ERROR: no index' >&2\nexit 1\n")
    script.chmod(0o755)
    done = subprocess.run(
        ["make", "-C", tmp_path, "setup"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    said = [line for line in done.stderr.splitlines() if line.startswith("setup: ")]
    assert len(said) == 1
    assert all(word in said[0] for word in ("network", "Python 3.11", "disk", "make setup"))
    assert not (tmp_path / ".venv" / ".ready").exists()
