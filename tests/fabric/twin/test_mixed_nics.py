"""Hosts with ConnectX, Broadcom and Intel NICs at one leaf: set, judged and broken over SSH."""

from __future__ import annotations

import pytest

from fabric.audit import audit
from fabric.devices.registry import expected_qos
from fabric.errors import InputError
from fabric.provisioning.plan import make_plan
from fabric.provisioning.provision import provision
from fabric.reach.collect import read_states
from fabric.reach.hostssh import close_hosts
from fabric.reach.switchssh import close_switches
from fabric.site import load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape
from fabric.twin.lifecycle import break_fabric, down, up

pytestmark = pytest.mark.slow

HOSTS = {"host1": "mlx5", "host2": "bnxt", "host3": "irdma"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    path = tmp_path_factory.mktemp("mixed") / "fabric.yaml"
    path.write_text(
        starter_yaml(
            ClosShape(3, 1, 0), site="mixed", environment="twin", nics=list(HOSTS.values())
        )
    )
    site = load_site(path)
    up(site)
    yield site
    close_switches()
    close_hosts()
    down(site.path)


def judged(site):
    states = read_states(site)
    assert states.failed == {}
    intended = {name: expected_qos(site, name) for name in site.devices}
    return audit(site, states.states, intended)


def found(report):
    return {(finding.rule, finding.device) for finding in report.findings}


def states_of(result):
    return {name: outcome.state for name, outcome in result.devices.items()}


def test_one_run_sets_every_family_and_a_second_finds_nothing_to_do(site):
    before = found(judged(site))
    for host in HOSTS:
        assert ("pfc", host) in before
    plan = make_plan(site, read_states(site))
    assert set(states_of(provision(site, plan)).values()) == {"done"}
    report = judged(site)
    assert report.findings == ()
    assert report.paths.lossless_pairs == 6
    assert make_plan(site, read_states(site)).empty


def test_a_fault_that_a_nic_refuses_is_said(site):
    break_fabric(site, "nic-reset", "host3")
    with pytest.raises(InputError, match="host3's NIC answered: Invalid argument"):
        break_fabric(site, "dscp-map", "host3")


def test_a_wrong_map_and_a_reset_are_found_on_every_family(site):
    provision(site, make_plan(site, read_states(site)))
    for host in HOSTS:
        break_fabric(site, "dscp-map", host)
    assert {("dscp-map", host) for host in HOSTS} <= found(judged(site))
    for host in HOSTS:
        break_fabric(site, "nic-reset", host)
    faults = found(judged(site))
    for rule in ("pfc", "trust", "rdma-mtu", "link-pause"):
        assert {(rule, host) for host in HOSTS} <= faults, rule
    # DCQCN is on by default with ConnectX only, there with other parameters.
    assert {("dcqcn", "host1"), ("dcqcn-off", "host2"), ("dcqcn-off", "host3")} <= faults
    assert ("dcbx", "host3") in faults
    mended = provision(site, make_plan(site, read_states(site)))
    assert {states_of(mended)[host] for host in HOSTS} == {"done"}
    assert judged(site).findings == ()
