"""What commands say last: the way on, and what to do about devices that do not answer."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from fabric.site import load_site
from paisoar.cli import app
from paisoar.commands import report, train
from paisoar.console import console
from tests.sites import write_site
from trainer.launch import TrainResult
from validation.gate import GatePass


def shown(capsys, show):
    show(console())
    return capsys.readouterr().out


def test_training_ends_with_its_weights_the_way_on_and_the_next_command(capsys):
    now = datetime.now(UTC)
    passed = GatePass("c-1", "test", "simulated", (), "ab", now, now + timedelta(1), True)
    checkpoint = Path("/site/.paisoar/training/j 1/epoch-00002")
    result = TrainResult(0.9, True, "", (), checkpoint, 1.0, 1.0, "shm", 2, 0, passed)
    text = shown(capsys, lambda out: train._show(out, result, Path("other.yaml")))
    assert f"Weights: {checkpoint}/model.weights.h5" in text
    assert "paisoar train --resume '/site/.paisoar/training/j 1' -f other.yaml --epochs N" in text
    assert text.endswith("Next: paisoar report -f other.yaml\n")


@pytest.mark.parametrize(("verdict", "command"), [("PASS", "certify"), ("FAIL", "audit")])
def test_a_report_ends_with_the_next_command(tmp_path, verdict, command):
    site = load_site(write_site(tmp_path))
    done = SimpleNamespace(verdict=verdict, suite=lambda name: name)
    assert report._next(site, done).startswith(f"Next: paisoar {command} -f {site.path}")


def test_a_plan_says_how_to_make_unknown_devices_known(tmp_path, monkeypatch):
    file = write_site(tmp_path, environment="site")
    ports = iter(range(1, 100))
    comment = re.compile(r"# mgmt: \{address: 192\.0\.2\.\d+, port: 22")
    text = comment.sub(
        lambda _: f"mgmt: {{address: 127.0.0.1, port: {next(ports)}", file.read_text()
    )
    file.write_text(text)
    monkeypatch.setenv("PAISOAR_KNOWN_HOSTS", str(tmp_path / "nowhere"))
    done = CliRunner().invoke(app, ["plan", "--file", str(file), "--device", "leaf1"])
    assert done.exit_code == 3
    assert done.stdout.count("leaf1: ") == 1
    assert "Put leaf1's key there (ssh-keyscan" in done.stdout
    assert f"paisoar plan -f {file}" in done.stdout
    done = CliRunner().invoke(app, ["plan", "--file", str(file), "--device", "leaf1", "--json"])
    assert "ssh-keyscan" in json.loads(done.stdout)["unreadable"]["leaf1"]
