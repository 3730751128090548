"""``ibdev2netdev``: ``mlx5_0 port 1 ==> ens1f0 (Up)`` (Mellanox/mlnx-tools)."""

from __future__ import annotations

from .files import Host


def main(host: Host, arguments: list[str]) -> int:
    """Run the program; its exit status."""
    if arguments not in ([], ["-v"]):
        print("ibdev2netdev <options>")
        print("-h, --help                print help message")
        print("-v, --verbose             print more info")
        return 0 if arguments[0] in ("-h", "--help") else 255
    for nic in host.nics():
        up = nic.state().admin_up[0]
        link = f"port 1 ==> {nic.name} ({'Up' if up else 'Down'})"
        if not arguments:
            print(f"{nic.facts['rdma']} {link}")
            continue
        print(
            f"{nic.facts['pci']} {nic.facts['rdma']} ({nic.facts['hca_type']} - NA)  "
            f"fw {nic.facts['firmware'].split()[0]} "
            f"port 1 ({'ACTIVE' if up else 'DOWN  '}) ==> {nic.name} ({'Up' if up else 'Down'})"
        )
    return 0
