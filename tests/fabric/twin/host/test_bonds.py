"""Bonds of an emulated host, and a bonded host's change, boot and way back."""

import json

import pytest

from tests.fabric.devices.linux.shells import Shell

BONDED = """\
ip link add bond0 type bond mode 802.3ad
for port in ens1f0 ens1f1; do ip link set dev $port down; ip link set dev $port master bond0; done
ip link set dev bond0 up
"""


@pytest.fixture
def shell(tmp_path):
    shell = Shell(tmp_path)
    yield shell
    shell.namespace.close()


def test_ip_shows_the_bond_and_its_members(shell):
    shell.run(BONDED)
    links = {one["ifname"]: one for one in json.loads(shell.run("ip -d -j link"))}
    assert links["bond0"]["linkinfo"]["info_kind"] == "bond"
    assert links["bond0"]["linkinfo"]["info_data"]["mode"] == "802.3ad"
    assert links["ens1f0"]["master"] == "bond0"
    assert links["ens1f0"]["linkinfo"]["info_slave_kind"] == "bond"
    assert "SLAVE" in links["ens1f0"]["flags"]
    text = shell.run("ip -d link show dev ens1f0")
    assert "qdisc mq master bond0 state UP" in text
    assert "bond_slave state ACTIVE mii_status UP" in text
    assert "    bond mode 802.3ad miimon 0" in shell.run("ip -d link show bond0")


def test_what_the_kernel_refuses_is_refused(shell):
    shell.run("ip link add bond0 type bond")
    said = shell.run("ip link set dev ens1f0 master bond0", good=False)
    assert "can not be enslaved while up" in said
    assert "File exists" in shell.run("ip link add bond0 type bond", good=False)
    assert "Device does not exist" in shell.run("ip link set ens1f0 master bond7", good=False)
    assert "Cannot find device" in shell.run("ip link del bond7", good=False)


def test_a_bonded_host_is_configured_with_its_bond_and_goes_back(shell):
    shell.run(BONDED)
    assert {facts.bond for facts in shell.read().facts} == {"bond0"}
    there = shell.change()
    shell.apply(there)
    assert shell.read().ports == shell.intended.ports
    assert shell.run("cat /sys/class/net/bond0/mtu") == "9000\n"
    assert shell.change().empty
    shell.run("ip link set dev bond0 mtu 1500")
    assert not shell.change().empty
    shell.apply(shell.change())
    assert shell.read().ports == shell.intended.ports
    shell.undo(there)
    assert shell.run("cat /sys/class/net/bond0/mtu") == "1500\n"
    shell.run("ip link del bond0")
    assert {facts.bond for facts in shell.read().facts} == {""}
