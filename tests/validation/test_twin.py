"""From a bare twin to a certificate and back to a refusal, over real SSH sessions."""

import pytest

from fabric.errors import DevicesError, GateRefusedError, JudgedBadError
from fabric.provisioning.plan import make_plan
from fabric.provisioning.provision import provision
from fabric.reach.collect import read_states
from fabric.reach.hostssh import close_hosts
from fabric.reach.switchssh import close_switches
from fabric.twin.lifecycle import break_fabric, down, up
from tests.sites import make_site
from validation.certificates.certify import certify
from validation.gate import open_gate
from validation.results import frames
from validation.run import run_suites


@pytest.fixture
def site(tmp_path):
    made = make_site(tmp_path)
    up(made)
    yield made
    close_switches()
    close_hosts()
    down(made.path)


def failed(made):
    return {check.id for check in made.all_checks if check.verdict == "FAIL"}


@pytest.mark.slow
def test_a_twin_is_proven_certified_broken_and_refused(site):
    bare = run_suites(site)
    assert {"preflight.mtu", "preflight.priority", "incast.pause-ratio"} <= failed(bare)
    with pytest.raises(JudgedBadError, match="preflight.mtu"):
        certify(site, bare)

    provision(site, make_plan(site, read_states(site)))
    sound = run_suites(site)
    assert failed(sound) == set()
    assert sound.verdict == "PASS"
    moved = frames.counters_frame(sound)
    # Every device was read over SSH on both sides, and counted what passed it.
    assert set(moved["device"]) == set(site.devices)
    signed = certify(site, sound)
    hosts = site.topology.hosts
    assert open_gate(site, hosts).certificate_id == signed.id

    break_fabric(site, "pfc-off")
    with pytest.raises(GateRefusedError, match=r"leaf1: Ethernet1/1: pfc_priorities: 3 -> none"):
        open_gate(site, hosts)
    broken = run_suites(site, ["incast"])
    (loss,) = [check for check in broken.failures if check.id == "incast.loss"]
    assert (loss.device, loss.port) == ("leaf1", "Ethernet1/1")
    assert "PFC is off there" in loss.reason

    down(site.path)
    with pytest.raises(DevicesError, match="twin") as unreachable:
        open_gate(site, hosts)
    assert unreachable.value.exit_code == 3
