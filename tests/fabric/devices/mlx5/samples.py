"""What hosts with ConnectX NICs print, written in the shapes of the tools.

Each sample names the system and release that it imitates and where its format
was read.
"""

from __future__ import annotations

from pathlib import Path

from fabric.devices.base import Target, TargetPort
from fabric.devices.linux import MODULE
from fabric.devices.mlx5.paths import PARAMETERS

PORT = TargetPort("ens1f0", 25 * 10**9, 3.0, "mlx5", "mlx5_0")
TARGET = Target("host1", "linux", "", (PORT,))


def _fixture(name: str) -> str:
    """A whole output, in ``fixtures/``: tabs and trailing blanks as the tools print them."""
    return (Path(__file__).parent / "fixtures" / f"{name}.txt").read_text()


# mlnx-tools 24.10, netlink DSCP table, NIC as the driver leaves it after a boot.
# Format: Mellanox/mlnx-tools python/mlnx_qos, pretty_print().
QOS_FACTORY = _fixture("mlnx_qos_factory")


def dscp_lines(table: dict[int, list[int]]) -> str:
    """Eight DSCPs a line, as printAppSelector wraps them."""
    lines = []
    for priority, dscps in sorted(table.items()):
        for start in range(0, len(dscps), 8):
            row = "".join(f"{dscp:02d}," for dscp in dscps[start : start + 8])
            lines.append(f"\tprio:{priority} dscp:{row}\n")
    return "".join(lines)


# The same release, set as fabric.starter's intent asks.
QOS_SET = _fixture("mlnx_qos_set")

# MLNX_OFED 4.x: no buffers, no default priority, classes in the order of the
# priorities. Shape: att/netarbiter nvmf/OUTPUTSAMPLE.setup-nic-lossless-layer3.sh.md;
# printer: Mellanox/mlnx-tools ofed_scripts/utils/mlnx_qos.
QOS_OLD = _fixture("mlnx_qos_old")

# ethtool 6.1 -i, MLNX_OFED 24.10 on Ubuntu 22.04.
ETHTOOL_I = _fixture("ethtool_i")


def ethtool_a(receive: str, send: str) -> str:
    """``ethtool -a`` of ethtool 6.1."""
    return f"Pause parameters for ens1f0:\nAutonegotiate:\toff\nRX:\t\t{receive}\nTX:\t\t{send}\n\n"


def ip_link(mtu: int) -> str:
    """``ip -j link show dev ens1f0`` of iproute2 6.1."""
    return (
        f'[{{"ifindex":4,"ifname":"ens1f0","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],'
        f'"mtu":{mtu},"qdisc":"mq","operstate":"UP","linkmode":"DEFAULT","group":"default",'
        f'"txqlen":1000,"link_type":"ether","address":"0c:42:a1:00:00:01",'
        f'"broadcast":"ff:ff:ff:ff:ff:ff"}}]\n'
    )


# What starter_yaml asks for, in the driver's units and the order of PARAMETERS.
INTENDED_PARAMETERS = dict(
    zip(
        (parameter.field for parameter in PARAMETERS),
        (48, 6, 50, 0, 55, 1020, 1023, 50, 55, 0, 5, 40, 50, 100, 0, 11, 50, 0, 1),
        strict=True,
    )
)
# A ConnectX-6 Dx out of the box: mlxconfig's defaults.
DEFAULT_PARAMETERS = dict(
    zip(
        (parameter.field for parameter in PARAMETERS),
        (48, 6, 4, 0, 1, 1019, 1023, 4, 300, 32767, 1, 5, 50, 1, 0, 11, 50, 0, 1),
        strict=True,
    )
)

ECN = "/sys/class/net/ens1f0/ecn"


def sysfs(parameters: dict[str, int], np: tuple[int, ...], rp: tuple[int, ...]) -> str:
    """``grep -rH .`` over MLNX_OFED's ecn folder; its qos folder has maxrate only."""
    lines = [
        f"{ECN}/{parameter.sysfs}:{parameters[parameter.field]}"
        for parameter in PARAMETERS
        if parameter.field in parameters
    ]
    for point, on in (("np", np), ("rp", rp)):
        lines += [f"{ECN}/roce_{point}/enable/{p}:{int(p in on)}" for p in range(8)]
    lines.append("/sys/class/net/ens1f0/qos/maxrate:0 0 0 0 0 0 0 0 ")
    return "".join(f"{line}\n" for line in lines)


# The kernel's own driver has neither folder.
NO_SYSFS = f"""\
grep: {ECN}: No such file or directory
grep: /sys/class/net/ens1f0/qos: No such file or directory
"""


def debugfs(parameters: dict[str, int]) -> str:
    """``grep -rH .`` over cc_params. Source: Linux drivers/infiniband/hw/mlx5/cong.c."""
    folder = "/sys/kernel/debug/mlx5/0000:3b:00.0/cc_params"
    lines = [f"{folder}/np_cnp_prio_mode:0"]
    lines += [f"{folder}/{p.debugfs}:{parameters[p.field]}" for p in PARAMETERS]
    lines.append("/sys/kernel/debug/mlx5/0000:3b:00.1/cc_params/rp_ai_rate:9999")
    return "".join(f"{line}\n" for line in lines)


NO_DEBUGFS = "grep: /sys/kernel/debug/mlx5/*/cc_params: Permission denied\n"

