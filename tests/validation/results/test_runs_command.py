"""``paisoar runs``: listed, shown, exported, pruned."""

import json
import socket

import pandas as pd
import pytest
from typer.testing import CliRunner

from paisoar.cli import app
from validation.results.database import DATABASE_VARIABLE
from validation.results.store import Store, database_path
from validation.run import run_suites


def runs(site, *words):
    command, *rest = words
    return CliRunner().invoke(app, ["runs", command, "-f", str(site.path), *map(str, rest)])


def document(site, *words):
    return json.loads(runs(site, *words, "--json").stdout)


@pytest.fixture
def two(fabric):
    """A preflight and a preflight that failed, in this order."""
    good = run_suites(fabric.site, ["preflight"], readers=fabric.readers(), probe=fabric.probe)
    fabric.spoil = lambda flow, tally: tally.update({("leaf1", "Ethernet1/1", "queue_drops", 3): 9})
    bad = run_suites(fabric.site, ["preflight"], readers=fabric.readers(), probe=fabric.probe)
    return good, bad


def test_list_says_what_became_of_each(fabric, two):
    good, bad = two
    listed = document(fabric.site, "list")["runs"]
    assert [(entry["id"], entry["verdict"]) for entry in listed] == [
        (good.id, "PASS"),
        (bad.id, "FAIL"),
    ]
    assert listed[1]["failures"] == len(bad.failures)
    assert listed[0]["suites"] == ["preflight"]
    shown = runs(fabric.site, "list")
    assert shown.exit_code == 0
    assert good.id in shown.stdout


def test_list_names_the_certificate_that_stands_on_a_run(site, signed):
    (entry,) = document(site, "list")["runs"]
    assert entry["certificate"] == signed.id


def test_one_damaged_run_hides_no_other(fabric, two):
    good, _ = two
    with Store(fabric.site) as store, store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE runs SET status = 'perfect' WHERE id = ?", (good.id,))
    listed = document(fabric.site, "list")["runs"]
    assert "field status" in listed[0]["damaged"]
    assert listed[1]["verdict"] == "FAIL"


def test_show_tells_whether_the_evidence_is_what_it_was(fabric, two):
    good, bad = two
    assert document(fabric.site, "show")["id"] == bad.id
    assert document(fabric.site, "show", good.id)["altered_evidence"] == []
    (good.folder / "preflight.flows.parquet").write_bytes(b"x")
    assert document(fabric.site, "show", good.id)["altered_evidence"] == ["preflight.flows.parquet"]
    assert "altered or gone" in runs(fabric.site, "show", good.id).stdout
    assert runs(fabric.site, "show", "val-none").exit_code == 2


@pytest.mark.parametrize(("form", "read"), [("csv", pd.read_csv), ("parquet", pd.read_parquet)])
def test_export_as_tables(fabric, two, tmp_path, form, read):
    good, bad = two
    done = runs(fabric.site, "export", "--to", tmp_path / "out", "--format", form)
    assert done.exit_code == 0, done.output
    tables = {path.stem: read(path) for path in (tmp_path / "out").iterdir()}
    assert set(tables) == {"runs", "checks", "coverage", "counters", "uplinks"}
    assert list(tables["runs"]["verdict"]) == ["PASS", "FAIL"]
    assert set(tables["checks"]["run_id"]) == {good.id, bad.id}
    assert len(tables["checks"]) == len(good.all_checks) + len(bad.all_checks)
    moved = tables["counters"]
    drops = moved[(moved["run_id"] == bad.id) & (moved["counter"] == "queue_drops")]
    assert drops["delta"].sum() > 0


def test_export_as_one_document(fabric, two, tmp_path):
    good, _ = two
    runs(fabric.site, "export", good.id, "--to", tmp_path, "--format", "json")
    (exported,) = json.loads((tmp_path / "runs.json").read_text())
    assert exported["id"] == good.id
    assert exported["counters"]


def test_export_of_nothing_or_in_no_format_is_bad_input(site, tmp_path):
    assert runs(site, "export", "--to", tmp_path).exit_code == 2
    assert runs(site, "export", "--format", "xml").exit_code == 2


def test_prune_shows_its_plan_and_removes_only_when_told(fabric, two):
    good, bad = two
    planned = document(fabric.site, "prune", "--keep", "1", "--dry-run")
    assert planned["planned"] == [good.id]
    assert planned["removed"] == []
    refused = runs(fabric.site, "prune", "--keep", "1")
    assert refused.exit_code == 2
    assert good.folder.exists()
    assert document(fabric.site, "prune", "--keep", "1", "--yes")["removed"] == [good.id]
    assert [entry["id"] for entry in document(fabric.site, "list")["runs"]] == [bad.id]
    assert not good.folder.exists()


def test_prune_by_age(fabric, two):
    assert document(fabric.site, "prune", "--older-than", "30d", "--yes")["removed"] == []
    for bad in ("30 days", "d", "-1d", ""):
        assert runs(fabric.site, "prune", f"--older-than={bad}").exit_code == 2


def test_prune_says_what_stays_and_why(site, signed):
    answer = runs(site, "prune", "--keep", "0", "--dry-run").stdout
    assert f"certificate {signed.id} stands on it" in answer


def test_a_database_that_is_none_is_bad_input(site):
    database_path(site).parent.mkdir(parents=True)
    database_path(site).write_text("no database" * 100)
    assert runs(site, "list").exit_code == 2


@pytest.mark.parametrize("url", ["nonsense", "postgresql://host:port/x", "nosuch://host/x"])
def test_a_variable_that_names_no_database_is_bad_input(fabric, monkeypatch, url):
    monkeypatch.setenv(DATABASE_VARIABLE, url)
    result = runs(fabric.site, "list")
    assert result.exit_code == 2
    assert DATABASE_VARIABLE in result.stderr
    assert "postgresql://USER@HOST/DATABASE" in result.stderr
    assert "Traceback" not in result.output


def test_a_database_whose_host_has_no_address_did_not_answer(site, monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setenv(DATABASE_VARIABLE, "postgresql://me:secret@db.invalid/paisoar")
    result = runs(site, "list", "--json")
    assert result.exit_code == 3
    error = json.loads(result.stdout)["error"]
    assert "me:***@db.invalid/paisoar cannot be used: failed to resolve host" in error["message"]
    assert error["advice"].startswith("PAISOAR_DATABASE_URL names it: look whether")
    assert "secret" not in result.output


def test_the_report_of_some_suites_does_not_send_to_certify(fabric, two):
    good, _ = two
    command = ["report", "-f", str(fabric.site.path), "--run", good.id]
    told = " ".join(CliRunner().invoke(app, command).stdout.split())
    assert "A certificate also asks for latency, bandwidth, incast, all in one run." in told
    assert "paisoar validate" in told
    assert "paisoar certify" not in told
