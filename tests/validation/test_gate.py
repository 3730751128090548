"""The gate: one way in, and a reason of its own for each way to be refused."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from securesystemslib.signer import CryptoSigner

from fabric.errors import DevicesError, GateRefusedError, InputError, JudgedBadError
from fabric.qos import PortFacts
from fabric.site import load_site
from tests.sites import make_site, write_site
from validation.certificates import certificate, revocation
from validation.certificates.certify import certify
from validation.certificates.envelope import SealError, open_sealed, seal
from validation.certificates.fingerprint import explain, fingerprint
from validation.certificates.keys import keys_dir, signer, trusted_dir, trusted_keys
from validation.certificates.predicate import PAYLOAD_TYPE, statement_bytes
from validation.gate import open_gate
from validation.run import run_suites
from validation.times import to_text, utc_now

HOSTS = ("host1", "host2")


def refusal(fabric, *, site=None, hosts=HOSTS, **options):
    with pytest.raises(GateRefusedError) as error:
        open_gate(site or fabric.site, hosts, reader=fabric.read_states, **options)
    assert error.value.exit_code == 1
    return error.value.reason, error.value.message


def resign(site, signed, with_signer=None, **changes):
    """Another certificate as this site's own key would sign it."""
    predicate = signed.predicate.model_copy(update=changes)
    data = seal(statement_bytes(predicate), PAYLOAD_TYPE, with_signer or signer(site))
    certificate.certificate_path(site, predicate.id).write_bytes(data)


def test_the_gate_opens_for_covered_hosts_on_the_certified_fabric(fabric, signed):
    passed = open_gate(fabric.site, HOSTS, reader=fabric.read_states)
    assert passed.certificate_id == signed.id
    assert passed.hosts == HOSTS
    assert passed.fingerprint == signed.fingerprint.sha256
    assert passed.evidence_class == "simulated"
    assert passed.loopback_only
    assert (
        open_gate(
            fabric.site, HOSTS, certificate=signed.path, reader=fabric.read_states
        ).certificate_id
        == signed.id
    )


def test_no_host_at_all_is_a_mistake_not_a_pass(fabric, signed):
    with pytest.raises(InputError, match="no host"):
        open_gate(fabric.site, (), reader=fabric.read_states)


def test_without_a_certificate(fabric):
    reason, message = refusal(fabric)
    assert (reason, message) == ("no-certificate", "site test has no certificate.")


def test_one_changed_byte(fabric, signed):
    data = signed.path.read_bytes()
    at = data.index(b'"payload": "') + 40
    signed.path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    reason, message = refusal(fabric)
    assert reason == "tampered"
    assert "is not believed: its signature does not fit its content" in message


def test_every_changed_byte_is_refused(site):
    """Exhaustive over a small envelope: no position is free, and no bit of it."""
    key = CryptoSigner.generate_ed25519()
    data = seal(b'{"a": 1}', PAYLOAD_TYPE, key)
    assert open_sealed(data, PAYLOAD_TYPE, [key.public_key]).payload == b'{"a": 1}'
    for position in range(len(data)):
        for bit in range(8):
            altered = bytearray(data)
            altered[position] ^= 1 << bit
            with pytest.raises(SealError):
                open_sealed(bytes(altered), PAYLOAD_TYPE, [key.public_key])


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_no_altered_certificate_is_ever_accepted(fabric, signed, data):
    original = signed.path.read_bytes()
    kind = data.draw(st.sampled_from(["flip", "insert", "delete", "append"]))
    at = data.draw(st.integers(0, len(original) - 1))
    byte = bytes([data.draw(st.integers(0, 255))])
    altered = {
        "flip": original[:at] + byte + original[at + 1 :],
        "insert": original[:at] + byte + original[at:],
        "delete": original[:at] + original[at + 1 :],
        "append": original + byte,
    }[kind]
    try:
        signed.path.write_bytes(altered)
        if altered == original:
            certificate.verify(fabric.site)
            return
        reason, _ = refusal(fabric)
        assert reason in ("tampered", "wrong-key")
    finally:
        signed.path.write_bytes(original)


def test_another_key(fabric, signed):
    resign(fabric.site, signed, CryptoSigner.generate_ed25519())
    reason, message = refusal(fabric)
    assert reason == "wrong-key"
    assert "which is not trusted" in message


