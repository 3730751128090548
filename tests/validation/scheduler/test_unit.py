"""The systemd unit, as systemd reads it."""

import configparser
import os
import shlex
import shutil
import subprocess

import pytest

from validation.scheduler.export import export_files


@pytest.fixture
def unit(site, tmp_path):
    export_files(site, tmp_path / "export")
    return tmp_path / "export" / "systemd" / "paisoar-watch.service"


def test_the_unit_starts_this_program_for_this_site(unit, site):
    parsed = configparser.ConfigParser(interpolation=None)
    parsed.optionxform = str
    parsed.read_string(unit.read_text())
    words = shlex.split(parsed["Service"]["ExecStart"])
    assert os.access(words[0], os.X_OK)
    assert words[1:4] == ["watch", "-f", str(site.path)]
    assert parsed["Service"]["KillSignal"] == "SIGTERM"
    assert "@" not in unit.read_text()


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)
def test_systemd_accepts_the_unit(unit):
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    # It also complains of units of this machine; only lines about ours count.
    ours = [line for line in done.stderr.splitlines() if unit.name in line]
    assert ours == []
