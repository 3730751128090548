"""Ansible's inventory of a site: complete, and without secrets."""

import json

import pytest

from fabric.devices.registry import target_of
from fabric.reach.access import access_to
from fabric.reach.inventory import access_from, passwords, target_from, write_inventory
from tests.sites import make_site


@pytest.fixture
def site(tmp_path, monkeypatch):
    folder = tmp_path / "a b"
    folder.mkdir()
    monkeypatch.setenv("PAISOAR_KNOWN_HOSTS", str(folder / "known_hosts"))
    monkeypatch.setenv("PAISOAR_SWITCH_PASSWORD", "pass-4711")
    monkeypatch.setenv("PAISOAR_HOST_PASSWORD", "pass-4712")
    monkeypatch.setenv("PAISOAR_HOST_USER", "ops")
    return make_site(folder, environment="site")


@pytest.fixture
def groups(site, tmp_path):
    path = tmp_path / "inventory.json"
    write_inventory(path, site, site.devices)
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    assert "4711" not in text
    assert "4712" not in text
    children = json.loads(text)["all"]["children"]
    return {group: entry["hosts"] for group, entry in children.items()}


def test_switches_and_hosts_are_groups(site, groups):
    assert tuple(groups["switches"]) == site.topology.switches
    assert tuple(groups["hosts"]) == site.topology.hosts


def test_what_a_plugin_reads_from_it_is_what_the_site_says(site, groups):
    for members in groups.values():
        for name, variables in members.items():
            assert access_from(variables) == access_to(site, name)
            assert target_from(variables) == target_of(site, name)


def test_hosts_become_root_and_check_only_our_host_keys(site, groups):
    variables = groups["hosts"]["host1"]
    assert variables["ansible_become"] is True
    assert variables["ansible_password"] == "{{ lookup('env', 'PAISOAR_HOST_PASSWORD') }}"
    known = access_to(site, "host1").known_hosts
    assert f"""-o 'UserKnownHostsFile="{known}"'""" in variables["ansible_ssh_common_args"]
    assert "GlobalKnownHostsFile=none" in variables["ansible_ssh_common_args"]


def test_only_the_passwords_that_are_needed_are_handed_over(site):
    assert passwords(site, ["leaf1"]) == {"PAISOAR_SWITCH_PASSWORD": "pass-4711"}
    assert passwords(site, ["host1"]) == {"PAISOAR_HOST_PASSWORD": "pass-4712"}
    assert set(passwords(site, site.devices)) == {
        "PAISOAR_SWITCH_PASSWORD",
        "PAISOAR_HOST_PASSWORD",
    }