def test_a_key_id_is_no_proof(fabric, signed):
    stranger = CryptoSigner.generate_ed25519()
    resign(fabric.site, signed, stranger)
    envelope = json.loads(signed.path.read_bytes())
    envelope["signatures"][0]["keyid"] = trusted_keys(fabric.site)[0].keyid
    signed.path.write_text(json.dumps(envelope, sort_keys=True, indent=1) + "\n")
    assert refusal(fabric)[0] == "tampered"


def test_a_key_that_is_no_longer_trusted(fabric, signed):
    for path in trusted_dir(fabric.site).iterdir():
        path.unlink()
    assert refusal(fabric)[0] == "wrong-key"


def test_an_unreadable_trusted_key_is_named(fabric, signed):
    bad = trusted_dir(fabric.site) / "bad.pub.pem"
    bad.write_text("hello")
    with pytest.raises(InputError, match="bad.pub.pem: is no public key"):
        open_gate(fabric.site, HOSTS, reader=fabric.read_states)


def test_expired(fabric, signed):
    assert open_gate(
        fabric.site,
        HOSTS,
        reader=fabric.read_states,
        clock=lambda: signed.not_after - timedelta(seconds=1),
    )
    reason, message = refusal(fabric, clock=lambda: signed.not_after)
    assert reason == "expired"
    assert f"expired at {to_text(signed.not_after)}" in message


def test_not_yet_valid(fabric, signed):
    reason, message = refusal(fabric, clock=lambda: signed.not_before - timedelta(seconds=1))
    assert reason == "not-yet-valid"
    assert "holds from" in message


def test_revoked(fabric, signed):
    certificate.revoke(fabric.site, signed.id, "leaf1 was replaced")
    reason, message = refusal(fabric)
    assert reason == "revoked"
    assert "leaf1 was replaced" in message
    again = certificate.revoke(fabric.site, signed.id, "twice")
    assert again.sequence == 2
    assert len(again.revoked) == 1
    assert certificate.show(fabric.site).reason == "revoked"


def test_an_older_revoked_certificate_does_not_stand_in_the_way(fabric, signed):
    made = run_suites(fabric.site, readers=fabric.readers(), probe=fabric.probe)
    later = utc_now() + timedelta(seconds=2)
    newer = certify(fabric.site, made, reader=fabric.read_states, clock=lambda: later)
    certificate.revoke(fabric.site, signed.id, "superseded")
    passed = open_gate(fabric.site, HOSTS, reader=fabric.read_states, clock=lambda: later)
    assert passed.certificate_id == newer.id


def test_revoking_needs_a_known_certificate_and_a_reason(fabric, signed):
    with pytest.raises(InputError, match=r"no certificate cert-x.*There are: cert-"):
        certificate.revoke(fabric.site, "cert-x", "because")
    with pytest.raises(InputError, match="say why"):
        certificate.revoke(fabric.site, signed.id, "  ")


def test_a_missing_revocation_list(fabric, signed):
    revocation.list_path(fabric.site).unlink()
    reason, message = refusal(fabric)
    assert reason == "revocation-list-bad"
    assert "is gone; number 1 or newer must be there" in message
    revocation.high_water_path(fabric.site).unlink()
    assert refusal(fabric)[0] == "revocation-list-bad"
    revocation.high_water_path(fabric.site).write_text('{"sequence": 1, "sha256": ""}')
    with pytest.raises(JudgedBadError, match="cannot be revoked"):
        certificate.revoke(fabric.site, signed.id, "because")


def test_an_older_revocation_list_put_back(fabric, signed):
    path = revocation.list_path(fabric.site)
    older = path.read_bytes()
    certificate.revoke(fabric.site, signed.id, "because")
    path.write_bytes(older)
    reason, message = refusal(fabric)
    assert reason == "revocation-list-bad"
    assert "number 1, but number 2 has been seen" in message


def test_a_forged_or_foreign_revocation_list(fabric, signed):
    path = revocation.list_path(fabric.site)
    original = path.read_bytes()
    stranger = CryptoSigner.generate_ed25519()
    payload = open_sealed(original, revocation.PAYLOAD_TYPE, trusted_keys(fabric.site)).payload
    path.write_bytes(seal(payload, revocation.PAYLOAD_TYPE, stranger))
    assert "not trusted" in refusal(fabric)[1]
    other = payload.replace(b'"site":"test"', b'"site":"elsewhere"')
    path.write_bytes(seal(other, revocation.PAYLOAD_TYPE, signer(fabric.site)))
    assert "that of site 'elsewhere'" in refusal(fabric)[1]
    same_number = payload.replace(b'"issued_at":"2', b'"issued_at":"1')
    path.write_bytes(seal(same_number, revocation.PAYLOAD_TYPE, signer(fabric.site)))
    assert "two different revocation lists" in refusal(fabric)[1]
    # A certificate is no revocation list, whoever signed it.
    path.write_bytes(signed.path.read_bytes())
    assert refusal(fabric)[0] == "revocation-list-bad"


