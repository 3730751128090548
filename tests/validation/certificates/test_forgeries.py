"""What somebody who means harm puts into the folder of certificates; each is refused by name."""

import json
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest
from securesystemslib.signer import CryptoSigner

from fabric.errors import GateRefusedError, InputError
from fabric.site import load_site
from tests.sites import make_site, write_site
from tests.validation.fake import FakeFabric
from validation.certificates import certificate, revocation
from validation.certificates.certify import certify
from validation.certificates.envelope import open_sealed, seal
from validation.certificates.keys import keys_dir, signer, trusted_keys
from validation.certificates.predicate import PAYLOAD_TYPE, statement_bytes
from validation.gate import open_gate
from validation.run import run_suites
from validation.times import to_text, utc_now

HOSTS = ("host1", "host2")
NONE_SUCH = "cert-20200101T000000Z-abcdef"


def refusal(fabric, site=None, **options):
    with pytest.raises(GateRefusedError) as error:
        open_gate(site or fabric.site, HOSTS, reader=fabric.read_states, **options)
    return error.value.reason, error.value.message


def agree(fabric, site=None, **options):
    """The refusal of the gate, where verify and show say the very same."""
    site = site or fabric.site
    reason, message = refusal(fabric, site, **options)
    with pytest.raises(GateRefusedError) as error:
        certificate.verify(site, **options)
    assert (error.value.reason, error.value.message) == (reason, message)
    shown = certificate.show(site, **options)
    assert (shown.valid, shown.reason, shown.message) == (False, reason, message)
    return reason, message


def newer_certificate(fabric, later_s=2):
    made = run_suites(fabric.site, readers=fabric.readers(), probe=fabric.probe)
    later = utc_now() + timedelta(seconds=later_s)
    return certify(fabric.site, made, reader=fabric.read_states, clock=lambda: later), later


def test_a_certificate_of_an_earlier_fabric_replayed(fabric, signed):
    before = dict(fabric.states)
    fabric.states["leaf1"] = replace(before["leaf1"], firmware="99.1")
    newer, later = newer_certificate(fabric)
    passed = open_gate(fabric.site, HOSTS, reader=fabric.read_states, clock=lambda: later)
    assert passed.certificate_id == newer.id
    reason, message = refusal(fabric, certificate=signed.id, clock=lambda: later)
    assert reason == "fabric-changed"
    assert f"certificate {signed.id} was issued for; changed: leaf1 (leaf1: firmware:" in message
    certificate.certificate_path(fabric.site, newer.id).unlink()
    assert refusal(fabric, clock=lambda: later)[0] == "fabric-changed"


def test_of_two_certificates_the_newest_counts_even_where_only_the_older_one_holds(fabric, signed):
    newer, later = newer_certificate(fabric)
    certificate.revoke(fabric.site, newer.id, "superseded")
    reason, message = agree(fabric, clock=lambda: later)
    assert reason == "revoked"
    assert newer.id in message
    by_name = {"certificate": signed.id, "clock": lambda: later}
    assert open_gate(fabric.site, HOSTS, reader=fabric.read_states, **by_name)


def test_the_same_site_name_with_other_devices(fabric, signed, tmp_path):
    path = write_site(tmp_path)
    text = path.read_text()
    assert "host4" in text
    path.write_text(text.replace("host4", "host5"))
    reason, message = agree(fabric, load_site(path))
    assert reason == "intent-changed"
    assert "devices and cables: are not those that were certified" in message


def test_a_certificate_copied_into_another_site_of_the_same_name(fabric, signed, tmp_path):
    (tmp_path / "other").mkdir()
    other = FakeFabric(make_site(tmp_path / "other"))
    folder = certificate.certificates_dir(other.site)
    shutil.copytree(certificate.certificates_dir(fabric.site), folder)
    reason, message = agree(other)
    assert reason == "wrong-key"
    assert "which is not trusted" in message


