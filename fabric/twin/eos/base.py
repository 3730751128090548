"""The configuration of a switch before anybody provisions lossless Ethernet on it.

A routed Clos as it comes from a first installation: addresses, OSPF, NTP,
descriptions; QoS at its factory defaults. These lines are not ours, and
provisioning must leave them alone.
"""

from __future__ import annotations

import ipaddress

from fabric.site import Site
from fabric.topology import PortRef
from fabric.twin.eos.cli import load
from fabric.twin.eos.config import Config
from fabric.units import format_speed

# Front ports by model: single ones, then those of four lanes (``Ethernet49/1``).
PORTS_BY_MODEL = {"DCS-7050SX3-48YC8": (48, 8), "DCS-7050CX3-32S": (0, 32)}
DEFAULT_PORTS = (48, 8)
LOOPBACKS = ipaddress.IPv4Network("10.254.0.0/16")
LINKS = ipaddress.IPv4Network("10.255.0.0/16")
MANAGEMENT = ipaddress.IPv4Network("192.168.100.0/22")


def empty_config(site: Site, name: str) -> Config:
    """A configuration with this switch's interfaces and nothing else."""
    cabled = [port.port for port in site.topology.ports_of[name]]
    single, wide = PORTS_BY_MODEL.get(site.switch(name).model, DEFAULT_PORTS)
    names = [f"Ethernet{n}" for n in range(1, single + 1)]
    names += [f"Ethernet{n}/1" for n in range(single + 1, single + wide + 1)]
    config = Config()
    for port in [*names, *cabled, "Management1"]:
        config.below(f"interface {port}")
    return config


def base_config(site: Site, name: str) -> Config:
    """The configuration that a new switch of this site starts with."""
    return load("\n".join(_lines(site, name)), empty_config(site, name))


def _lines(site: Site, name: str) -> list[str]:
    index = site.topology.switches.index(name) + 1
    loopback = LOOPBACKS[index]
    lines = [
        "service routing protocols model multi-agent",
        f"hostname {name}",
        "ip name-server vrf MGMT 192.168.100.1",
        "ntp server vrf MGMT 192.168.100.1",
        f"snmp-server location {site.name}",
        "spanning-tree mode mstp",
        "no aaa root",
        "username admin privilege 15 role network-admin nopassword",
        "vrf instance MGMT",
        "interface Management1",
        "   vrf MGMT",
        f"   ip address {MANAGEMENT[index + 10]}/{MANAGEMENT.prefixlen}",
        "interface Loopback0",
        "   description router id",
        f"   ip address {loopback}/32",
        "   ip ospf area 0.0.0.0",
        "ip routing",
        "router ospf 1",
        f"   router-id {loopback}",
        "   max-lsa 12000",
        "management api http-commands",
        "   no shutdown",
    ]
    for port in site.topology.ports_of[name]:
        lines += _port_lines(site, port)
    return lines


def _port_lines(site: Site, port: PortRef) -> list[str]:
    link, peer = site.topology.link_of[port], site.topology.peer(port)
    lines = [
        f"interface {port.port}",
        f"   description {peer.device} {peer.port} {format_speed(link.speed_bps)}",
        "   no switchport",
    ]
    if peer.device in site.topology.switches:
        number = 2 * site.topology.links.index(link) + (port == link.b)
        lines += [f"   ip address {LINKS[number]}/31", "   ip ospf network point-to-point"]
    else:
        lines.append("   ip address unnumbered Loopback0")
    return [*lines, "   ip ospf area 0.0.0.0"]
