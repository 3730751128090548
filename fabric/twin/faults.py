"""The faults that ``paisoar twin break`` knows, and where each is put by default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fabric.errors import InputError
from fabric.site import HostSpec, Site, SwitchSpec
from fabric.topology import PortRef


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: what kind of device has it (``device``: any), whether one port or all of it."""

    device: Literal["switch", "host", "device"]
    one_port: bool
    says: str


FAULTS: dict[str, Fault] = {
    "pfc-off": Fault("switch", one_port=True, says="a leaf port without priority flow control"),
    "mtu": Fault("switch", one_port=True, says="a leaf port back at MTU 1500"),
    "ecn-off": Fault("switch", one_port=False, says="a leaf whose queues no longer mark ECN"),
    "dscp-map": Fault("host", one_port=True, says="a NIC with a wrong DSCP map"),
    "reboot": Fault("device", one_port=False, says="a device that rebooted"),
    "nic-reset": Fault("host", one_port=True, says="a NIC that lost all settings"),
}


def place(site: Site, kind: str, device: str | None, port: str | None) -> tuple[str, str]:
    """Device and port to break; the port is empty where the whole device is meant.

    Left open, it is the first leaf's first host-facing port, or the first host's
    first NIC. Raises InputError for an unknown kind, device or port.
    """
    fault = FAULTS.get(kind)
    if fault is None:
        raise InputError(
            f"no fault is called {kind!r}",
            key="kind",
            advice=f"There are: {', '.join(FAULTS)}.",
        )
    name = _first(site, fault.device) if device is None else site.select([device])[0]
    wanted = {"switch": SwitchSpec, "host": HostSpec}.get(fault.device, object)
    if not isinstance(site.devices[name], wanted):
        raise InputError(f"{kind} is a fault of a {fault.device}, {name} is none", key="device")
    if port is not None:
        if PortRef(name, port) not in site.topology.link_of:
            ports = ", ".join(ref.port for ref in site.topology.ports_of[name])
            raise InputError(f"{name} has no cabled port {port!r}", advice=f"There are: {ports}.")
        return name, port
    return name, _first_port(site, name) if fault.one_port else ""


def _first(site: Site, kind: str) -> str:
    topology = site.topology
    names = topology.hosts
    if kind != "host":
        leaves = [name for name in topology.switches if site.switch(name).role == "leaf"]
        names = tuple(leaves) or topology.switches
    if not names:
        raise InputError(f"the site has no {kind} to break", file=site.path)
    return names[0]


def _first_port(site: Site, name: str) -> str:
    ports = site.topology.ports_of[name]
    hosts = frozenset(site.topology.hosts)
    facing = [ref for ref in ports if site.topology.peer(ref).device in hosts]
    return (facing or ports)[0].port
