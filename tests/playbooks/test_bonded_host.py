"""A host whose two NICs are a bond, on the twin: provisioned with it, and taken back."""

import json

import pytest

from fabric.provisioning.plan import make_plan, mismatches
from fabric.provisioning.provision import provision, rollback
from fabric.reach.access import access_to
from fabric.reach.collect import read_states
from fabric.reach.hostssh import close_hosts, run_on_host
from fabric.reach.switchssh import close_switches
from fabric.topology import ClosShape
from fabric.twin.lifecycle import down, up
from tests.sites import make_site

BONDED = (
    "ip link add bond0 type bond mode 802.3ad; "
    "for port in ens1f0 ens1f1; do "
    "ip link set dev $port down && ip link set dev $port master bond0; done"
)


@pytest.fixture
def site(tmp_path):
    site = make_site(tmp_path, ClosShape(1, 2, 1, nics_per_host=2))
    up(site)
    yield site
    close_switches()
    close_hosts()
    down(site.path)


def _on_host(site, command):
    answer = run_on_host("host1", access_to(site, "host1"), (command,)).result()[command]
    assert answer.exit_status == 0, answer
    return answer.stdout


@pytest.mark.slow
def test_a_bonded_host_is_provisioned_with_its_bond_and_taken_back(site):
    _on_host(site, BONDED)
    before = read_states(site, ["host1"])
    assert {facts.bond for facts in before.states["host1"].facts} == {"bond0"}
    plan = make_plan(site, before)
    run = provision(site, plan)
    assert run.devices["host1"].state == "done", run.devices["host1"]
    after = read_states(site, ["host1"])
    assert mismatches(after.states["host1"], plan.devices["host1"].intended) == []
    assert make_plan(site, after).empty
    (bond,) = json.loads(_on_host(site, "ip -d -j link show dev bond0"))
    assert (bond["mtu"], bond["linkinfo"]["info_kind"]) == (9000, "bond")
    assert rollback(site, run.run_id).devices["host1"].state == "done"
    again = read_states(site, ["host1"])
    assert mismatches(again.states["host1"], before.states["host1"]) == []
    assert _on_host(site, "cat /sys/class/net/bond0/mtu").strip() == "1500"
