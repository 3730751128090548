"""What a fabric.yaml may call ports, NICs, systems and addresses."""

import pytest

from fabric.devices.entries import HOSTS, SWITCHES, known, load
from fabric.errors import InputError
from fabric.products import SWITCHES as PRODUCTS
from fabric.site import load_site
from tests.sites import write_site


def changed(folder, *changes):
    path = write_site(folder)
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text)
    return path


def faults(folder, *changes):
    with pytest.raises(InputError) as caught:
        load_site(changed(folder, *changes))
    return {fault.key: fault.reason for fault in caught.value.faults}


@pytest.mark.parametrize(
    "name",
    [
        r"Ethernet1/2\nshutdown",
        "Ethernet1/1;reload",
        "Ethernet1/1-4",
        "Ethernet1/1,2",
        "Ethernet1/1.100",
        "Ethernet1/01",
        "Ethernet1/\N{FULLWIDTH DIGIT ONE}",
        "port-channel1",
        "mgmt0",
        "swp1",
        "Ethernet1/1 ",
        "ethernet1/1",
    ],
)
def test_a_port_that_its_system_does_not_have_is_refused_at_its_cable(tmp_path, name):
    said = faults(tmp_path, ("a: 'leaf1:Ethernet1/1'", f'a: "leaf1:{name}"'))
    assert set(said) == {"cables[0].a"}
    assert "Ethernet1/1" in said["cables[0].a"]


def test_a_short_name_is_refused_with_the_long_one(tmp_path):
    said = faults(tmp_path, ("a: 'leaf1:Ethernet1/2'", "a: 'leaf1:Eth1/1'"))
    assert said == {"cables[1].a": "leaf1 calls its port Eth1/1 Ethernet1/1: write it so"}


def test_broken_out_ports_are_ports(tmp_path):
    path = changed(tmp_path, ("a: 'leaf1:Ethernet1/1'", "a: 'leaf1:Ethernet1/1/1'"))
    assert load_site(path).topology.links[0].a.port == "Ethernet1/1/1"


GOOD = {
    "nxos": ("Ethernet1/1", "Ethernet1/1/4", "Ethernet101/1/1"),
    "eos": ("Ethernet1", "Ethernet49/1", "Ethernet3/1/1"),
    "junos": ("et-0/0/0", "et-0/0/0:1", "xe-0/0/47"),
    "sonic": ("Ethernet0", "Ethernet124"),
    "nvue": ("swp1", "swp1s0"),
    "os10": ("ethernet1/1/1", "ethernet1/1/1:2"),
    "comware": ("HundredGigE1/0/1", "Twenty-FiveGigE1/0/1", "HundredGigE1/0/1:2"),
    "cloudengine": ("100GE1/0/1", "25GE1/0/1:2"),
    "switchdev": ("swp1", "enp3s0np1", "sw1p1"),
    "bridge": ("eth0", "swp1"),
}


@pytest.mark.parametrize("system", [name for name in known(SWITCHES) if name != HOSTS])
def test_every_system_knows_its_own_ports_and_no_others(system):
    module = load(SWITCHES, system)
    for name in GOOD[system]:
        assert module.port_name(name) == name
    for name in ("", "a b", "x\ny", "Ethernet1/1;reload", "a/b/c/d", "$(reboot)", "../x"):
        with pytest.raises(ValueError, match="name"):
            module.port_name(name)
    if system in PRODUCTS:
        product = PRODUCTS[system]
        for number in (1, 2, 48, 49, 56):
            assert module.port_name(product.leaf_port(number)) == product.leaf_port(number)


@pytest.mark.parametrize(
    ("system", "short", "long"),
    [
        ("nxos", "Eth1/1", "Ethernet1/1"),
        ("eos", "Et49/1", "Ethernet49/1"),
        ("os10", "Eth 1/1/5", "ethernet1/1/5"),
    ],
)
def test_short_names_mean_the_same_port(system, short, long):
    assert load(SWITCHES, system).port_name(short) == long


def test_unknown_systems_and_families_are_refused_with_the_known_ones(tmp_path):
    said = faults(tmp_path, ("os: nxos", "os: linux"), ("family: mlx5", "family: mlx4"))
    assert "nvue, nxos" in said["devices.leaf1.os"]
    assert "linux," not in said["devices.leaf1.os"].partition("there are")[2]
    assert "mlx5" in said["devices.host1.nics.ens1f0.family"]