def test_another_site(fabric, signed, tmp_path):
    path = write_site(tmp_path)
    path.write_text(path.read_text().replace("site: test", "site: prod"))
    reason, message = refusal(fabric, site=load_site(path))
    assert reason == "other-site"
    assert "is of site 'test', this is 'prod'" in message


def test_hosts_out_of_scope(fabric, signed):
    reason, message = refusal(fabric, hosts=("host1", "host9"))
    assert reason == "scope"
    assert message.endswith("does not cover host9.")


def test_simulated_evidence_never_opens_a_real_site(fabric, signed, tmp_path):
    real = make_site(tmp_path, environment="site")
    reason, message = refusal(fabric, site=real)
    assert reason == "class"
    assert "rests on simulated evidence" in message
    reason, message = refusal(fabric, minimum_class="hardware")
    assert reason == "class"
    assert "hardware is demanded" in message
    lowered = {"site": real, "minimum_class": "simulated"}
    assert refusal(fabric, **lowered)[0] == "class"
    with pytest.raises(GateRefusedError, match="rests on simulated evidence"):
        certificate.verify(real)
    shown = certificate.show(real)
    assert (shown.valid, shown.reason, shown.certificate) == (False, "class", signed)


def test_soft_roce_never_proves_lossless(fabric, signed):
    resign(fabric.site, signed, evidence_class="soft-roce", simulated=False)
    reason, message = refusal(fabric)
    assert reason == "class"
    assert "Soft-RoCE, which never proves the profile lossless-dcqcn" in message


def test_a_changed_device_is_named_with_what_changed(fabric, signed):
    state = fabric.states["leaf2"]
    port = replace(state.ports[1], pfc_priorities=())
    fabric.states["leaf2"] = replace(state, ports=(state.ports[0], port, *state.ports[2:]))
    reason, message = refusal(fabric)
    assert reason == "fabric-changed"
    assert "changed: leaf2 (leaf2: Ethernet1/2: pfc_priorities: 3 -> none)" in message


def test_any_line_of_a_switch_and_any_recabling_counts(fabric, signed):
    state = fabric.states["leaf1"]
    fabric.states["leaf1"] = replace(state, config_sha256="ab" * 32)
    assert "the running configuration is another text" in refusal(fabric)[1]
    moved = tuple(replace(n, peer="host4") for n in state.neighbors[:1])
    fabric.states["leaf1"] = replace(state, neighbors=(*moved, *state.neighbors[1:]))
    assert "LLDP neighbour: host1:ens1f0 -> host4:ens1f0" in refusal(fabric)[1]


def test_without_the_certified_states_the_device_is_still_named(fabric, signed):
    certificate.states_path(fabric.site, signed.id).unlink()
    fabric.states["host1"] = replace(fabric.states["host1"], firmware="2")
    reason, message = refusal(fabric)
    assert reason == "fabric-changed"
    assert "host1: (its certified state is not at hand)" in message


def test_hosts_that_the_job_does_not_use_may_change_or_be_down(fabric, signed):
    fabric.states["host3"] = replace(fabric.states["host3"], firmware="2")
    fabric.dead.add("host4")
    assert open_gate(fabric.site, HOSTS, reader=fabric.read_states)
    assert refusal(fabric, hosts=("host3",))[0] == "fabric-changed"


def test_an_unreachable_device_is_no_refusal_but_an_access_error(fabric, signed):
    fabric.dead.add("spine1")
    with pytest.raises(DevicesError, match="spine1: log in: connection refused") as error:
        open_gate(fabric.site, HOSTS, reader=fabric.read_states)
    assert error.value.exit_code == 3


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("kmin: 100KB", "kmin: 90KB", "intent: is not what was certified"),
        ("length_m: 30}", "length_m: 31}", "devices and cables"),
        ("max_latency_p99_us: 9.0", "max_latency_p99_us: 5.0", "max_latency_p99_us: 9.0 -> 5.0"),
    ],
)
def test_a_changed_intent(fabric, signed, tmp_path, old, new, words):
    path = write_site(tmp_path)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    changed = load_site(path)
    reason, message = refusal(fabric, site=changed)
    assert reason == "intent-changed"
    assert words in message
    assert certificate.show(changed).reason == "intent-changed"


