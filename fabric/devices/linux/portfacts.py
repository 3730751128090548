"""What a host's port is seen to be, whichever driver it has: link, FEC, GIDs, bond.

Sources: Linux Documentation/ABI/testing/sysfs-class-net and
sysfs-class-infiniband; ``ethtool --show-fec``, ethtool 5.x and 6.x
(netlink/fec.c); which MTU an RDMA device makes of its interface's,
``iboe_get_mtu`` in Linux include/rdma/ib_addr.h.
"""

from __future__ import annotations

from typing import Literal

from fabric.devices.base import Outputs, TargetPort
from fabric.devices.linux.dump import Dump, parse_dump
from fabric.devices.linux.tools import link_admin_up, link_mtu
from fabric.qos import PortFacts

Fec = Literal["none", "fc", "rs", "auto"]

# GRH 40, UDP 8, BTH 12, extended XRC 4, extended atomic header 28, ICRC 4.
ROCE_OVERHEAD_BYTES = 96
_IB_MTUS = (4096, 2048, 1024, 512, 256)
_FEC: dict[str, Fec] = {
    "off": "none",
    "none": "none",
    "rs": "rs",
    "llrs": "rs",
    "baser": "fc",
    "auto": "auto",
}
_LLDPAD = "/sys/fs/cgroup/system.slice/lldpad.service/cgroup.procs"


def link_command(port: TargetPort) -> str:
    """One ``grep`` over the files of sysfs that tell of the port's link."""
    net = f"/sys/class/net/{port.name}"
    names = ("address", "operstate", "speed", "master/uevent", "master/mtu", "device/physfn/vendor")
    files = " ".join(f"{net}/{name}" for name in names)
    return f"grep -rH . {files} 2>/dev/null || true"


def gid_command(port: TargetPort) -> str:
    """One ``grep`` over the port's GID types, and over who speaks LLDP on the host."""
    device = f"/sys/class/infiniband/{port.rdma_device}"
    return f"grep -rH . {device}/ports/1/gid_attrs {_LLDPAD} 2>/dev/null || true"


def commands(port: TargetPort) -> tuple[str, ...]:
    """All commands whose outputs :func:`read_facts` reads."""
    return link_command(port), gid_command(port), fec_command(port)


def fec_command(port: TargetPort) -> str:
    """The command that shows the port's forward error correction."""
    return f"ethtool --show-fec {port.name}"


def rdma_mtu_bytes(interface_mtu: int) -> int | None:
    """Active MTU of a RoCE device over an interface of this MTU; None below 256."""
    payload = interface_mtu - ROCE_OVERHEAD_BYTES
    return next((mtu for mtu in _IB_MTUS if mtu <= payload), None)


def read_facts(port: TargetPort, outputs: Outputs, mtu: int | None) -> PortFacts:
    """What these outputs show, and the family's ``ip link``; ``mtu`` is None where unknown."""
    shown = gid_command(port) in outputs
    text = outputs.get(link_command(port), "") + outputs.get(gid_command(port), "")
    dump = parse_dump(text)
    net = f"/sys/class/net/{port.name}"
    state = dump.text(f"{net}/operstate")
    speed_mbps = dump.number(f"{net}/speed")
    seen = state is not None
    return PortFacts(
        port.name,
        up=None if state is None else state in ("up", "unknown"),
        admin_up=link_admin_up(outputs.get(f"ip -j link show dev {port.name}", ""), port.name),
        speed_bps=speed_mbps * 10**6 if speed_mbps and speed_mbps > 0 else None,
        fec=_fec(outputs.get(fec_command(port), "")),
        rdma_mtu_bytes=rdma_mtu_bytes(mtu) if mtu else None,
        gid_type=_gid_type(dump, port.rdma_device),
        lldp_agents=(("lldpad",) if _LLDPAD in dump.files else ()) if shown else None,
        bond=_bond(dump, net) if seen else None,
        virtual_function=f"{net}/device/physfn/vendor" in dump.files if seen else None,
        mac=_mac(dump.text(f"{net}/address")),
    )


def _gid_type(dump: Dump, rdma_device: str) -> Literal["v1", "v2"] | None:
    folder = f"/sys/class/infiniband/{rdma_device}/ports/1/gid_attrs/types/"
    types = {lines[0] for path, lines in dump.files.items() if path.startswith(folder) and lines}
    if not types:
        return None
    return "v2" if "RoCE v2" in types else "v1"


def interface_mtu(port: TargetPort, outputs: Outputs) -> int | None:
    """The MTU of the port, or of the bond that it is a member of where that is smaller.

    None where ``ip link`` does not show it; ReadError where its output makes no sense.
    """
    command = f"ip -j link show dev {port.name}"
    own = link_mtu(command, outputs[command], port.name) if command in outputs else None
    dump = parse_dump(outputs.get(link_command(port), ""))
    net = f"/sys/class/net/{port.name}"
    bond = dump.number(f"{net}/master/mtu") if _bond(dump, net) else None
    return own if own is None or bond is None else min(own, bond)


def _bond(dump: Dump, net: str) -> str:
    """The bond above an interface; a bridge or a VRF there is none (``DEVTYPE``)."""
    lines = dump.files.get(f"{net}/master/uevent", ())
    told = dict(line.split("=", 1) for line in lines if "=" in line)
    return told.get("INTERFACE", "") if told.get("DEVTYPE", "bond") == "bond" else ""


def _mac(text: str | None) -> str | None:
    return text.replace(":", "").lower() if text else None


def _fec(text: str) -> Fec | None:
    """The encoding in use, or the configured one where a driver does not say which is."""
    found = {
        key.strip(): value.split()
        for key, colon, value in (line.partition(":") for line in text.splitlines())
        if colon
    }
    active = found.get("Active FEC encoding") or found.get("Active FEC encodings")
    for words in (active, found.get("Configured FEC encodings"), found.get("FEC encodings")):
        if words:
            return _FEC.get(words[0].lower())
    return None
