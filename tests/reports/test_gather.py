"""What a report says about the gate: its last word, or what the files alone tell."""

import json
from datetime import UTC, datetime

import pytest

from fabric.errors import GateRefusedError
from reports.content.gather import gather
from reports.page.render import render_page
from reports.tables import write_tables
from tests.sites import make_site
from tests.validation.fake import FakeFabric
from trainer.record import forget_refusal, load_refusal, save_refusal
from validation.certificates import certificate
from validation.certificates.certify import certify
from validation.results.store import latest_run
from validation.run import run_suites

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def fabric(tmp_path, monkeypatch):
    for name in ("PAISOAR_DATABASE_URL", "PAISOAR_SIGNING_KEY"):
        monkeypatch.delenv(name, raising=False)
    made = FakeFabric(make_site(tmp_path))
    run_suites(made.site, readers=made.readers(), probe=made.probe)
    return made


def made_by(fabric):
    return gather(fabric.site, latest_run(fabric.site))


def jobs(fabric):
    return fabric.site.state_dir / "training"


def test_without_a_certificate_the_page_says_that_the_gate_lets_nobody_in(fabric):
    content = made_by(fabric)
    assert content.refusal.reason == "no-certificate"
    page = render_page(content)
    assert "The gate lets no job in (no-certificate): site test has no certificate." in page
    assert "<code>paisoar certify</code>" in page


def test_what_the_gate_said_last_is_repeated_with_its_time(fabric):
    certify(fabric.site, latest_run(fabric.site), reader=fabric.read_states)
    said = GateRefusedError("leaf1 has changed.", reason="fabric-changed", advice="Put it back.")
    save_refusal(jobs(fabric), said, NOW)
    page = render_page(made_by(fabric))
    assert (
        "The gate refused the last job, 2026-12-01 12:00 UTC (fabric-changed): "
        "leaf1 has changed. Put it back." in page
    )


def test_where_a_certificate_holds_nothing_is_refused(fabric):
    certify(fabric.site, latest_run(fabric.site), reader=fabric.read_states)
    content = made_by(fabric)
    assert content.refusal is None
    assert content.lacking == ()
    assert "The certificate holds" in render_page(content)


def test_a_revoked_certificate_is_refused_without_asking_the_gate(fabric):
    issued = certify(fabric.site, latest_run(fabric.site), reader=fabric.read_states)
    certificate.revoke(fabric.site, issued.id, "a cable was replaced")
    assert made_by(fabric).refusal.reason == "revoked"


def test_what_is_missing_for_a_certificate_is_listed(fabric):
    run_suites(fabric.site, ["latency"], readers=fabric.readers(), probe=fabric.probe)
    content = made_by(fabric)
    assert "suite incast was not run" in content.lacking
    assert "<li>suite incast was not run</li>" in render_page(content)


def test_a_refusal_is_forgotten_when_the_gate_opens(tmp_path):
    save_refusal(tmp_path, GateRefusedError("no", reason="expired", advice="Renew."), NOW)
    assert load_refusal(tmp_path).at == NOW
    forget_refusal(tmp_path)
    forget_refusal(tmp_path)
    assert load_refusal(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{}", "[]", json.dumps({"at": "never"})])
def test_a_damaged_record_is_no_refusal(tmp_path, text):
    (tmp_path / "refused.json").write_text(text)
    assert load_refusal(tmp_path) is None


def test_the_senders_table_names_the_receiver(fabric, tmp_path):
    write_tables(made_by(fabric), tmp_path / "tables")
    head = (tmp_path / "tables" / "senders.csv").read_text().splitlines()[0]
    assert "receiver" in head.split(",")