def test_a_certificate_copied_with_its_keys_into_a_site_of_another_name(fabric, signed, tmp_path):
    path = write_site(tmp_path)
    path.write_text(path.read_text().replace("site: test", "site: prod"))
    assert agree(fabric, load_site(path))[0] == "other-site"


def test_names_that_only_look_alike_are_told_apart(fabric, signed):
    stated = signed.predicate
    scope = stated.scope.model_copy(update={"site": "t\u0435st"})
    resign(fabric, stated.model_copy(update={"scope": scope}))
    reason, message = agree(fabric)
    assert reason == "other-site"
    assert "is of site 't\\u0435st', this is 'test'" in message
    scope = stated.scope.model_copy(update={"hosts": ("h\u043est1", "host2")})
    resign(fabric, stated.model_copy(update={"scope": scope}))
    assert refusal(fabric) == ("scope", f"certificate {signed.id} does not cover host1.")


def resign(fabric, predicate):
    data = seal(statement_bytes(predicate), PAYLOAD_TYPE, signer(fabric.site))
    certificate.certificate_path(fabric.site, predicate.id).write_bytes(data)


def test_it_ends_at_the_very_microsecond_and_begins_at_it(fabric, signed):
    moment = timedelta(microseconds=1)
    for now in (signed.not_before, signed.not_after - moment):
        assert certificate.show(fabric.site, clock=lambda now=now: now).valid
    assert agree(fabric, clock=lambda: signed.not_after)[0] == "expired"
    assert agree(fabric, clock=lambda: signed.not_before - moment)[0] == "not-yet-valid"


def test_another_payload_type(fabric, signed):
    data = signed.path.read_bytes()
    signed.path.write_bytes(data.replace(PAYLOAD_TYPE.encode(), b"application/json"))
    assert agree(fabric)[0] == "tampered"
    payload = statement_bytes(signed.predicate)
    signed.path.write_bytes(seal(payload, "application/json", signer(fabric.site)))
    reason, message = agree(fabric)
    assert reason == "tampered"
    assert "its payload type is 'application/json'" in message


def test_another_key_id(fabric, signed):
    envelope = json.loads(signed.path.read_bytes())
    stranger = CryptoSigner.generate_ed25519().public_key.keyid
    for named in (stranger, ""):
        envelope["signatures"][0]["keyid"] = named
        signed.path.write_text(json.dumps(envelope, sort_keys=True, indent=1) + "\n")
        reason, message = agree(fabric)
        assert reason == "tampered"
        assert "names another key than the one that signed it" in message


def test_a_key_that_is_there_twice(fabric, signed):
    payload = statement_bytes(signed.predicate)
    twice = payload.replace(b'"site":"test"', b'"site":"prod","site":"test"', 1)
    assert twice != payload
    signed.path.write_bytes(seal(twice, PAYLOAD_TYPE, signer(fabric.site)))
    reason, message = agree(fabric)
    assert reason == "tampered"
    assert "signed but malformed" in message
    data = seal(payload, PAYLOAD_TYPE, signer(fabric.site))
    signed.path.write_bytes(data.replace(b'{\n "payload"', b'{\n "payload": "",\n "payload"', 1))
    assert "not in the form in which it was written" in agree(fabric)[1]


def test_a_revocation_taken_off_the_list(fabric, signed):
    certificate.revoke(fabric.site, signed.id, "leaf1 was replaced")
    path = revocation.list_path(fabric.site)
    opened = open_sealed(path.read_bytes(), revocation.PAYLOAD_TYPE, trusted_keys(fabric.site))
    listed = json.loads(opened.payload)
    listed["revoked"] = []
    payload = json.dumps(listed, separators=(",", ":")).encode()
    path.write_bytes(seal(payload, revocation.PAYLOAD_TYPE, CryptoSigner.generate_ed25519()))
    reason, message = agree(fabric)
    assert reason == "revocation-list-bad"
    assert "not trusted" in message
    path.write_bytes(seal(payload, revocation.PAYLOAD_TYPE, signer(fabric.site)))
    assert "two different revocation lists with the number 2" in agree(fabric)[1]


