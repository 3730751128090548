"""What every NIC family sets in the same way, whatever its driver."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

RDMA_CM = "/sys/kernel/config/rdma_cm"


def ranges(numbers: Sequence[int]) -> str:
    """``0-25,27`` for 0 to 25 and 27."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def dscp_text(priorities: Sequence[int]) -> str:
    """A map of 64 DSCPs for people: ``0:0-25,27-63 3:26``."""
    return " ".join(
        f"{priority}:{ranges([d for d, p in enumerate(priorities) if p == priority])}"
        for priority in sorted(set(priorities))
    )


def bond_mtu_command(interface: str, mtu: int) -> str:
    """Give the MTU to the bond too where the interface is a member of one.

    A bond gives its members its own, at boot as well (Linux drivers/net/bonding/
    bond_main.c, bond_change_mtu); members have a folder ``bonding_slave``.
    """
    net = f"/sys/class/net/{shlex.quote(interface)}"
    return (
        f"test ! -e {net}/bonding_slave || "
        f'ip link set dev "$(basename "$(readlink {net}/master)")" mtu {mtu}'
    )


def pause_command(interface: str, *, receive: bool, send: bool) -> str:
    """Set 802.3x pause; ethtool fails where there is nothing to change, this does not."""
    rx, tx = ("on" if on else "off" for on in (receive, send))
    quoted = shlex.quote(interface)
    return (
        f"test \"$(ethtool -a {quoted} | tr -d '[:blank:]' | "
        f'grep -cx -e RX:{rx} -e TX:{tx})" = 2 || '
        f"ethtool -A {quoted} rx {rx} tx {tx}"
    )


def rdma_cm_folder(rdma_device: str) -> str:
    """The device's folder in configfs; there only once somebody has made it."""
    return f"{RDMA_CM}/{rdma_device}"


def rdma_cm_file(rdma_device: str) -> str:
    """The TOS of connections made through rdma_cm."""
    return f"{rdma_cm_folder(rdma_device)}/ports/1/default_roce_tos"


def rdma_cm_command(rdma_device: str, tos: int) -> str:
    """Set that TOS. The kernel makes ``ports/1`` when the folder of the device is made."""
    return (
        f"{{ test -d {RDMA_CM} || modprobe rdma_cm; }} && "
        f"mkdir -p {shlex.quote(rdma_cm_folder(rdma_device))} && "
        f"echo {tos} > {shlex.quote(rdma_cm_file(rdma_device))}"
    )