RDMA_SET = """\
/sys/class/infiniband/mlx5_0/hca_type:MT4125
/sys/class/infiniband/mlx5_0/tc/1/traffic_class:Global tclass=106
/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode:RoCE v2
/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos:106
"""
RDMA_UNSET = """\
/sys/class/infiniband/mlx5_0/hca_type:MT4125
grep: /sys/kernel/config/rdma_cm/mlx5_0: No such file or directory
"""
RDMA_INBOX = """\
/sys/class/infiniband/mlx5_0/hca_type:MT4125
grep: /sys/class/infiniband/mlx5_0/tc: No such file or directory
grep: /sys/kernel/config/rdma_cm/mlx5_0: No such file or directory
"""

NOT_ENABLED = (
    "Failed to get unit file state for paisoar-roce@ens1f0.service: No such file or directory\n"
)
NO_FILES = """\
grep: /etc/paisoar/roce-*.sh: No such file or directory
grep: /etc/systemd/system/paisoar-roce@.service: No such file or directory
"""


def as_grep(path: str, text: str) -> str:
    """A whole file as ``grep -H ''`` prints it."""
    return "".join(f"{path}:{line}\n" for line in text.splitlines())


# ``dcb -j`` of iproute2 6.1 on the kernel's own driver, one document a line, set as the
# starter's intent asks (dcb/dcb_{pfc,ets,app,buffer,dcbx}.c); delay is the cable's length.
DCB_SET = _fixture("dcb_set")
# mlxconfig of MFT 4.30 on a ConnectX-6 Dx with two ports. Shape: NVIDIA MFT, "mlxconfig".
MLXCONFIG = _fixture("mlxconfig")


# grep over sysfs of a port that is up, Linux 5.15.
LINK_FACTS = """\
/sys/class/net/ens1f0/address:0c:42:a1:00:00:01
/sys/class/net/ens1f0/operstate:up
/sys/class/net/ens1f0/speed:25000
"""
GIDS = """\
/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0:ens1f0
/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/1:ens1f0
/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0:IB/RoCE v1
/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/1:RoCE v2
"""
# ethtool 6.1 --show-fec.
FEC = """\
FEC parameters for ens1f0:
Supported/Configured FEC encodings: Auto BaseR
Active FEC encoding: BaseR
"""


def _outputs(*answers: str) -> dict[str, str]:
    # mlnx_qos is there, so that dcb is not asked; mlxconfig is not.
    facts = ("", "", LINK_FACTS, GIDS, FEC)
    return dict(zip(MODULE.read_commands(TARGET), (*answers, *facts), strict=True))


def factory() -> dict[str, str]:
    """A host that nobody has set up: MLNX_OFED, all defaults."""
    return _outputs(
        "5.15.0-125-generic\n",
        NOT_ENABLED,
        NO_FILES,
        ip_link(1500),
        ETHTOOL_I,
        ethtool_a("on", "on"),
        QOS_FACTORY,
        sysfs(DEFAULT_PARAMETERS, tuple(range(8)), tuple(range(8))),
        RDMA_UNSET,
        NO_DEBUGFS,
    )


def provisioned(files: str) -> dict[str, str]:
    """A host set as the starter's intent asks; ``files`` as grep shows them."""
    return _outputs(
        "5.15.0-125-generic\n",
        "enabled\n",
        files,
        ip_link(9000),
        ETHTOOL_I,
        ethtool_a("off", "off"),
        QOS_SET,
        sysfs(INTENDED_PARAMETERS, (3,), (3,)),
        RDMA_SET,
        NO_DEBUGFS,
    )


# ethtool -S of mlx5 (Linux 6.8), shortened. Names: Linux Documentation/networking/
# device_drivers/ethernet/mellanox/mlx5/counters.rst. PFC is on for priority 3 only.
ETHTOOL_S = """\
NIC statistics:
     rx_packets: 1000
     tx_packets: 900
     rx0_packets: 7
     rx_packets_phy: 84102
     tx_packets_phy: 84200
     rx_bytes_phy: 840000123
     tx_bytes_phy: 840000456
     rx_discards_phy: 5
     tx_discards_phy: 1
     rx_oversize_pkts_phy: 2
     rx_crc_errors_phy: 3
     link_down_events_phy: 4
     rx_prio3_pause: 41927
     rx_prio3_pause_duration: 8134
     tx_prio3_pause: 1290418
     tx_prio3_pause_duration: 2914772
     rx_prio3_pause_transition: 39218
     tx_pause_storm_warning_events: 6
     tx_pause_storm_error_events: 7
""" + "".join(
    f"     rx_prio{p}_bytes: {p}00\n     rx_prio{p}_packets: {p}1\n"
    f"     rx_prio{p}_discards: {p}2\n     tx_prio{p}_bytes: {p}00\n"
    f"     tx_prio{p}_packets: {p}3\n     rx_prio{p}_buf_discard: 0\n"
    for p in range(8)
)
# hw_counters of mlx5 (Linux 6.8), names: Linux drivers/infiniband/hw/mlx5/counters.c.
HW_COUNTERS = "".join(
    f"/sys/class/infiniband/mlx5_0/ports/1/hw_counters/{line}\n"
    for line in (
        "duplicate_request:1",
        "implied_nak_seq_err:2",
        "lifespan:10",
        "local_ack_timeout_err:3",
        "np_cnp_sent:4",
        "np_ecn_marked_roce_packets:5",
        "out_of_buffer:6",
        "out_of_sequence:4294967295",
        "packet_seq_err:8",
        "req_cqe_error:9",
        "rnr_nak_retry_err:10",
        "rp_cnp_handled:11",
        "rp_cnp_ignored:12",
        "rx_icrc_encapsulated:13",
    )
)