def test_a_revocation_list_with_a_key_twice(fabric, signed):
    certificate.revoke(fabric.site, signed.id, "leaf1 was replaced")
    path = revocation.list_path(fabric.site)
    payload = open_sealed(
        path.read_bytes(), revocation.PAYLOAD_TYPE, trusted_keys(fabric.site)
    ).payload
    twice = payload[:-1] + b',"revoked":[]}'
    path.write_bytes(seal(twice, revocation.PAYLOAD_TYPE, signer(fabric.site)))
    revocation.high_water_path(fabric.site).unlink()
    assert "malformed" in agree(fabric)[1]


@pytest.mark.parametrize("call", [certificate.show, certificate.verify, certificate.read])
@pytest.mark.parametrize("named", ["nosuch", NONE_SUCH, NONE_SUCH + "\n", "x" * 300, "../../x"])
def test_an_unknown_certificate_is_bad_usage(fabric, signed, call, named):
    with pytest.raises(InputError, match="there is no certificate") as error:
        call(fabric.site, named)
    assert f"There are: {signed.id}" in error.value.advice


def test_an_unknown_certificate_where_there_is_none_at_all(fabric):
    with pytest.raises(InputError, match="there is no certificate nosuch") as error:
        certificate.show(fabric.site, "nosuch")
    assert "There is none yet. " in error.value.advice
    assert "paisoar certify" in error.value.advice


def test_what_is_no_file_is_no_certificate_and_is_not_waited_for(fabric, signed):
    signed.path.unlink()
    makers = (os.mkdir, os.mkfifo, lambda path: path.symlink_to("/nowhere"))
    for make, gone in zip(makers, (os.rmdir, os.unlink, os.unlink), strict=True):
        make(signed.path)
        with pytest.raises(InputError, match=r"dsse\.json: a certificate is a file, this is none"):
            certificate.show(fabric.site)
        gone(signed.path)


def test_a_huge_file_is_not_read_to_its_end(fabric, signed):
    os.truncate(signed.path, 100 << 20)
    reason, message = agree(fabric)
    assert reason == "tampered"
    assert "larger than 64 MiB" in message


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100000])
def test_a_file_that_is_no_envelope(fabric, signed, data):
    signed.path.write_bytes(data)
    assert agree(fabric)[0] == "tampered"


def test_a_symlinked_store_is_a_store(fabric, signed, tmp_path):
    real = tmp_path / "elsewhere"
    fabric.site.state_dir.rename(real)
    fabric.site.state_dir.symlink_to(real)
    assert certificate.verify(fabric.site) == signed
    newer, _ = newer_certificate(fabric)
    assert newer.id in certificate.ids(fabric.site)
    assert to_text(newer.not_before) > to_text(signed.not_before)


DEEP = b"[" * 100_000


def test_json_that_is_nested_without_end_is_only_malformed(fabric, signed):
    certificate.states_path(fabric.site, signed.id).write_bytes(DEEP)
    assert certificate.certified_states(fabric.site, signed) == {}
    revocation.high_water_path(fabric.site).write_bytes(DEEP)
    reason, message = agree(fabric)
    assert reason == "revocation-list-bad"
    assert "high-water.json) cannot be read" in message


def test_a_pipe_in_the_place_of_any_file_is_not_waited_for(fabric, signed):
    for path in (
        revocation.list_path(fabric.site),
        revocation.high_water_path(fabric.site),
        certificate.states_path(fabric.site, signed.id),
        next(keys_dir(fabric.site).glob("trusted/*.pub.pem")),
        keys_dir(fabric.site) / "ed25519.pem",
    ):
        data = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        for call in (
            lambda: certificate.verify(fabric.site),
            lambda: certificate.certified_states(fabric.site, signed),
            lambda: signer(fabric.site),
        ):
            with suppress(GateRefusedError, InputError):
                call()
        path.unlink()
        path.write_bytes(data)
    (keys_dir(fabric.site) / "ed25519.pem").chmod(0o600)
    assert certificate.verify(fabric.site) == signed
