"""Stored results are believed only where the evidence and the seal say the same."""

import io
import json
import sqlite3
from contextlib import closing

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from securesystemslib.signer import CryptoSigner

from fabric.errors import InputError, JudgedBadError
from paisoar.commands.report import write
from paisoar.console import Ui
from validation.certificates import certificate
from validation.certificates.certify import certify
from validation.certificates.keys import keys_dir, signer
from validation.certificates.sealed import PAYLOAD_TYPE, broken_seal, seal_path, write_seal
from validation.judgement.rejudge import disagreements
from validation.results.states import sha256
from validation.results.store import database_path, file_name, latest_run, list_runs, load_run
from validation.run import run_suites


def edit(site, statement, *values):
    with closing(sqlite3.connect(database_path(site))) as database, database:
        assert database.execute(statement, values).rowcount


def withheld(fabric):
    with pytest.raises(JudgedBadError) as error:
        certify(fabric.site, latest_run(fabric.site), reader=fabric.read_states)
    assert certificate.ids(fabric.site) == ()
    return error.value.message


def set_fact(site, table, field, value):
    edit(site, f"UPDATE {table} SET facts = json_set(facts, '$.{field}', json(?))", value)


def test_a_sound_run_and_its_evidence_say_the_same(fabric, measured):
    assert disagreements(fabric.site, measured) == []
    assert broken_seal(measured, [signer(fabric.site).public_key]) == []


def test_a_failed_run_and_its_evidence_say_the_same_of_every_check(fabric):
    ends = fabric.site.topology.endpoints
    fabric.latency_us[ends[:2]] = 50.0
    fabric.goodput[ends[1], ends[0]] = 0.2
    fabric.hidden = {("leaf1", "queue_drops")}
    fabric.excuses["leaf1"] = ("queue_drops: not counted",)
    made = run_suites(fabric.site, readers=fabric.readers(), probe=fabric.probe)
    assert len(made.failures) >= 2
    assert disagreements(fabric.site, made) == []


def test_a_verdict_edited_in_the_database_is_judged_again(fabric):
    ends = fabric.site.topology.endpoints
    fabric.latency_us[ends[:2]] = 50.0
    made = run_suites(fabric.site, readers=fabric.readers(), probe=fabric.probe)
    edit(
        fabric.site,
        "UPDATE checks SET verdict = 'PASS', reason = '', value = 3.0 WHERE verdict = 'FAIL'",
    )
    assert latest_run(fabric.site).verdict == "PASS"
    text = withheld(fabric)
    assert (
        f"run {made.id}, suite latency, check latency.p99 of {ends[0]} -> {ends[1]}: stored "
        "PASS (3 us, at most 9), the evidence says FAIL (50 us, at most 9)"
    ) in text
    assert "not what was sealed when it ended: suites.latency.checks" in text


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE checks SET \"limit\" = 99 WHERE \"check\" = 'latency.p99'", "at most 99"),
        ("DELETE FROM checks WHERE \"check\" = 'incast.loss'", "nothing is stored, the evidence"),
        ("UPDATE checks SET \"check\" = 'latency.x' WHERE \"check\" = 'latency.p99'", "knows no"),
        ("UPDATE checks SET reason = 'fine' WHERE \"check\" = 'latency.p99'", "reason: stored 'fi"),
        ("INSERT INTO checks SELECT id + 100000, run_id, suite, \"check\", subject, verdict, value,"
         " \"limit\", unit, bound, reason, device, port, evidence_sha256, evidence_class"
         " FROM checks WHERE suite = 'latency'", "checks are stored twice"),
    ],
)  # fmt: skip
def test_any_edited_check_is_found(fabric, measured, statement, words):
    edit(fabric.site, statement)
    text = withheld(fabric)
    assert f"run {measured.id}, suite " in text
    assert words in text


