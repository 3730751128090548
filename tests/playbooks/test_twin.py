"""The playbooks on a small twin: a switch and two hosts, from factory state and back."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fabric.provisioning.plan import make_plan, mismatches
from fabric.provisioning.planfile import save_plan
from fabric.provisioning.provision import provision, rollback
from fabric.reach.access import access_to
from fabric.reach.collect import read_counters, read_states
from fabric.reach.hostssh import close_hosts, run_on_host
from fabric.reach.inventory import write_inventory
from fabric.reach.playread import read_states_by_playbook
from fabric.reach.switchssh import close_switches
from fabric.topology import ClosShape
from fabric.twin.lifecycle import down, up
from tests.sites import make_site

PLAYBOOKS = Path(__file__).parents[2] / "playbooks"


@pytest.fixture
def site(tmp_path):
    site = make_site(tmp_path, ClosShape(2, 1, 0))
    up(site)
    yield site
    close_switches()
    close_hosts()
    down(site.path)


def _states(result):
    return {name: outcome.state for name, outcome in result.devices.items()}


def _on_host(site, device, command):
    answer = run_on_host(device, access_to(site, device), (command,)).result()[command]
    assert answer.exit_status == 0, answer
    return answer.stdout


def _play(site, tmp_path, plan, *options):
    inventory = tmp_path / "inventory.json"
    write_inventory(inventory, site, site.devices)
    return subprocess.run(
        [
            Path(sys.executable).with_name("ansible-playbook"),
            "-i",
            inventory,
            "-e",
            json.dumps({"paisoar_plan": str(plan)}),
            *options,
            PLAYBOOKS / "provision.yml",
        ],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
    )


@pytest.mark.slow
def test_from_factory_state_to_intended_and_back(site):
    before = read_states(site)
    assert before.failed == {}
    plan = make_plan(site, before)
    assert plan.changed == ("leaf1", "host1", "host2")
    events = []
    run = provision(site, plan, events.append)
    assert _states(run) == dict.fromkeys(("leaf1", "host1", "host2"), "done")
    after = read_states_by_playbook(site)
    for name, state in after.states.items():
        assert mismatches(state, plan.devices[name].intended) == []
    assert after.states["host1"].ports[0].nic.persistent
    assert make_plan(site, after).empty
    assert _states(provision(site, plan)) == dict.fromkeys(plan.devices, "unchanged")
    assert {e.device for e in events if e.step.lower().endswith("read back")} == {
        "leaf1",
        "host1",
        "host2",
    }
    assert read_counters(site).failed == {}

    back = rollback(site, run.run_id)
    assert _states(back) == dict.fromkeys(("leaf1", "host1", "host2"), "done")
    again = read_states(site)
    for name, state in before.states.items():
        assert mismatches(again.states[name], state) == []
    assert "roce-ens1f0.sh" not in _on_host(site, "host1", "ls /etc/paisoar 2>/dev/null; true")


@pytest.mark.slow
def test_a_host_that_cannot_be_set_is_rolled_back_and_named(site):
    before = read_states(site)
    plan = make_plan(site, before)
    # A folder where the boot script is written first: that fails.
    _on_host(site, "host1", "mkdir -p /etc/paisoar/roce-ens1f0.sh.paisoar")
    run = provision(site, plan)
    assert run.devices["leaf1"].state == "done"
    assert run.devices["host1"].state == "rolled-back"
    assert "This command failed: write /etc/paisoar/roce-ens1f0.sh" in run.devices["host1"].detail
    assert run.devices["host2"].state == "untouched"
    assert list(run.error.failed) == ["host1"]
    now = read_states(site, ["host1", "host2"])
    for name, state in now.states.items():
        assert mismatches(state, before.states[name]) == []


def test_a_host_whose_state_makes_no_sense_any_more_fails_alone(site):
    plan = make_plan(site, read_states(site, ["host1"]))
    _on_host(site, "host1", "mkdir -p '/etc/systemd/system/paisoar-roce@.service/x'")
    run = provision(site, plan)
    assert _states(run) == {"host1": "failed"}
    assert run.devices["host1"].detail.startswith("nothing was sent: host1: work out what to")
    assert run.error.exit_code == 3


@pytest.mark.slow
def test_plain_ansible_checks_shows_differences_and_applies(site, tmp_path):
    plan = save_plan(site, make_plan(site, read_states(site)))
    checked = _play(site, tmp_path, plan, "--check", "--diff")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "+  priority-flow-control mode on" in checked.stdout
    assert "mlnx_qos" in checked.stdout
    assert not read_states_changed(site, plan)
    done = _play(site, tmp_path, plan)
    assert done.returncode == 0, done.stdout + done.stderr
    assert make_plan(site, read_states(site)).empty
    twice = _play(site, tmp_path, plan)
    assert twice.returncode == 0, twice.stdout + twice.stderr
    assert "changed=0" in twice.stdout
    assert "changed=1" not in twice.stdout


def read_states_changed(site, plan):
    """Devices that are no longer as the plan's file says they were."""
    from fabric.provisioning.planfile import read_plan

    states = read_states(site).states
    return [n for n, d in read_plan(plan).devices.items() if mismatches(states[n], d.before)]


@pytest.mark.slow
def test_a_host_that_has_changed_since_it_was_planned_is_left_alone_by_plain_ansible(
    site, tmp_path
):
    plan = make_plan(site, read_states(site))
    order = plan.devices["host1"]
    port = dataclasses.replace(order.before.ports[0], mtu_bytes=1234)
    before = dataclasses.replace(order.before, ports=(port,))
    order = dataclasses.replace(order, before=before, read_sha256="0" * 64)
    path = save_plan(site, dataclasses.replace(plan, devices={**plan.devices, "host1": order}))
    played = _play(site, tmp_path, path, "--limit", "host1")
    assert played.returncode == 2
    assert "it has changed since it was planned: ens1f0: mtu_bytes: 1234" in played.stdout
