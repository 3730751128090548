"""Bonds of an emulated host, as ``ip`` makes and shows them and sysfs holds them.

A bond is a folder of ``/sys/class/net`` with a folder ``bonding``; its members have a
link ``master`` to it and a folder ``bonding_slave``. Sources: Linux
Documentation/networking/bonding.rst and drivers/net/bonding/bond_main.c
(``bond_enslave``, ``bond_change_mtu``); iproute2 ``ip/iplink_bond.c`` and
``ip/iplink_bond_slave.c``. Members keep their own addresses (``fail_over_mac active``).
"""

from __future__ import annotations

import contextlib
import os
import shutil

from . import link
from .files import Host, Nic, read_text, write_text

MODES = (
    "balance-rr",
    "active-backup",
    "balance-xor",
    "broadcast",
    "802.3ad",
    "balance-tlb",
    "balance-alb",
)
MIN_MTU, MAX_MTU, START_MTU = 68, 65535, 1500
_FIRST_INDEX = 100


def bonds(host: Host) -> list[str]:
    """Names of the host's bonds."""
    net = f"{host.sys}/class/net"
    return sorted(name for name in os.listdir(net) if os.path.isdir(f"{net}/{name}/bonding"))


def bond_of(nic: Nic) -> str:
    """The bond that the port is a member of; empty for none."""
    with contextlib.suppress(OSError):
        return os.path.basename(os.readlink(f"{nic.net}/master"))
    return ""


def members(host: Host, bond: str) -> list[Nic]:
    """The ports below a bond."""
    return [nic for nic in host.nics() if bond_of(nic) == bond]


def add(host: Host, bond: str, mode: str) -> None:
    """Make a bond without members."""
    folder = f"{host.sys}/class/net/{bond}"
    os.makedirs(f"{folder}/bonding")
    index = _FIRST_INDEX + len(bonds(host))
    for name, text in (
        ("uevent", f"DEVTYPE=bond\nINTERFACE={bond}\nIFINDEX={index}"),
        ("ifindex", str(index)),
        ("type", "1"),
        ("mtu", str(START_MTU)),
        ("operstate", "down"),
        ("bonding/mode", f"{mode} {MODES.index(mode)}"),
        ("bonding/slaves", ""),
    ):
        write_text(f"{folder}/{name}", f"{text}\n")


def remove(host: Host, bond: str) -> None:
    """Free the members and take the bond away."""
    for nic in members(host, bond):
        release(nic)
    shutil.rmtree(f"{host.sys}/class/net/{bond}")


def enslave(nic: Nic, bond: str) -> None:
    """Put a port below a bond, whose MTU it gets, and up."""
    release(nic)
    os.symlink(f"../{bond}", f"{nic.net}/master")
    os.makedirs(f"{nic.net}/bonding_slave")
    write_text(f"{nic.net}/bonding_slave/state", "active\n")
    write_text(f"{nic.net}/mtu", f"{mtu_of(nic.host, bond)}\n")
    with nic.edit() as state:
        state.admin_up = [1]
        link.show(nic, state)
    _show_members(nic.host, bond)


def release(nic: Nic) -> None:
    """Take a port out of its bond, if it is in one."""
    bond = bond_of(nic)
    if bond:
        os.unlink(f"{nic.net}/master")
        shutil.rmtree(f"{nic.net}/bonding_slave")
        _show_members(nic.host, bond)


def _show_members(host: Host, bond: str) -> None:
    folder = f"{host.sys}/class/net/{bond}"
    nics = members(host, bond)
    up = any(link.is_up(nic.state()) for nic in nics)
    write_text(f"{folder}/bonding/slaves", " ".join(nic.name for nic in nics) + "\n")
    write_text(f"{folder}/operstate", "up\n" if up else "down\n")
    if nics:
        write_text(f"{folder}/address", f"{nics[0].facts['mac']}\n")


def mtu_of(host: Host, bond: str) -> int:
    """The bond's own MTU in bytes."""
    return int(read_text(f"{host.sys}/class/net/{bond}/mtu").strip() or START_MTU)


def set_mtu(host: Host, bond: str, mtu: int) -> None:
    """Give the bond this MTU, and each of its members."""
    for folder in (f"{host.sys}/class/net/{bond}", *(nic.net for nic in members(host, bond))):
        write_text(f"{folder}/mtu", f"{mtu}\n")


def bond_facts(host: Host, bond: str) -> dict[str, object]:
    """The bond in the names of iproute2's JSON."""
    folder = f"{host.sys}/class/net/{bond}"
    up = any(link.is_up(nic.state()) for nic in members(host, bond))
    carrier = ["UP", "LOWER_UP"] if up else ["NO-CARRIER", "UP"]
    return {
        "ifindex": int(read_text(f"{folder}/ifindex")),
        "ifname": bond,
        "flags": ["BROADCAST", "MULTICAST", "MASTER", *carrier],
        "mtu": mtu_of(host, bond),
        "qdisc": "noqueue",
        "operstate": "UP" if up else "DOWN",
        "linkmode": "DEFAULT",
        "group": "default",
        "txqlen": 1000,
        "link_type": "ether",
        "address": read_text(f"{folder}/address").strip() or "00:00:00:00:00:00",
        "broadcast": "ff:ff:ff:ff:ff:ff",
    }


def bond_details(host: Host, bond: str) -> dict[str, object]:
    """What ``ip -d`` adds for a bond."""
    mode = read_text(f"{host.sys}/class/net/{bond}/bonding/mode").split()[0]
    data = {"mode": mode, "miimon": 0, "updelay": 0, "downdelay": 0}
    kind = {"info_kind": "bond", "info_data": data}
    return {"min_mtu": MIN_MTU, "max_mtu": MAX_MTU, "linkinfo": kind}


def member_details(nic: Nic) -> dict[str, object]:
    """What ``ip -d`` adds for a member of a bond."""
    data = {
        "state": "ACTIVE",
        "mii_status": "UP" if link.is_up(nic.state()) else "DOWN",
        "link_failure_count": 0,
        "perm_hwaddr": nic.facts["mac"],
        "queue_id": 0,
    }
    return {"linkinfo": {"info_slave_kind": "bond", "info_slave_data": data}}
