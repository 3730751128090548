"""What a newcomer is told: what to fill in, what to do next, and at once what cannot be."""

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabric.site import load_site
from paisoar.cli import app
from paisoar.console import command_line
from tests.sites import write_site

runner = CliRunner()


def said(*arguments, code=0):
    done = runner.invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done.output


def next_steps(text):
    """The command lines that a text tells to type."""
    return [shlex.split(found) for found in re.findall(r"(?:: )(paisoar [^\n]*)", text)]


def test_a_real_site_has_a_line_for_each_device_that_says_how_it_is_reached(tmp_path):
    path = tmp_path / "fabric.yaml"
    said("init", "-f", path, "--environment", "site", "--hosts", 4, "--leaves", 2, "--spines", 1)
    text = path.read_text()
    assert text.count("    # mgmt: {address: ") == len(load_site(path).devices) == 7
    assert "How to reach it over SSH" in text
    path.write_text(text.replace("    # mgmt:", "    mgmt:"))
    site = load_site(path)
    assert site.devices["leaf1"].mgmt.user == "admin"
    assert len({device.mgmt.address for device in site.devices.values()}) == 7


def test_a_twin_has_no_such_lines(tmp_path):
    assert "mgmt" not in write_site(tmp_path).read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--hosts", 100_000], "2,084 leaves or more"),
        (["--hosts", 100_000, "--leaves", 2084, "--spines", 8], "a spine has up to 64 ports"),
        (["--site", "a: b"], "--site"),
        (["--site", "x\ny: 1"], "--site"),
    ],
)
def test_what_cannot_be_built_is_refused_at_once(tmp_path, arguments, words):
    begun = time.process_time()
    assert words in said("init", "-f", tmp_path / "f.yaml", *arguments, code=2)
    assert time.process_time() - begun < 2
    assert not (tmp_path / "f.yaml").exists()


def test_next_steps_can_be_typed_as_they_are_printed(tmp_path, monkeypatch):
    folder = tmp_path / "my site's (a)"
    folder.mkdir()
    path = folder / "fabric.yaml"
    shape = ("--hosts", 4, "--leaves", 2, "--spines", 1)
    for command in (("init", *shape), ("check",), ("twin", "status")):
        steps = next_steps(said(*command, "-f", path))
        assert steps
        for step in steps:
            assert step[-2:] == ["-f", str(path)]
            assert "Usage" in said(*step[1:-2], "--help")
    monkeypatch.chdir(folder)
    assert next_steps(said("check")) == [["paisoar", "twin", "up"]]


def test_the_default_file_needs_no_option():
    assert command_line("check") == "paisoar check"
    assert command_line("check", Path("a b.yaml")) == "paisoar check -f 'a b.yaml'"


def test_an_audit_of_files_advises_what_can_be_done_without_a_site(tmp_path):
    from tests.fabric.saved.folders import edit, saved

    site, made = saved(tmp_path)
    folder = made.rename(tmp_path / "saved outputs")
    edit(folder / "host1" / "mlnx_qos_-i_ens1f0.txt", "OS controlled", "Firmware controlled")
    text = said("audit", "--from", folder, code=1)
    assert f"paisoar init --from '{folder}'" in text
    assert "paisoar provision" not in text
    with_site = said("audit", "--from", folder, "-f", site.path, code=1)
    plan, provision = (
        shlex.join(["paisoar", name, "-f", str(site.path)]) for name in ("plan", "provision")
    )
    assert f"Mend with: {plan}, then: {provision}" in with_site


@pytest.mark.parametrize(
    "environment",
    [
        {"TERM": "dumb"},
        {"NO_COLOR": "1"},
        {"COLUMNS": "20"},
        {"COLUMNS": "0"},
        {"COLUMNS": "x"},
        {"LC_ALL": "C"},
        {"HOME": ""},
        {"HOME": None},
        {"PYTHONIOENCODING": "latin-1"},
        {"TMPDIR": "/nonexistent"},
    ],
)
def test_commands_work_in_odd_surroundings(tmp_path, environment):
    real = tmp_path / "größe mit Leerzeichen"
    real.mkdir()
    link = tmp_path / "link"
    link.symlink_to(real)
    surroundings = {**os.environ, **environment}
    surroundings = {key: value for key, value in surroundings.items() if value is not None}
    for arguments in (["init", "--hosts", "2", "--leaves", "1", "--spines", "0"], ["check"]):
        done = subprocess.run(
            [sys.executable, "-m", "paisoar", *arguments],
            cwd=link,
            env=surroundings,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
