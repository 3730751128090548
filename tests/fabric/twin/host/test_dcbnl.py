"""What bnxt_en, ice and mlx5_core refuse of ``dcb`` and ``ethtool``, as their sources do."""

import json

import pytest

from tests.fabric.devices.linux.shells import Shell


@pytest.fixture
def host(request, tmp_path):
    shell = Shell(tmp_path, request.param, nics=1)
    yield shell
    shell.namespace.close()


def on(*families):
    return pytest.mark.parametrize("host", families, indirect=True)


def shown(host, kind):
    return json.loads(host.run(f"dcb -j {kind} show dev ens1f0"))


ETS = "dcb ets set dev ens1f0 "


@on("bnxt")
def test_bnxt_wants_ets_before_pfc_and_one_lossless_class(host):
    assert "Invalid argument" in host.run("dcb pfc set dev ens1f0 prio-pfc 3:on", good=False)
    starving = ETS + "tc-tsa 0:ets 1:ets tc-bw 0:100 1:0 prio-tc 3:1"
    assert "Invalid argument" in host.run(starving, good=False)
    vendor = ETS + "tc-tsa 0:vendor"
    assert "not supported" in host.run(vendor, good=False)
    host.run(ETS + "tc-tsa 0:ets 1:ets tc-bw 0:50 1:50 prio-tc 3:1 4:2")
    host.run("dcb pfc set dev ens1f0 prio-pfc 3:on")
    assert "Invalid argument" in host.run("dcb pfc set dev ens1f0 prio-pfc 4:on", good=False)
    assert shown(host, "pfc")["prio_pfc"] == [p == 3 for p in range(8)]
    assert "not supported" in host.run("dcb buffer show dev ens1f0", good=False)


@on("bnxt", "irdma", "generic")
def test_the_program_itself_refuses_shares_that_do_not_make_100(host):
    if host.target.ports[0].family == "irdma":
        host.run("ethtool --set-priv-flags ens1f0 fw-lldp-agent off")
    said = host.run(ETS + "tc-tsa all:ets tc-bw all:0 0:50", good=False)
    assert said == "Bandwidth percentages in tc-bw sum to 50%, expected 100%\n"
    for wrong in (
        ETS + "tc-bw 8:1",
        ETS + "shares 0:1",
        "dcb app add dev ens1f0 dscp-prio 64:3",
        "dcb app add dev ens1f0 dscp-prio 26:8",
        "dcb app del dev ens1f0 dscp-prio 26:3",
        "dcb dcbx set dev ens1f0 vendor",
        "dcb rewr show dev ens1f0",
    ):
        host.run(wrong, good=False)


@on("irdma")
def test_ice_refuses_everything_until_the_agent_is_off(host):
    for command in (
        "dcb pfc set dev ens1f0 prio-pfc 3:on",
        "dcb app add dev ens1f0 dscp-prio 26:3",
        ETS + "willing off",
        "dcb dcbx set dev ens1f0 host ieee",
    ):
        assert "Invalid argument" in host.run(command, good=False), command
    assert shown(host, "dcbx") == {"lld_managed": True, "ieee": True}
    assert "fw-lldp-agent         : on\n" in host.run("ethtool --show-priv-flags ens1f0")
    host.run("ethtool --set-priv-flags ens1f0 fw-lldp-agent off")
    assert shown(host, "dcbx") == {"host": True, "ieee": True}
    host.run("dcb app add dev ens1f0 dscp-prio 26:3")


@on("irdma")
def test_dscp_mode_of_ice_comes_and_goes_with_its_entries(host):
    host.run("ethtool --set-priv-flags ens1f0 fw-lldp-agent off")
    host.run(ETS + "tc-tsa 0:ets 1:ets tc-bw 0:40 1:60 prio-tc 3:1")
    host.run("dcb app add dev ens1f0 dscp-prio AF31:3")
    ets = shown(host, "ets")
    assert ets["prio_tc"] == list(range(8))
    assert ets["tc_bw"] == [100] + [0] * 7
    assert "Invalid argument" in host.run("dcb app add dev ens1f0 dscp-prio 26:4", good=False)
    assert "Invalid argument" in host.run("dcb app replace dev ens1f0 dscp-prio 26:4", good=False)
    host.run(ETS + "prio-tc 3:0")
    assert shown(host, "ets")["prio_tc"] == list(range(8))
    host.run("dcb pfc set dev ens1f0 prio-pfc 3:on")
    assert "not supported" in host.run("ethtool -A ens1f0 rx off tx off", good=False)
    host.run("dcb app flush dev ens1f0 dscp-prio")
    assert shown(host, "ets")["prio_tc"] == [0] * 8
    assert shown(host, "pfc")["prio_pfc"] == [False] * 8


@on("bnxt")
def test_files_of_bnxt_re_print_hexadecimal_and_take_no_nonsense(host):
    cc = "/sys/kernel/config/bnxt_re/bnxt_re0/ports/1/cc"
    host.run(f"echo 0x1a > {cc}/roce_dscp; echo 26 > {cc}/cnp_dscp; echo 0x40 > {cc}/roce_prio")
    assert host.run(f"cat {cc}/roce_dscp {cc}/cnp_dscp {cc}/roce_prio") == "0x1a\n0x1a\n0\n"


@on("bnxt", "irdma")
def test_each_driver_has_its_own_largest_mtu(host):
    largest = {"bnxt": 9500, "irdma": 9702}[host.target.ports[0].family]
    host.run(f"ip link set dev ens1f0 mtu {largest}")
    assert "greater than device maximum" in host.run(
        f"ip link set dev ens1f0 mtu {largest + 1}", good=False
    )
