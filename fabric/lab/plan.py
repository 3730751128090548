"""What guests a site needs: their NICs, wires, memory, and the files that they boot from."""

from __future__ import annotations

import hashlib
import ipaddress
import json
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Literal

from fabric.errors import InputError
from fabric.lab.cpio import Entry, archive
from fabric.lab.modules import HOST_MODULES, SWITCH_MODULES
from fabric.site import Site, SwitchSpec
from fabric.topology import PortRef

MANAGEMENT = "mgmt0"
# Every guest alone with its QEMU on a network of this address; nothing is routed from there.
MANAGEMENT_NET = "192.168.253.0/24"
MANAGEMENT_ADDRESS = "192.168.253.15"
START_MTU = 1500
# Interfaces that guests have beside the site's.
RESERVED = (MANAGEMENT, "br-lab", "lo")
# Of a cable's speed, what a host sends. A switch that an emulated processor kept waiting
# catches up then: its queue stands for two senders, not for a pause of one.
HOST_RATE = 0.9
LOOPBACK = ("127.0.0.1", "localhost")
MAX_HOSTS = 16
# Beside `init`, which every guest's first root file system has.
GUEST_FILES = ("boot", "sshd_config", "paisoar-lab.target", "paisoar-sshd.service")

Kind = Literal["host", "switch"]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Memory in MiB and processors of each guest."""

    host_memory_mib: int = 2048
    switch_memory_mib: int = 384
    host_cpus: int = 1


@dataclass(frozen=True, slots=True)
class GuestNic:
    """A NIC of a guest. ``wire`` names its cable; one end ``listens``, the other connects."""

    name: str
    mac: str
    speed_bps: int
    wire: str = ""
    listens: bool = False
    address: str = ""
    rdma: str = ""


@dataclass(frozen=True, slots=True)
class Guest:
    """One virtual machine; ``port`` is where its SSH is reached on loopback, by the NIC ``mac``."""

    name: str
    kind: Kind
    port: int
    mac: str
    memory_mib: int
    cpus: int
    max_mtu: int
    nics: tuple[GuestNic, ...]


def guests_of(site: Site, sizes: Sizes) -> tuple[Guest, ...]:
    """The site's guests, the switch first: hosts connect to it.

    InputError where the site is no lab, or one that cannot be built of guests.
    """
    _require_lab(site)
    names = sorted(site.devices, key=lambda name: site.devices[name].kind == "host")
    return tuple(_guest(site, sizes, name, number) for number, name in enumerate(names))


def signature(guests: tuple[Guest, ...]) -> str:
    """Hash of all that guests are: others need a new start."""
    text = json.dumps([asdict(guest) for guest in guests], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _require_lab(site: Site) -> None:
    if site.environment != "lab":
        raise _wrong(
            site,
            f"the site's environment is {site.environment}, not lab",
            "environment",
            advice="In an empty folder `paisoar lab up` writes a site of its own.",
        )
    switches = site.topology.switches
    if len(switches) != 1:
        raise _wrong(site, f"a lab has one switch, not {len(switches)}", "devices")
    if len(site.topology.hosts) > MAX_HOSTS:
        raise _wrong(site, f"a lab has up to {MAX_HOSTS} hosts", "devices")
    for link in site.topology.links:
        for end in (link.a, link.b):
            if end.port in RESERVED:
                reason = f"{end}: guests have an interface {end.port} of their own"
                raise _wrong(site, reason, "cables")
    for name in site.devices:
        _require_guest(site, name)


def _require_guest(site: Site, name: str) -> None:
    device, at = site.devices[name], f"devices.{name}"
    if device.mgmt.address not in LOOPBACK or device.mgmt.port < 1024:
        advice = "Write address: 127.0.0.1 and a port from 1024 on."
        raise _wrong(site, "a guest is reached on loopback", f"{at}.mgmt", advice=advice)
    if device.mgmt.user not in ("", "root"):
        raise _wrong(site, "the user of a guest is root", f"{at}.mgmt.user")
    if isinstance(device, SwitchSpec):
        if device.os != "bridge":
            reason = f"the lab's switch is a Linux bridge, not {device.os}"
            raise _wrong(site, reason, f"{at}.os", advice="Write os: bridge.")
        return
    for port, nic in device.nics.items():
        if nic.family != "rxe":
            reason = f"a guest's NIC is Soft-RoCE, not {nic.family}"
            raise _wrong(site, reason, f"{at}.nics.{port}.family", advice="Write family: rxe.")


def _wrong(site: Site, reason: str, key: str, *, advice: str = "") -> InputError:
    return InputError(reason, file=site.path, key=key, advice=advice)


def _guest(site: Site, sizes: Sizes, name: str, number: int) -> Guest:
    device = site.devices[name]
    switch = isinstance(device, SwitchSpec)
    mtu = site.intent.mtu
    return Guest(
        name=name,
        kind="switch" if switch else "host",
        port=device.mgmt.port,
        mac=_mac(number, 0),
        memory_mib=sizes.switch_memory_mib if switch else sizes.host_memory_mib,
        cpus=1 if switch else sizes.host_cpus,
        max_mtu=max(mtu.switch_port, mtu.host),
        nics=_switch_nics(site, name, number) if switch else _host_nics(site, name, number),
    )


def _mac(guest: int, nic: int) -> str:
    """A locally administered address; nic 0 is the way to the guest's SSH."""
    return f"02:70:61:69:{guest:02x}:{nic:02x}"


