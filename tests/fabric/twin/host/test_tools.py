"""``ethtool``, ``ip``, ``rdma``, ``dcb``, ``cma_roce_tos``, ``ibdev2netdev`` of an emulated host.

Shapes: ethtool 6.1 and iproute2 6.1 (Debian 12); counters and their presence,
Linux Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst;
dcb, samples of Enizaksoy/lab-baremetal-gpu-cluster.
"""

import json

import pytest


def test_ethtool_shows_pause_driver_and_link(out):
    assert out("ethtool -a ens1f0") == (
        "Pause parameters for ens1f0:\nAutonegotiate:\toff\nRX:\t\ton\nTX:\t\ton\n\n"
    )
    driver = dict(line.split(": ", 1) for line in out("ethtool -i ens1f0").splitlines())
    assert driver["driver"] == "mlx5_core"
    assert driver["bus-info"] == "0000:3b:00.0"
    assert driver["firmware-version"].startswith("22.")
    assert "\tSpeed: 25000Mb/s\n" in out("ethtool ens1f0")


def test_ethtool_sets_pause_and_refuses_its_autonegotiation(shell, out):
    out("ethtool -A ens1f0 autoneg off rx off tx off")
    assert "RX:\t\toff\nTX:\t\toff" in out("ethtool -a ens1f0")

    refused = shell("ethtool -A ens1f0 autoneg on")
    assert (refused.returncode, refused.stderr) == (1, "netlink error: Invalid argument\n")


def test_pause_counters_are_shown_only_for_priorities_with_pfc(out):
    def names():
        return {line.split(":")[0].strip() for line in out("ethtool -S ens1f0").splitlines()[1:]}

    assert not any("prio3_pause" in name for name in names())
    assert "rx_global_pause" in names()

    out("mlnx_qos -i ens1f0 --pfc 0,0,0,1,0,0,0,0")

    shown = names()
    assert {"rx_prio3_pause", "tx_prio3_pause_duration", "rx_prio3_pause_transition"} <= shown
    assert not any("prio2_pause" in name or "global_pause" in name for name in shown)
    assert "rx_prio3_buf_discard" in shown


@pytest.mark.parametrize("command", ["ethtool -S", "ethtool -i", "ethtool -a", "ethtool"])
def test_ethtool_does_not_know_other_interfaces(shell, command):
    done = shell(f"{command} eth9")

    assert done.returncode != 0
    assert "No such device" in done.stderr


def test_ip_sets_the_mtu_within_the_devices_limits(shell, out):
    out("ip link set dev ens1f0 mtu 9000")
    link = json.loads(out("ip -j link show dev ens1f0"))
    assert [entry["mtu"] for entry in link] == [9000]
    assert out("cat /sys/class/net/ens1f0/mtu") == "9000\n"

    for mtu, text in (("9979", "greater than device maximum"), ("67", "less than device minimum")):
        done = shell(f"ip link set ens1f0 mtu {mtu}")
        assert (done.returncode, done.stderr) == (2, f"Error: mtu {text}.\n")
    assert out("cat /sys/class/net/ens1f0/mtu") == "9000\n"


def test_ip_shows_only_the_hosts_own_interfaces(shell, out):
    shown = json.loads(out("ip -j addr"))
    assert [entry["ifname"] for entry in shown] == ["lo", "ens1f0"]
    assert shown[1]["addr_info"][0]["local"] == "10.0.0.1"
    assert "2: ens1f0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500" in out("/usr/sbin/ip link")

    missing = shell("ip link show eth0")
    assert (missing.returncode, missing.stderr) == (1, 'Device "eth0" does not exist.\n')
    unknown = shell("ip frobnicate")
    assert unknown.stderr == 'Object "frobnicate" is unknown, try "ip help".\n'


def test_a_link_set_down_is_down_everywhere(out):
    out("ip link set ens1f0 down")

    assert out("ibdev2netdev") == "mlx5_0 port 1 ==> ens1f0 (Down)\n"
    assert "state DOWN physical_state DISABLED netdev ens1f0" in out("rdma link show")
    assert "Link detected: no" in out("ethtool ens1f0")


def test_rdma_links_name_their_interface(out):
    assert out("rdma link") == (
        "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1f0 \n"
    )
    assert json.loads(out("rdma -j link"))[0]["netdev"] == "ens1f0"


def test_dcb_shows_the_same_state_as_mlnx_qos(shell, out):
    out("mlnx_qos -i ens1f0 --dscp2prio set,26,3")
    out("dcb pfc set dev ens1f0 prio-pfc 3:on")

    assert "\tenabled     0   0   0   1   0   0   0   0   \n" in out("mlnx_qos -i ens1f0")
    text = out("dcb pfc show dev ens1f0")
    assert "prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off" in text
    assert json.loads(out("dcb -j pfc show dev ens1f0"))["prio_pfc"][3] is True
    assert out("dcb app show dev ens1f0") == "dscp-prio AF31:3 \n"
    assert shell("dcb pfc show dev eth9").stderr == 'Cannot find device "eth9"\n'


def test_cma_roce_tos_shows_sets_and_refuses(shell, out):
    assert out("cma_roce_tos -d mlx5_0") == "0\n"
    assert out("cma_roce_tos -d mlx5_0 -t 106") == "106\n"
    assert out("cat /sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos") == "106\n"

    assert "write error: Invalid argument" in shell("cma_roce_tos -d mlx5_0 -t 300").stderr
    assert shell("cma_roce_tos -d mlx5_9").returncode == 1
    assert out("cma_roce_tos") == "106\n"
