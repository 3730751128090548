"""A fabric that PAISoar never touched: four files a device, saved by hand from a terminal.

NX-OS lines in the shape of paregupt/nx-os nxos_config_roce.py, with policies of
somebody's own names; hosts show ``mlnx_qos`` of MLNX_OFED 4.x and nothing else.
"""

from pathlib import Path

_POLICIES = """\
priority-flow-control watch-dog-interval on
policy-map type network-qos qos_network
  class type network-qos c-8q-nq3
    mtu 9216
    pause pfc-cos 3
  class type network-qos c-8q-nq-default
    mtu 9216
class-map type qos match-any ROCEv2
  match dscp 24-31
class-map type qos match-any CNP
  match dscp 48
policy-map type qos QOS_CLASSIFICATION
  class ROCEv2
    set qos-group 3
  class CNP
    set qos-group 7
  class class-default
    set qos-group 0
policy-map type queuing QOS_EGRESS_PORT
  class type queuing c-out-8q-q3
    bandwidth remaining percent 50
    random-detect minimum-threshold 950 kbytes maximum-threshold 3000 kbytes \
drop-probability 7 weight 0 ecn
  class type queuing c-out-8q-q7
    priority level 1
  class type queuing c-out-8q-q-default
    bandwidth remaining percent 50
system qos
  service-policy type queuing output QOS_EGRESS_PORT
  service-policy type network-qos qos_network
"""
_QOS = Path(__file__).parents[1] / "devices/mlx5/fixtures/mlnx_qos_old.txt"
HOSTS_PER_LEAF = 4


def write_foreign(path: Path, *, pfc_off: str = "", ecn_off: str = "") -> None:
    """Two switches with four hosts each; ``pfc_off`` is a port as ``tor2:2``."""
    for number, name in enumerate(("tor1", "tor2")):
        other = "tor2" if name == "tor1" else "tor1"
        config = f"hostname {name}\n{_POLICIES}"
        if name == ecn_off:
            config = config.replace(" weight 0 ecn", " weight 0")
        lldp = "Device ID            Local Intf      Hold-time  Capability  Port ID  \n"
        for port in range(1, HOSTS_PER_LEAF + 2):
            mode = "off" if f"{name}:{port}" == pfc_off else "on"
            config += (
                f"interface Ethernet1/{port}\n  mtu 9216\n  priority-flow-control mode {mode}\n"
                "  priority-flow-control watch-dog-interval on\n"
                "  service-policy type qos input QOS_CLASSIFICATION\n"
            )
            peer, theirs = f"gpu{number * HOSTS_PER_LEAF + port}", "ens1f0"
            if port > HOSTS_PER_LEAF:
                peer, theirs = f"{other}.dc.example", f"Eth1/{port}"
            lldp += f"{peer:<21}Eth1/{port:<12}120                    {theirs}\n"
        folder = path / name
        folder.mkdir(parents=True)
        typed = f"{name}# show running-config\n{config}\n{name}# "
        (folder / "show_running-config.txt").write_bytes(typed.replace("\n", "\r\n").encode())
        (folder / "show_lldp_neighbors.txt").write_text(lldp)
    for number in range(1, 2 * HOSTS_PER_LEAF + 1):
        folder = path / f"gpu{number}"
        folder.mkdir()
        (folder / "mlnx_qos_-i_ens1f0.txt").write_text(_QOS.read_text())
