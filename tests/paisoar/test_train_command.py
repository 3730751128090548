"""``paisoar train`` keeps what the gate said for the report."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from fabric.errors import InputError
from paisoar.cli import app
from tests.sites import write_site
from trainer.record import load_refusal
from validation.gate import GatePass


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.delenv("PAISOAR_SIGNING_KEY", raising=False)
    return write_site(tmp_path)


def train(file):
    result = CliRunner().invoke(app, ["train", "--file", str(file), "--launch", "local", "--json"])
    return result.exit_code, json.loads(result.stdout)


def test_a_refusal_is_kept_with_its_reason(file):
    code, _ = train(file)
    assert code == 1
    kept = load_refusal(file.parent / ".paisoar" / "training")
    assert kept.reason == "no-certificate"
    assert "site test has no certificate" in kept.message


def test_a_gate_that_opens_takes_the_refusal_back(file, monkeypatch):
    train(file)
    now = datetime.now(UTC)
    passed = GatePass("c-1", "test", "simulated", (), "ab", now, now + timedelta(1), True)
    monkeypatch.setattr("validation.gate.open_gate", lambda *_, **__: passed)

    def stop(*_):
        raise InputError("far enough")

    monkeypatch.setattr("trainer.launch.train", stop)
    code, said = train(file)
    assert (code, "far enough" in str(said)) == (2, True)
    assert load_refusal(file.parent / ".paisoar" / "training") is None
