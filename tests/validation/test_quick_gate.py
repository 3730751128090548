"""The gate by the watch's last reading: the same answers, and never by a bad one."""

import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

import pytest
from securesystemslib.signer import CryptoSigner

from fabric.errors import DevicesError, GateRefusedError, InputError
from fabric.qos import PortFacts
from fabric.site import load_site
from tests.sites import write_site
from tests.validation.readings import keep_reading
from validation.certificates import certificate
from validation.certificates.keys import keys_dir, signer
from validation.gate import open_gate_quickly
from validation.times import utc_now
from validation.watch.reading import reading_path, write_reading

HOSTS = ("host1", "host2")


def refusal(fabric, *, site=None, hosts=HOSTS, **options):
    with pytest.raises(GateRefusedError) as error:
        open_gate_quickly(site or fabric.site, hosts, **options)
    return error.value.reason, error.value.message


def test_a_young_reading_of_the_certified_fabric_opens(fabric, signed):
    keep_reading(fabric, age_s=7)
    passed = open_gate_quickly(fabric.site, HOSTS)
    assert passed.certificate_id == signed.id
    assert passed.hosts == HOSTS
    assert 7 <= passed.reading_age_s < 100


def test_it_needs_no_private_key_and_no_device(fabric, signed):
    keep_reading(fabric)
    (keys_dir(fabric.site) / "ed25519.pem").unlink()
    fabric.dead.update(fabric.site.devices)
    assert open_gate_quickly(fabric.site, HOSTS)


def test_no_reading(fabric, signed):
    reason, message = refusal(fabric)
    assert reason == "no-reading"
    assert "reading.dsse.json" in message


def test_a_reading_that_is_too_old(fabric, signed):
    keep_reading(fabric, age_s=130)
    reason, message = refusal(fabric)
    assert reason == "reading-stale"
    assert "130 s ago, at most 120 s are allowed" in message
    assert open_gate_quickly(fabric.site, HOSTS, max_age_s=600)


def test_a_reading_from_the_future_has_no_age(fabric, signed):
    keep_reading(fabric, age_s=-60)
    reason, message = refusal(fabric)
    assert reason == "reading-stale"
    assert "its age cannot be told" in message


def test_a_reading_of_a_strange_key_or_altered(fabric, signed):
    keep_reading(fabric, with_signer=CryptoSigner.generate_ed25519())
    reason, message = refusal(fabric)
    assert reason == "reading-bad"
    assert "not trusted" in message
    keep_reading(fabric)
    path = reading_path(fabric.site)
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"payload": "e', b'"payload": "f', 1))
    assert refusal(fabric)[0] == "reading-bad"
    # A certificate is no reading, whoever signed it.
    path.write_bytes(signed.path.read_bytes())
    assert refusal(fabric)[0] == "reading-bad"


def test_a_reading_of_another_site(fabric, signed, tmp_path):
    keep_reading(fabric)
    path = write_site(tmp_path)
    path.write_text(path.read_text().replace("site: test", "site: prod"))
    reason, _ = refusal(fabric, site=load_site(path))
    assert reason == "other-site"


def test_a_device_that_changed_is_named_with_what(fabric, signed):
    state = fabric.states["leaf2"]
    port = replace(state.ports[1], pfc_priorities=())
    fabric.states["leaf2"] = replace(state, ports=(state.ports[0], port, *state.ports[2:]))
    keep_reading(fabric)
    reason, message = refusal(fabric)
    assert reason == "fabric-changed"
    assert "changed: leaf2 (leaf2: Ethernet1/2: pfc_priorities: 3 -> none)" in message


def test_other_hosts_may_have_changed_or_be_dead(fabric, signed):
    fabric.states["host3"] = replace(fabric.states["host3"], firmware="2")
    fabric.dead.add("host4")
    keep_reading(fabric)
    assert open_gate_quickly(fabric.site, HOSTS)
    assert refusal(fabric, hosts=("host3",))[0] == "fabric-changed"
    with pytest.raises(DevicesError, match="host4: .*connection refused") as error:
        open_gate_quickly(fabric.site, ("host4",))
    assert error.value.exit_code == 3


def test_a_link_that_is_down(fabric, signed):
    state = fabric.states["leaf1"]
    fabric.states["leaf1"] = replace(state, facts=(PortFacts("Ethernet1/1", up=False),))
    keep_reading(fabric)
    reason, message = refusal(fabric)
    assert reason == "port-down"
    assert "leaf1:Ethernet1/1 has no link" in message
    # host1 hangs there; jobs that do not use it go on, also while it is still listed.
    assert open_gate_quickly(fabric.site, ("host3", "host4"))


def test_what_holds_for_certificates_holds_here(fabric, signed):
    keep_reading(fabric)
    assert refusal(fabric, hosts=("host1", "host9"))[0] == "scope"
    assert refusal(fabric, minimum_class="hardware")[0] == "class"
    later = signed.not_after
    assert refusal(fabric, clock=lambda: later)[0] == "expired"
    certificate.revoke(fabric.site, signed.id, "leaf1 was replaced")
    assert refusal(fabric)[0] == "revoked"
    with pytest.raises(InputError, match="no host"):
        open_gate_quickly(fabric.site, ())


def test_a_reading_compared_with_an_older_certificate(fabric, signed):
    state = fabric.states["leaf1"]
    fabric.states["leaf1"] = replace(state, facts=(PortFacts("Ethernet1/1", up=False),))
    reading = keep_reading(fabric)
    other = reading.model_copy(update={"certificate_id": "cert-20250101T000000Z-000000"})
    write_reading(fabric.site, other, signer(fabric.site))
    reason, message = refusal(fabric, hosts=("host3",))
    assert reason == "no-reading"
    assert "another certificate" in message


def test_a_reading_stays_as_old_as_its_first_question(fabric, signed):
    reading = keep_reading(fabric, age_s=50)
    assert reading.age_s(utc_now() + timedelta(seconds=10)) >= 60


def test_its_answer_waits_for_no_library_that_it_does_not_need(site, signed):
    """Those that measure and change devices, which take longer to import than the answer."""
    code = (
        "import sys; from paisoar.quick import app; "
        f"sys.argv = ['paisoar']; app(['gate', '-f', {str(site.path)!r}], standalone_mode=False); "
        "print([n for n in ('numpy', 'pandas', 'pyarrow', 'numba', 'hier_config', 'netmiko', "
        "'sqlalchemy', 'jinja2') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
