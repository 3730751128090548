"""Which entry of a NIC's GID table a test must use, as sysfs shows it.

Source of the files: Linux Documentation/ABI/stable/sysfs-class-infiniband
(``gids``, ``gid_attrs/types``, ``gid_attrs/ndevs``). perftest's own choice is not
relied on: its two ends may choose differently (linux-rdma/perftest issue 44).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from fabric.devices.linux.dump import Dump

ROCE_V2 = "RoCE v2"


@dataclass(frozen=True, slots=True)
class Gid:
    """One entry of the table. ``address`` is IPv4 where the GID maps one, else IPv6."""

    index: int
    address: str
    type: str
    interface: str


def gid_command(rdma: str) -> str:
    """The command whose output :func:`gids_of` reads; entries that are empty complain."""
    port = f"/sys/class/infiniband/{rdma}/ports/1"
    return f"grep -rH . {port}/gids {port}/gid_attrs 2>/dev/null"


def gids_of(dump: Dump, rdma: str) -> tuple[Gid, ...]:
    """Entries in use, by index."""
    port = f"/sys/class/infiniband/{rdma}/ports/1"
    found = []
    for path in dump.files:
        head, _, last = path.rpartition("/")
        if head != f"{port}/gids" or not last.isdecimal():
            continue
        address = plain_address(dump.text(path) or "")
        if address:
            kind = dump.text(f"{port}/gid_attrs/types/{last}") or ""
            interface = dump.text(f"{port}/gid_attrs/ndevs/{last}") or ""
            found.append(Gid(int(last), address, kind, interface))
    return tuple(sorted(found, key=lambda gid: gid.index))


def plain_address(text: str) -> str:
    """The address that a GID stands for; empty for none and for an unused entry."""
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return ""
    if address.is_unspecified or address == ipaddress.IPv6Address("fe80::"):
        return ""
    return str(address.ipv4_mapped or address)


def choose(gids: Sequence[Gid], interface: str, wanted: str) -> Gid | str:
    """The RoCE v2 entry of this interface with the address that the site gives it.

    Without an address in the site: the first that maps an IPv4 address. A text says
    why there is none.
    """
    if not gids:
        return "its GID table is empty: the interface has no address, or RoCE is off"
    ours = [gid for gid in gids if gid.type == ROCE_V2 and gid.interface == interface]
    if not ours:
        seen = sorted({f"{gid.type or 'of no type'} on {gid.interface or '?'}" for gid in gids})
        return f"its GID table has no RoCE v2 entry of {interface}, only {', '.join(seen)}"
    if not wanted:
        mapped = [gid for gid in ours if ipaddress.ip_address(gid.address).version == 4]
        if mapped:
            return mapped[0]
        return f"no RoCE v2 entry of {interface} maps an IPv4 address"
    target = str(ipaddress.ip_address(wanted))
    for gid in ours:
        if gid.address == target:
            return gid
    seen_addresses = ", ".join(gid.address for gid in ours)
    return f"no RoCE v2 entry of {interface} is {wanted}, only {seen_addresses}"
