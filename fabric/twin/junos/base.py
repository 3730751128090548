"""The configuration of a switch before anybody provisions lossless Ethernet on it.

A routed Clos as it comes from a first installation: addresses, OSPF, LLDP, NTP,
descriptions; class of service at its factory defaults. These statements are not
ours, and provisioning must leave them alone.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from fabric.site import Site
from fabric.topology import PortRef
from fabric.twin.junos.config import Config, load
from fabric.units import format_speed

PORTS_BY_MODEL = {"QFX5120-48Y": 56, "QFX5120-32C": 32}
DEFAULT_PORTS = 56
LOOPBACKS = ipaddress.IPv4Network("10.254.0.0/16")
LINKS = ipaddress.IPv4Network("10.255.0.0/16")
MANAGEMENT = ipaddress.IPv4Network("192.168.100.0/22")
RELEASE = "22.4R3-S2.11"


def port_names(site: Site, name: str) -> tuple[str, ...]:
    """The front ports of a switch, with those that are cabled."""
    count = PORTS_BY_MODEL.get(site.switch(name).model, DEFAULT_PORTS)
    cabled = [port.port for port in site.topology.ports_of[name]]
    return tuple(dict.fromkeys([*(f"et-0/0/{n}" for n in range(count)), *cabled]))


def base_config(site: Site, name: str) -> Config:
    """The configuration that a new switch of this site starts with."""
    return load("\n".join(_lines(site, name)), Config())


def _lines(site: Site, name: str) -> Iterator[str]:
    index = site.topology.switches.index(name) + 1
    loopback = LOOPBACKS[index]
    yield from (
        f"version {RELEASE}",
        f"system host-name {name}",
        "system services ssh",
        "system services netconf ssh",
        "system login user admin uid 2000",
        "system login user admin class super-user",
        "system name-server 192.168.100.1",
        "system ntp server 192.168.100.1",
        f'snmp location "{site.name} row 1"',
        f"interfaces em0 unit 0 family inet address {MANAGEMENT[index + 10]}/22",
        f"interfaces lo0 unit 0 family inet address {loopback}/32",
        f"routing-options router-id {loopback}",
        "protocols lldp interface all",
        "protocols ospf area 0.0.0.0 interface lo0.0 passive",
    )
    for port in site.topology.ports_of[name]:
        yield from _port_lines(site, port)


def _port_lines(site: Site, port: PortRef) -> Iterator[str]:
    link, peer = site.topology.link_of[port], site.topology.peer(port)
    here = f"interfaces {port.port}"
    yield f'{here} description "{peer.device} {peer.port} {format_speed(link.speed_bps)}"'
    if peer.device in site.topology.switches:
        number = 2 * site.topology.links.index(link) + (port == link.b)
        yield f"{here} unit 0 family inet address {LINKS[number]}/31"
    else:
        yield f"{here} unit 0 family inet unnumbered-address lo0.0"
    yield f"protocols ospf area 0.0.0.0 interface {port.port}.0 interface-type p2p"
