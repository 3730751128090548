"""Nothing is signed that was not measured."""

import json
import os
from dataclasses import replace
from datetime import timedelta

import pytest
from google.protobuf import json_format
from in_toto_attestation.v1 import statement_pb2
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner

from fabric.errors import DevicesError, InputError, JudgedBadError
from fabric.qos import DeviceQos, PortFacts
from fabric.site import load_site
from tests.sites import write_site
from validation.baseline import certified_states
from validation.certificates import certificate
from validation.certificates.certify import certify, lacking
from validation.certificates.keys import keys_dir, trusted_dir, trusted_keys
from validation.run import run_suites
from validation.times import utc_now


def run(fabric, *suites):
    return run_suites(fabric.site, suites, readers=fabric.readers(), probe=fabric.probe)


def sign(fabric, made, **options):
    return certify(fabric.site, made, reader=fabric.read_states, **options)


def test_a_certificate_states_what_was_measured_on_what(fabric, measured):
    signed = sign(fabric, measured)
    stated = signed.predicate
    assert stated.scope.hosts == ("host1", "host2", "host3", "host4")
    assert len(stated.scope.nics) == 4
    assert [s.serial for s in stated.scope.switches] == ["SN-leaf1", "SN-leaf2", "SN-spine1"]
    assert len(stated.scope.links) == 6
    assert stated.profile.name == "lossless-dcqcn"
    assert stated.profile.thresholds["min_bandwidth_fraction"] == 0.9
    assert stated.run.id == measured.id
    assert (stated.evidence_class, stated.simulated) == ("simulated", True)
    assert {(c.suite, c.what): (c.expected, c.seen) for c in stated.coverage}[
        "incast", "receivers"
    ] == (4, 4)
    checks = {check.id: check for check in stated.checks}
    assert checks["latency.p99"].limit == 9.0
    assert checks["latency.p99"].worst == 3.0
    assert checks["bandwidth.fraction"].passed == 12
    assert checks["incast.loss"].evidence_sha256 == (measured.suite("incast").files["counters"],)
    assert signed.fingerprint == measured.after
    assert signed.not_after - measured.finished_at == timedelta(hours=168)
    assert certificate.verify(fabric.site) == signed
    assert signed.to_json()["class"] == "simulated"


def test_the_file_is_a_dsse_envelope_around_an_in_toto_statement(fabric, measured):
    signed = sign(fabric, measured)
    envelope = Envelope.from_dict(json.loads(signed.path.read_bytes()))
    assert envelope.payload_type == "application/vnd.in-toto+json"
    envelope.verify(list(trusted_keys(fabric.site)), 1)
    statement = json_format.Parse(envelope.payload, statement_pb2.Statement())
    assert statement.type == "https://in-toto.io/Statement/v1"
    assert statement.predicate_type == "https://paisoar.dev/fabric-certificate/v1"
    assert statement.subject[0].digest["sha256"] == signed.fingerprint.sha256


def test_the_private_key_is_closed_and_its_public_half_trusted(fabric, measured):
    sign(fabric, measured)
    key = keys_dir(fabric.site) / "ed25519.pem"
    assert key.stat().st_mode & 0o777 == 0o600
    assert keys_dir(fabric.site).stat().st_mode & 0o077 == 0
    assert len(trusted_keys(fabric.site)) == 1
    key.chmod(0o640)
    with pytest.raises(InputError, match="open to other users.*chmod 600"):
        sign(fabric, measured)


def test_another_signing_key_must_be_trusted_by_hand(fabric, tmp_path, monkeypatch, measured):
    key = tmp_path / "ci.pem"
    key.write_bytes(CryptoSigner.generate_ed25519().private_bytes)
    key.chmod(0o600)
    monkeypatch.setenv("PAISOAR_SIGNING_KEY", str(key))
    with pytest.raises(InputError, match="does not trust the signing key.*openssl pkey") as error:
        sign(fabric, measured)
    assert str(trusted_dir(fabric.site)) in error.value.advice
    public = trusted_dir(fabric.site) / "ci.pub.pem"
    assert os.system(f"openssl pkey -in {key} -pubout -out {public}") == 0
    assert sign(fabric, measured).predicate.issuer_key_id in {
        trusted.keyid for trusted in trusted_keys(fabric.site)
    }
    monkeypatch.setenv("PAISOAR_SIGNING_KEY", str(tmp_path / "gone.pem"))
    with pytest.raises(InputError, match="does not exist"):
        sign(fabric, measured)


def withheld(fabric, made, **options):
    with pytest.raises(JudgedBadError) as error:
        sign(fabric, made, **options)
    assert certificate.ids(fabric.site) == ()
    return error.value.message


def test_without_a_run_there_is_nothing_to_sign(site, fabric):
    with pytest.raises(JudgedBadError, match="has not been validated"):
        certify(site, None, reader=fabric.read_states)


def test_a_failure_is_listed_with_its_reason(fabric):
    fabric.latency_us[fabric.site.topology.endpoints[:2]] = 50.0
    text = withheld(fabric, run(fabric))
    assert "FAIL latency.p99: host1:ens1f0 -> host2:ens1f0: 99 % of the answers" in text


def test_missing_suites_are_listed(fabric):
    text = withheld(fabric, run(fabric, "preflight", "latency"))
    assert "suite bandwidth was not run" in text
    assert "suite incast was not run" in text
    assert "incast.loss was never judged" in text