def test_how_long_the_next_certificate_holds_is_not_intent(fabric, signed, tmp_path):
    path = write_site(tmp_path)
    path.write_text(path.read_text().replace("valid_hours: 168", "valid_hours: 24"))
    assert open_gate(load_site(path), HOSTS, reader=fabric.read_states)


def test_a_certificate_under_another_ones_name(fabric, signed):
    newer = certificate.certificate_path(fabric.site, "cert-29990101T000000Z-abcdef")
    newer.write_bytes(signed.path.read_bytes())
    reason, message = refusal(fabric)
    assert reason == "tampered"
    assert "was put in its place" in message


def test_a_statement_of_our_key_with_unknown_fields_is_refused(fabric, signed):
    document = json.loads(statement_bytes(signed.predicate))
    document["predicate"]["waived"] = True
    data = seal(json.dumps(document).encode(), PAYLOAD_TYPE, signer(fabric.site))
    signed.path.write_bytes(data)
    reason, message = refusal(fabric)
    assert reason == "tampered"
    assert "signed but malformed" in message


def test_the_gate_needs_no_private_key(fabric, signed):
    (keys_dir(fabric.site) / "ed25519.pem").unlink()
    assert open_gate(fabric.site, HOSTS, reader=fabric.read_states)


def show(fabric, device, port, **facts):
    state = fabric.states[device]
    fabric.states[device] = replace(state, facts=(PortFacts(port, **facts),))


@pytest.mark.parametrize(
    ("device", "port", "facts", "why"),
    [
        ("host1", "ens1f0", {"up": False, "admin_up": False}, "host1:ens1f0 is shut"),
        ("host1", "ens1f0", {"up": False, "admin_up": True}, "host1:ens1f0 has no link"),
        ("leaf1", "Ethernet1/1", {"up": False}, "leaf1:Ethernet1/1 has no link"),
        ("spine1", "Ethernet1/2", {"up": False}, "spine1:Ethernet1/2 has no link"),
    ],
)
def test_a_port_that_is_down_now(fabric, signed, device, port, facts, why):
    show(fabric, device, port, **facts)
    reason, message = refusal(fabric)
    assert reason == "port-down"
    assert why in message


def test_a_link_that_has_come_back_is_what_was_certified(fabric, signed):
    show(fabric, "host1", "ens1f0", up=False, admin_up=True)
    assert refusal(fabric)[0] == "port-down"
    show(fabric, "host1", "ens1f0", up=True, admin_up=True)
    assert open_gate(fabric.site, HOSTS, reader=fabric.read_states).certificate_id == signed.id


def test_another_hosts_link_may_be_down_and_its_neighbour_silent(fabric, signed):
    port = next(p for p in fabric.site.topology.ports_of["host4"])
    far = fabric.site.topology.peer(port)
    state = fabric.states[far.device]
    heard = tuple(n for n in state.neighbors if n.port != far.port)
    fabric.states[far.device] = replace(state, neighbors=heard)
    # A neighbour that is gone although the link is up is another matter.
    assert refusal(fabric)[0] == "fabric-changed"
    show(fabric, far.device, far.port, up=False, admin_up=True)
    assert open_gate(fabric.site, HOSTS, reader=fabric.read_states)


def test_a_port_that_somebody_shuts_is_another_fabric(fabric):
    before = fingerprint(fabric.site, fabric.states)
    show(fabric, "host1", "ens1f0", up=False, admin_up=True)
    assert fingerprint(fabric.site, fabric.states) == before
    kept = dict(fabric.states)
    show(fabric, "host1", "ens1f0", up=False, admin_up=False)
    assert before.changed(fingerprint(fabric.site, fabric.states)) == ("host1",)
    assert explain(kept, fabric.states) == ["host1: ens1f0: in service -> shut"]
    assert explain(fabric.states, kept) == ["host1: ens1f0: shut -> in service"]


def test_a_capped_nic_is_another_fabric(fabric, signed):
    state = fabric.states["host1"]
    (port, *others) = state.ports
    queues = tuple(replace(q, max_rate_bps=10**9 * (q.traffic_class == 3)) for q in port.queues)
    fabric.states["host1"] = replace(state, ports=(replace(port, queues=queues), *others))
    reason, message = refusal(fabric)
    assert reason == "fabric-changed"
    assert "host1: ens1f0: queue 3 max_rate_bps: 0 -> 1000000000" in message
