"""A device of the twin that reboots: what was saved comes back, and its uptime tells."""

from __future__ import annotations

import asyncio
import time

import pytest

from fabric.devices.registry import module_of, target_of
from fabric.reach.collect import read_counters
from fabric.site import load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape
from fabric.twin.eos.cli import Cli as EosCli
from fabric.twin.junos.cli import Cli as JunosCli
from fabric.twin.lifecycle import break_fabric, down, up
from fabric.twin.nxos.cli import Cli as NxosCli
from fabric.twin.switches import EMULATORS, emulated_switch
from tests.fabric.twin.clients import ssh
from validation.boots import boot_known, rebooted

CLIS = {"nxos": NxosCli, "eos": EosCli, "junos": JunosCli}


def made(folder, os):
    path = folder / "fabric.yaml"
    path.write_text(starter_yaml(ClosShape(2, 1, 1), site="t", environment="twin", switch_os=[os]))
    return load_site(path)


def snapshot(site, switch, at_s):
    module, target = module_of(site, switch.name), target_of(site, switch.name)
    cli = CLIS.get(site.switch(switch.name).os)
    session = cli(switch) if cli else switch.shell()
    outputs = {c: session.execute(c).text for c in module.counter_commands(target)}
    return module.read_counters(target, outputs, at_s)


@pytest.mark.parametrize("os", EMULATORS)
def test_each_system_shows_that_it_rebooted(tmp_path, os):
    site = made(tmp_path, os)
    leaf = emulated_switch("leaf1", tmp_path / "leaf1", site, {})
    leaf._stored.booted_at_s -= 3 * 86400
    now = time.time()
    before, still = snapshot(site, leaf, now), snapshot(site, leaf, now + 30)
    assert boot_known(before, still)
    assert rebooted(before, still) == ""
    said = leaf.break_("reboot", "")
    assert "leaf1 rebooted" in said
    after = snapshot(site, leaf, now + 60)
    assert "it rebooted between " in rebooted(before, after)
    # A new start of the twin is no boot.
    leaf.close()
    again = emulated_switch("leaf1", tmp_path / "leaf1", site, {})
    assert rebooted(after, snapshot(site, again, now + 60)) == ""


def test_a_reboot_takes_what_was_not_saved_and_every_count(tmp_path):
    site = made(tmp_path, "nxos")
    leaf = emulated_switch("leaf1", tmp_path / "leaf1", site, {})
    leaf.break_("pfc-off", "Ethernet1/1")
    assert leaf.running_text() != leaf.startup
    leaf._stored.counters["Ethernet1/1", "rx_packets", None] = 7
    leaf.break_("reboot", "")
    assert leaf.running_text() == leaf.startup
    assert leaf.counter("Ethernet1/1", "rx_packets") == 0


def test_a_twins_switch_and_host_are_rebooted_over_its_control_channel(tmp_path):
    site = made(tmp_path, "sonic")
    up(site)
    try:
        before = read_counters(site).snapshots
        ssh(site, "host1", "ip link set ens1f0 mtu 9000")
        assert "leaf1 rebooted" in break_fabric(site, "reboot")
        assert "host1 rebooted" in break_fabric(site, "reboot", "host1")
        after = read_counters(site).snapshots
        said = {name: rebooted(before[name], after[name]) for name in before}
        assert {name for name, words in said.items() if words} == {"leaf1", "host1"}
        assert all(boot_known(before[name], after[name]) for name in before)
        # Nothing set it for the boot: it is gone.
        assert ssh(site, "host1", "cat /sys/class/net/ens1f0/mtu").stdout == "1500\n"
    finally:
        down(site.path)


_SAVING = {
    "nxos": (
        "configure terminal",
        "interface Ethernet1/1",
        "mtu 9000",
        "end",
        "copy running-config startup-config",
    ),
    "eos": ("enable", "configure", "interface Ethernet1", "mtu 9000", "end", "write"),
    "junos": ("configure", "set interfaces et-0/0/0 mtu 9000", "commit"),
    "sonic": ("sudo config interface mtu Ethernet0 9000", "sudo config save -y"),
    "nvue": ("nv set interface swp1 link mtu 9000", "nv config apply -y", "nv config save"),
}


@pytest.mark.parametrize("os", EMULATORS)
def test_what_a_switch_says_it_saved_is_on_disk_when_it_says_so(tmp_path, os):
    leaf = emulated_switch("leaf1", tmp_path / "leaf1", made(tmp_path, os), {})
    before = leaf.startup

    async def saved() -> str:
        # Where a loop runs, as in the twin's server, all else is written a little later.
        cli = CLIS.get(os)
        session = cli(leaf) if cli else leaf.shell()
        for line in _SAVING[os]:
            answer = session.execute(line)
            assert answer.accepted, answer.text
        return (tmp_path / "leaf1" / "startup-config").read_text()

    assert asyncio.run(saved()) == leaf.startup != before