@pytest.mark.parametrize(
    "address", ["garbage", "10.0.0.300", "10.0.0", "0.0.0.0", "224.0.0.1", "127.0.0.1", "::"]
)
def test_an_address_that_no_nic_has_is_refused(tmp_path, address):
    said = faults(tmp_path, ("address: 10.0.0.1", f"address: '{address}'"))
    assert address in said["devices.host1.nics.ens1f0.address"]


def test_addresses_are_used_once_however_they_are_written(tmp_path):
    said = faults(tmp_path, ("address: 10.0.0.2", "address: 10.0.0.1"))
    assert "host1:ens1f0" in said["devices.host2.nics.ens1f0.address"]
    said = faults(
        tmp_path,
        ("address: 10.0.0.1", "address: 'fd00::1'"),
        ("address: 10.0.0.2", "address: 'FD00:0::0001'"),
    )
    assert "host1:ens1f0" in said["devices.host2.nics.ens1f0.address"]


def test_two_devices_are_not_reached_at_one_place(tmp_path):
    def reached_at(first, second):
        return [
            (f"  {name}:\n    kind: host\n", f"  {name}:\n    kind: host\n    mgmt: {way}\n")
            for name, way in (("host1", first), ("host2", second))
        ]

    one = "{address: 192.0.2.1}"
    assert "host1" in faults(tmp_path, *reached_at(one, one))["devices.host2.mgmt"]
    named = "{address: Host1}"
    assert "host1" in faults(tmp_path, *reached_at("{}", named))["devices.host2.mgmt"]
    behind = "{address: 192.0.2.1, port: 2222}"
    assert load_site(changed(tmp_path, *reached_at(one, behind))).devices


@pytest.mark.parametrize(
    "name", ["enp193s0f1np1x16", "a/b", "a:b", "-f", ".", "..", "a b", "a;b", "größe"]
)
def test_a_nic_that_the_kernel_cannot_have_is_refused(tmp_path, name):
    said = faults(tmp_path, ("      ens1f0:", f"      '{name}':"))
    key = f"devices.host1.nics.{name}"
    assert "Linux interface" in said[key]


def test_a_nic_of_fifteen_characters_is_one(tmp_path):
    name = "enp193s0f1np1v1"
    path = changed(tmp_path, ("      ens1f0:", f"      {name}:"), ("host1:ens1f0", f"host1:{name}"))
    assert name in load_site(path).host("host1").nics


@pytest.mark.parametrize("name", ["all", "switches", "hosts", "localhost", "ungrouped"])
def test_no_device_is_called_as_a_group_is(tmp_path, name):
    path = write_site(tmp_path)
    path.write_text(path.read_text().replace("host1", name))
    with pytest.raises(InputError, match="Ansible"):
        load_site(path)


def test_one_speed_has_one_profile(tmp_path):
    thresholds = "{kmin: 100KB, kmax: 400KB, pmax_percent: 20, xoff: 150KB, xon: 140KB}"
    said = faults(tmp_path, ("  profiles:\n", f"  profiles:\n    25000M: {thresholds}\n"))
    assert "25000M" in said["intent.profiles.25G"]


def test_faults_of_everything_together_are_said_with_those_of_devices(tmp_path):
    said = faults(
        tmp_path,
        ("os: nxos", "os: vxworks"),
        ("buffer: 40MB", "buffer: 4KB"),
        ("max_oversubscription: 1.0", "max_oversubscription: 0.1"),
    )
    assert {"devices.leaf1.os", "devices.leaf1.buffer", "devices.leaf1"} <= set(said)


def test_a_switch_without_uplinks_is_said_to_have_none(tmp_path):
    uplink = "  - {a: 'leaf2:Ethernet1/49', b: 'spine1:Ethernet1/2', speed: 100G, length_m: 30}\n"
    found = faults(tmp_path, (uplink, ""))
    assert found["devices.leaf2"] == "leaf2 has hosts, but no cable to another switch"


def test_a_host_without_nics_is_said_to_need_one(tmp_path):
    nic = "      ens1f0: {family: mlx5, rdma: mlx5_0, speed: 25G, address: 10.0.0.1}\n"
    found = faults(tmp_path, ("    nics:\n" + nic, "    nics: {}\n"))
    assert found["devices.host1.nics"] == "needs at least 1, has 0"