@pytest.mark.parametrize(
    ("table", "field", "value", "words"),
    [
        ("suites", "seen", '{"pairs": 99}', "seen: stored"),
        ("runs", "criteria.max_latency_p99_us", "99.0", "criteria.max_latency_p99_us: stored 99.0"),
        ("runs", "versions.paisoar", '"9.9"', 'run.versions.paisoar: sealed "'),
        ("runs", "probe", '"perftest"', 'run.probe: sealed "sim", stored "perftest"'),
        ("suites", "wall_s", "1.5", "suites.bandwidth.wall_s: sealed"),
    ],
)
def test_any_edited_fact_is_found(fabric, measured, table, field, value, words):
    set_fact(fabric.site, table, field, value)
    assert words in withheld(fabric)


def test_an_old_run_does_not_become_young(fabric, measured):
    edit(fabric.site, "UPDATE runs SET finished_at = '2026-01-01T00:00:00.000000Z'")
    assert 'run.finished_at: sealed "' in withheld(fabric)


def test_a_killed_run_marked_complete_has_no_seal(fabric):
    class KilledError(BaseException):
        pass

    def kill(flows):
        raise KilledError

    fabric.on_carry = kill
    with pytest.raises(KilledError):
        run_suites(fabric.site, readers=fabric.readers(), probe=fabric.probe)
    edit(fabric.site, "UPDATE runs SET status = 'complete', finished_at = started_at")
    assert "has no seal" in withheld(fabric)


def alter_evidence(site, run, suite, kind, change):
    """Evidence, its hash and the checks' reference to it, edited consistently."""
    path = run.folder / file_name(suite, kind)
    stream = io.BytesIO()
    pq.write_table(change(pq.read_table(path)), stream, compression="zstd")
    path.write_bytes(stream.getvalue())
    old, new = run.suite(suite).files[kind], sha256(stream.getvalue())
    edit(site, "UPDATE suites SET facts = replace(facts, ?, ?) WHERE name = ?", old, new, suite)
    edit(site, "UPDATE checks SET evidence_sha256 = ? WHERE evidence_sha256 = ?", new, old)


def test_evidence_edited_consistently_with_verdicts_breaks_the_seal(fabric):
    ends = fabric.site.topology.endpoints
    fabric.latency_us[ends[:2]] = 50.0
    made = run_suites(fabric.site, readers=fabric.readers(), probe=fabric.probe)

    def faster(table):
        us = pc.min_element_wise(table["us"], pa.scalar(3.0))
        return table.set_column(table.schema.get_field_index("us"), "us", us)

    alter_evidence(fabric.site, made, "latency", "latency", faster)
    edit(
        fabric.site,
        "UPDATE checks SET verdict = 'PASS', reason = '', value = 3.0 WHERE verdict = 'FAIL'",
    )
    altered = latest_run(fabric.site)
    assert altered.verdict == "PASS"
    assert disagreements(fabric.site, altered) == []
    text = withheld(fabric)
    assert "not what was sealed when it ended: suites.latency.files.latency: sealed" in text


def test_evidence_edited_with_its_hash_alone_is_judged_again(fabric, measured):
    def lossy(table):
        dropped = pc.and_(
            pc.equal(table["name"].cast(pa.string()), "queue_drops"),
            pc.equal(table["moment"].cast(pa.string()), "after"),
        )
        more = pc.if_else(dropped, pa.scalar(7, pa.uint64()), table["value"])
        return table.set_column(table.schema.get_field_index("value"), "value", more)

    alter_evidence(fabric.site, measured, "incast", "counters", lossy)
    text = withheld(fabric)
    assert "suite incast, check incast.loss of leaf1" in text
    assert "stored PASS" in text
    assert "the evidence says FAIL" in text


def test_malformed_evidence_is_named_and_no_traceback(fabric, measured):
    def without_values(table):
        return table.drop_columns(["us"])

    alter_evidence(fabric.site, measured, "latency", "latency", without_values)
    text = withheld(fabric)
    assert "latency.latency.parquet: run val-" in text
    assert "suite latency: no such table of evidence" in text


