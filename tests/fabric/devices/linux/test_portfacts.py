"""What a host's port is seen to be: link, FEC, GIDs, bond, virtual function."""

import subprocess
from functools import partial

import pytest

from fabric.devices.linux.common import bond_mtu_command
from fabric.devices.linux.portfacts import (
    fec_command,
    gid_command,
    interface_mtu,
    link_command,
    rdma_mtu_bytes,
    read_facts,
)
from fabric.qos import PortFacts
from tests.fabric.devices.mlx5.samples import FEC, GIDS, LINK_FACTS, PORT

SHOWN = {link_command(PORT): LINK_FACTS, gid_command(PORT): GIDS, fec_command(PORT): FEC}
LLDPAD = "/sys/fs/cgroup/system.slice/lldpad.service/cgroup.procs:812\n"
NET = "/sys/class/net/ens1f0"


def test_a_port_that_is_up_shows_speed_fec_gids_and_address():
    assert read_facts(PORT, SHOWN, 9000) == PortFacts(
        "ens1f0",
        up=True,
        speed_bps=25 * 10**9,
        fec="fc",
        rdma_mtu_bytes=4096,
        gid_type="v2",
        lldp_agents=(),
        bond="",
        virtual_function=False,
        mac="0c42a1000001",
    )


def test_what_is_not_shown_is_none():
    assert read_facts(PORT, {}, None) == PortFacts("ens1f0")


@pytest.mark.parametrize(
    ("interface", "rdma"),
    [(9000, 4096), (4192, 4096), (4191, 2048), (1500, 1024), (300, None)],
)
def test_the_rdma_mtu_is_the_largest_that_fits_with_its_headers(interface, rdma):
    assert rdma_mtu_bytes(interface) == rdma


def test_a_bond_member_a_virtual_function_and_lldpad_are_seen():
    link = LINK_FACTS + f"{NET}/master/uevent:INTERFACE=bond0\n{NET}/device/physfn/vendor:0x15b3\n"
    facts = read_facts(PORT, {link_command(PORT): link, gid_command(PORT): GIDS + LLDPAD}, 9000)
    assert (facts.bond, facts.virtual_function, facts.lldp_agents) == ("bond0", True, ("lldpad",))


def test_a_table_without_v2_is_v1():
    only = GIDS.replace("RoCE v2", "IB/RoCE v1")
    assert read_facts(PORT, {gid_command(PORT): only}, 9000).gid_type == "v1"


@pytest.mark.parametrize(
    ("text", "fec"),
    [
        (FEC, "fc"),
        (FEC.replace("encoding: BaseR", "encoding: RS"), "rs"),
        (FEC.replace("encoding: BaseR", "encoding: Off"), "none"),
        # ethtool 4.15: one line, of what is configured.
        ("FEC parameters for ens1f0:\nFEC encodings: RS\n", "rs"),
        ("FEC parameters for ens1f0:\nConfigured FEC encodings: Auto\n", "auto"),
        ("netlink error: Operation not supported\n", None),
    ],
)
def test_fec_is_what_is_in_use_where_the_driver_says_so(text, fec):
    assert read_facts(PORT, {fec_command(PORT): text}, None).fec == fec


@pytest.mark.parametrize(
    ("flags", "up"), [('"UP","LOWER_UP"', True), ('"UP","NO-CARRIER"', True), ("", False)]
)
def test_ip_link_tells_whether_somebody_has_shut_the_port(flags, up):
    said = f'[{{"ifname":"ens1f0","flags":[{flags}],"mtu":9000}}]'
    shown = {**SHOWN, "ip -j link show dev ens1f0": said}
    assert read_facts(PORT, shown, 9000).admin_up is up


@pytest.mark.parametrize("said", ["", "no JSON", "{}", '[{"ifname":"ens1f9","flags":["UP"]}]'])
def test_what_ip_link_does_not_show_is_not_called_shut(said):
    shown = {**SHOWN, "ip -j link show dev ens1f0": said}
    assert read_facts(PORT, shown, 9000).admin_up is None


def bonded(mtu, kind="bond"):
    lines = f"{NET}/master/uevent:DEVTYPE={kind}\n{NET}/master/uevent:INTERFACE=top0\n"
    link = '[{"ifname":"ens1f0","flags":["UP"],"mtu":9000}]'
    return {
        **SHOWN,
        link_command(PORT): LINK_FACTS + lines + f"{NET}/master/mtu:{mtu}\n",
        "ip -j link show dev ens1f0": link,
    }


def test_a_bond_with_a_smaller_mtu_is_the_mtu_of_its_members():
    assert interface_mtu(PORT, bonded(1500)) == 1500
    assert interface_mtu(PORT, bonded(9000)) == 9000
    assert read_facts(PORT, bonded(1500), 1500).bond == "top0"


@pytest.mark.parametrize("kind", ["bridge", "vrf"])
def test_a_bridge_or_vrf_above_a_port_is_no_bond(kind):
    assert read_facts(PORT, bonded(1500, kind), 9000).bond == ""
    assert interface_mtu(PORT, bonded(1500, kind)) == 9000


def test_the_mtu_is_set_on_the_bond_too_and_only_where_there_is_one(tmp_path):
    command = bond_mtu_command("ens1f0", 9000).replace("/sys/class/net", str(tmp_path))
    (tmp_path / "ens1f0").mkdir()
    (tmp_path / "bond0").mkdir()
    log = tmp_path / "log"
    (tmp_path / "ip").write_text(f'#!/bin/sh\necho "$@" >> {log}\n')
    (tmp_path / "ip").chmod(0o755)
    run = partial(
        subprocess.run, ["sh", "-c", command], check=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}
    )
    run()
    assert not log.exists()
    (tmp_path / "ens1f0/bonding_slave").mkdir()
    (tmp_path / "ens1f0/master").symlink_to("../bond0")
    run()
    assert log.read_text() == "link set dev bond0 mtu 9000\n"