def test_a_partial_run_is_not_certified(fabric, measured):
    assert "the run is not complete (partial)" in withheld(
        fabric, replace(measured, status="partial")
    )


@pytest.mark.parametrize(("hours", "words"), [(25, "25 hours old"), (-1, "in the future")])
def test_a_stale_run_is_not_certified(fabric, hours, words, measured):
    assert words in withheld(fabric, measured, clock=lambda: utc_now() + timedelta(hours=hours))


def test_a_run_of_another_site_or_file_is_not_certified(fabric, measured):
    assert "is of site 'other'" in withheld(fabric, replace(measured, site="other"))
    assert "fabric.yaml has been changed" in withheld(
        fabric, replace(measured, site_sha256="0" * 64)
    )
    assert "hardware evidence" in withheld(fabric, replace(measured, evidence_class="hardware"))


def test_soft_roce_never_proves_a_lossless_profile(fabric, measured):
    measured = replace(measured, evidence_class="soft-roce")
    assert any("Soft-RoCE has no PFC" in line for line in lacking(fabric.site, measured, utc_now()))


def test_a_required_check_that_was_skipped_withholds_the_certificate(fabric):
    fabric.hidden = {("leaf1", "queue_drops"), ("leaf1", "tx_discards")}
    fabric.excuses["leaf1"] = ("queue_drops: not counted",)
    made = run(fabric)
    assert made.verdict == "PASS"
    text = withheld(fabric, made)
    assert "incast.loss was skipped for leaf1: leaf1 does not show egress drops" in text


def test_thin_coverage_is_not_certified(fabric, measured):
    latency = replace(measured.suite("latency"), seen={"pairs": 5})
    suites = tuple(latency if s.name == "latency" else s for s in measured.suites)
    assert "latency covered 5 of 6 pairs" in withheld(fabric, replace(measured, suites=suites))
    planned = replace(measured.suite("latency"), expected={"pairs": 1}, seen={"pairs": 1})
    suites = tuple(planned if s.name == "latency" else s for s in measured.suites)
    text = withheld(fabric, replace(measured, suites=suites))
    assert "planned for another site" in text
    assert "covered 1 of 6 pairs" in text


def test_altered_evidence_is_not_certified(fabric, measured):
    (measured.folder / "incast.counters.parquet").write_bytes(b"nothing happened")
    assert "evidence was altered or is gone: incast.counters" in withheld(fabric, measured)


def test_a_fabric_that_changed_since_the_run_is_not_certified(fabric, measured):
    fabric.states["host2"] = replace(fabric.states["host2"], firmware="99.1")
    text = withheld(fabric, measured)
    assert "host2 changed since the run" in text
    assert "firmware: " in text


def test_a_device_that_does_not_answer_is_no_judgement(fabric, measured):
    fabric.dead.add("leaf1")
    with pytest.raises(DevicesError, match="leaf1: log in: connection refused") as error:
        sign(fabric, measured)
    assert error.value.exit_code == 3


def test_the_baseline_is_what_was_certified_last(fabric, measured):
    assert certified_states(fabric.site) is None
    signed = sign(fabric, measured)
    before = dict(fabric.states)
    fabric.states["leaf1"] = replace(fabric.states["leaf1"], firmware="1")
    assert certified_states(fabric.site) == before
    path = certificate.states_path(fabric.site, signed.id)
    text = path.read_text().replace("SN-leaf1", "SN-leafX")
    path.write_text(text)
    assert set(certified_states(fabric.site)) == set(before) - {"leaf1"}
    assert all(isinstance(s, DeviceQos) for s in certified_states(fabric.site).values())


def test_a_changed_file_after_the_run_is_seen_by_its_hash(fabric, tmp_path, measured):
    path = write_site(tmp_path)
    path.write_text(path.read_text().replace("max_drops: 0", "max_drops: 9"))
    with pytest.raises(JudgedBadError, match="changed since the run"):
        certify(load_site(path), measured, reader=fabric.read_states)


def test_a_fabric_that_is_not_as_intended_is_not_certified_although_traffic_passes(fabric):
    state = fabric.states["leaf1"]
    port = state.ports[0]
    blind = tuple(replace(queue, ecn=None) for queue in port.queues)
    fabric.states["leaf1"] = replace(state, ports=(replace(port, queues=blind), *state.ports[1:]))
    made = run(fabric)
    assert lacking(fabric.site, made, utc_now()) == []
    with pytest.raises(JudgedBadError, match="audit, ecn: leaf1"):
        sign(fabric, made)


def test_a_port_that_is_shut_is_not_certified_although_traffic_passes(fabric):
    state = fabric.states["leaf1"]
    down = PortFacts(state.ports[0].name, up=False)
    fabric.states["leaf1"] = replace(state, facts=(down,))
    made = run(fabric)
    with pytest.raises(JudgedBadError, match="leaf1:Ethernet1/1 has no link"):
        sign(fabric, made)


def test_what_a_reboot_would_take_away_is_said_with_the_certificate(fabric):
    fabric.states["leaf1"] = replace(fabric.states["leaf1"], saved=False)
    told = []
    assert sign(fabric, run(fabric), on_warning=told.append).id
    assert any(line.startswith("audit, unsaved: leaf1") for line in told)