@pytest.mark.parametrize(
    "text", ["", "[" * 100_000, "[]", '{"steps": 3}', '{"steps": [], "unread": {"a": 1}}']
)
def test_a_malformed_outline_is_named(fabric, measured, text):
    path = measured.folder / "incast.outline.json"
    path.write_text(text)
    old = measured.suite("incast").files["outline"]
    edit(fabric.site, "UPDATE suites SET facts = replace(facts, ?, ?)", old, sha256(text.encode()))
    assert "incast.outline.json: run val-" in withheld(fabric)


def test_the_states_must_be_those_of_the_fingerprint(fabric, measured):
    path = measured.folder / "states.json"
    text = path.read_text().replace("SN-leaf1", "SN-leafX")
    path.write_text(text)
    old, new = measured.suite("incast").files["states"], sha256(text.encode())
    edit(fabric.site, "UPDATE suites SET facts = replace(facts, ?, ?)", old, new)
    edit(
        fabric.site,
        "UPDATE checks SET evidence_sha256 = ? WHERE evidence_sha256 = ?", new, old,
    )  # fmt: skip
    assert "states are not those of the run's fingerprint" in withheld(fabric)


def test_a_seal_of_a_stranger_or_of_another_run_is_not_believed(fabric, measured):
    write_seal(measured, CryptoSigner.generate_ed25519())
    assert "seal" in withheld(fabric)
    assert "which is not trusted" in withheld(fabric)
    seal_path(measured).unlink()
    assert "has no seal" in withheld(fabric)
    other = run_suites(fabric.site, ["latency"], readers=fabric.readers(), probe=fabric.probe)
    seal_path(measured).write_bytes(seal_path(other).read_bytes())
    with pytest.raises(JudgedBadError, match="run.id: sealed"):
        certify(fabric.site, measured, reader=fabric.read_states)
    assert json.loads(seal_path(other).read_bytes())["payloadType"] == PAYLOAD_TYPE


def test_what_is_no_key_is_not_advised_to_be_closed(fabric, tmp_path, monkeypatch):
    other = tmp_path / "passwd"
    other.write_text("root:x:0:0")
    other.chmod(0o644)
    monkeypatch.setenv("PAISOAR_SIGNING_KEY", str(other))
    with pytest.raises(InputError, match="is no unencrypted private key") as error:
        signer(fabric.site)
    assert "chmod" not in error.value.advice


def test_a_run_needs_a_usable_signing_key_before_traffic_is_sent(fabric, measured):
    (keys_dir(fabric.site) / "ed25519.pem").chmod(0o644)
    with pytest.raises(InputError, match=r"open to other users.*chmod 600"):
        run_suites(fabric.site, readers=fabric.readers(), probe=fabric.probe)
    assert fabric.steps_carried == 0
    assert len(list_runs(fabric.site)) == 1


@pytest.mark.parametrize(
    ("table", "changed", "field"),
    [
        ("runs", "started_at = 'yesterday'", "started_at"),
        ("runs", "finished_at = 17", "finished_at"),
        ("runs", "status = 'perfect'", "status"),
        ("runs", "facts = 'hello'", "facts"),
        ("runs", "facts = '[]'", "facts"),
        ("runs", "facts = '{}'", "facts.site_sha256"),
        ("suites", "status = NULL", "status"),
        ("suites", "name = '../../x' WHERE place = 1", "name"),
        ("suites", "name = 'latency' WHERE place = 0", "name"),
        ("suites", "facts = 'null'", "facts"),
        ("suites", "facts = '{'", "facts"),
        ("runs", f"facts = '{'[' * 100_000}'", "facts"),
        ("checks", "verdict = 'GOOD'", "verdict"),
        ("checks", "value = 'fast'", "value"),
        ("checks", "value = 9e999", "value"),
        ("checks", '"limit" = NULL', "value"),
        ("checks", "reason = x'ff00'", "reason"),
        ("checks", "evidence_sha256 = 'x'", "evidence_sha256"),
        ("checks", "suite = 'other'", "suite"),
    ],
)
def test_a_damaged_field_is_named(fabric, measured, table, changed, field):
    statement = f"UPDATE {table} SET {changed}"
    try:
        edit(fabric.site, statement)
    except sqlite3.IntegrityError:
        loosen(fabric.site, table)
        edit(fabric.site, statement)
    assert damage(fabric.site).startswith(f"table {table}, run {measured.id}, field {field}: ")