def _switch_nics(site: Site, name: str, number: int) -> tuple[GuestNic, ...]:
    ports = site.topology.ports_of[name]
    return tuple(
        GuestNic(
            name=ref.port,
            mac=_mac(number, index),
            speed_bps=site.topology.link_of[ref].speed_bps,
            wire=_wire(site, ref),
            listens=True,
        )
        for index, ref in enumerate(ports, start=1)
    )


def _host_nics(site: Site, name: str, number: int) -> tuple[GuestNic, ...]:
    nics = []
    for index, (port, spec) in enumerate(site.host(name).nics.items(), start=1):
        ref = PortRef(name, port)
        nics.append(
            GuestNic(
                name=port,
                mac=_mac(number, index),
                speed_bps=spec.speed,
                wire=_wire(site, ref) if ref in site.topology.link_of else "",
                address=spec.address,
                rdma=spec.rdma,
            )
        )
    return tuple(nics)


def _wire(site: Site, ref: PortRef) -> str:
    """A short name: the path of a socket has little room."""
    return f"wire{site.topology.links.index(site.topology.link_of[ref])}.sock"


def boot_archive(guest: Guest, addresses: dict[str, str], keys: dict[str, bytes]) -> bytes:
    """What one guest boots from, beside what is the same for all: to be put behind that.

    ``addresses`` are all hosts' by name, ``keys`` its ``host_key`` and
    ``authorized_keys``.
    """
    modules = SWITCH_MODULES if guest.kind == "switch" else HOST_MODULES
    hosts = ["127.0.0.1 localhost", "::1 localhost"]
    hosts += [f"{address} {name}" for name, address in addresses.items()]
    if guest.name not in addresses:
        hosts.append(f"127.0.1.1 {guest.name}")
    texts = {
        "name": guest.name,
        "kind": guest.kind,
        "modules": " ".join(modules),
        "hosts": "\n".join(hosts),
        "nics": "\n".join(_nic_lines(guest)),
    }
    scripts = {name: guest_file(name) for name in GUEST_FILES}
    contents = {name: f"{text}\n".encode() for name, text in texts.items()} | scripts | keys
    entries = [Entry("guest", mode=0o700)]
    entries += [Entry(f"guest/{name}", content, 0o600) for name, content in contents.items()]
    return archive(entries)


def guest_file(name: str) -> bytes:
    """A file of ours that guests run or read."""
    return files("fabric.lab").joinpath("guest", name).read_bytes()


def _nic_lines(guest: Guest) -> list[str]:
    lines = [f"{guest.mac} {MANAGEMENT} {MANAGEMENT_ADDRESS}/24 - - {START_MTU}"]
    for nic in guest.nics:
        address = f"{nic.address}/{_prefix(nic.address)}" if nic.address else "-"
        rate_bps = round(nic.speed_bps * (1 if guest.kind == "switch" else HOST_RATE))
        words = (nic.mac, nic.name, address, nic.rdma or "-", rate_bps, START_MTU)
        lines.append(" ".join(map(str, words)))
    return lines


def _prefix(address: str) -> int:
    """Hosts of a rail share their first half: 10.0.x.y is one network, 10.1.x.y the next."""
    return 16 if ipaddress.ip_address(address).version == 4 else 64