@pytest.mark.parametrize(
    ("table", "at", "value", "field"),
    [
        ("runs", "before.sha256", '"x"', "facts.before.sha256"),
        ("runs", "before.intent_sha256", f'"{"0" * 64}"', "facts.before"),
        ("runs", "evidence_class", '"golden"', "facts.evidence_class"),
        ("runs", "waived", "1", "facts.waived"),
        ("suites", "files.other", '"ab"', "facts.files.other.[key]"),
        ("suites", "expected.pairs", '"many"', "facts.expected.pairs"),
        ("suites", "started_at", '"1970"', "facts.started_at"),
        ("suites", "wall_s", "-1", "facts.wall_s"),
    ],
)
def test_a_damaged_fact_is_named(fabric, measured, table, at, value, field):
    set_fact(fabric.site, table, at, value)
    assert damage(fabric.site).startswith(f"table {table}, run {measured.id}, field {field}: ")


def damage(site):
    """What is said of the newest run, after the name of the database."""
    with pytest.raises(InputError) as error:
        latest_run(site)
    assert error.value.exit_code == 2
    assert "paisoar validate" in error.value.advice
    assert error.value.file == str(database_path(site))
    return error.value.reason


def loosen(site, table):
    """The table without its NOT NULL, as somebody who means harm would."""
    with closing(sqlite3.connect(database_path(site))) as database, database:
        database.execute(f"CREATE TABLE loose AS SELECT * FROM {table}")
        database.execute(f"DROP TABLE {table}")
        database.execute(f"ALTER TABLE loose RENAME TO {table}")


@pytest.mark.parametrize("data", [b"", b"this is no database, it only is long enough" * 40])
def test_a_file_that_is_no_database_is_named(fabric, measured, data):
    path = database_path(fabric.site)
    path.write_bytes(data)
    if not data:
        assert latest_run(fabric.site) is None
        return
    with pytest.raises(InputError, match=r"results\.sqlite: the results database cannot be used"):
        latest_run(fabric.site)


def test_a_table_of_another_form_is_named(fabric, measured):
    with closing(sqlite3.connect(database_path(fabric.site))) as database, database:
        database.execute("ALTER TABLE runs RENAME COLUMN facts TO fiction")
    with pytest.raises(InputError, match=r"results\.sqlite: .*no such column: runs\.facts"):
        latest_run(fabric.site)


def test_no_report_is_drawn_from_altered_results(fabric, measured):
    ui = Ui(as_json=True)
    (measured.folder / "incast.series.parquet").write_bytes(b"smooth")
    with pytest.raises(JudgedBadError, match=r"altered or is gone: incast\.series") as error:
        write(ui, fabric.site.path)
    assert error.value.exit_code == 1
    edit(fabric.site, "UPDATE checks SET value = 1.0 WHERE \"check\" = 'latency.p99'")
    with pytest.raises(JudgedBadError, match=r"suites\.latency\.checks"):
        write(ui, fabric.site.path)
    assert not (fabric.site.state_dir / "report").exists()


def test_a_partial_run_is_reported_as_failed_whatever_its_checks_say(fabric, measured):
    ui = Ui(as_json=True)
    edit(fabric.site, "UPDATE runs SET status = 'partial'")
    assert write(ui, fabric.site.path).document["verdict"] == "FAILED"

    def without_values(table):
        return table.drop_columns(["goodput_bps"])

    alter_evidence(fabric.site, measured, "bandwidth", "flows", without_values)
    with pytest.raises(InputError, match=r"bandwidth\.flows\.parquet: no such table of evidence"):
        write(ui, fabric.site.path)


def test_an_unknown_run_is_answered_with_those_that_exist(fabric, measured):
    with pytest.raises(InputError, match=rf"'val-x'\. There are: {measured.id}"):
        load_run(fabric.site, "val-x")
