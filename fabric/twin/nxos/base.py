"""The configuration of a switch before anybody provisions lossless Ethernet on it.

A routed Clos as it comes from a first installation: addresses, OSPF, LLDP, NTP,
descriptions; QoS at its factory defaults (MTU 1500, PFC mode auto). These lines
are not ours, and provisioning must leave them alone.
"""

from __future__ import annotations

import ipaddress

from fabric.site import Site
from fabric.topology import PortRef
from fabric.twin.nxos.cli import load
from fabric.twin.nxos.config import Config, Interface
from fabric.units import format_speed

# Ports by model; a switch with more cables than that gets as many as it needs.
PORTS_BY_MODEL = {"N9K-C93180YC-FX": 54, "N9K-C9336C-FX2": 36, "N9K-C9364C": 64}
DEFAULT_PORTS = 48
# Of these as many have one lane, and cannot be broken out.
SINGLE_LANE_PORTS = {"N9K-C93180YC-FX": 48}
LOOPBACKS = ipaddress.IPv4Network("10.254.0.0/16")
LINKS = ipaddress.IPv4Network("10.255.0.0/16")
MANAGEMENT = ipaddress.IPv4Network("192.168.100.0/22")


def empty_config(site: Site, name: str) -> Config:
    """A configuration with this switch's interfaces and nothing else."""
    cabled = [port.port for port in site.topology.ports_of[name]]
    model = site.switch(name).model
    names = [f"Ethernet1/{n}" for n in range(1, PORTS_BY_MODEL.get(model, DEFAULT_PORTS) + 1)]
    # Parts of a port that is broken out come into being by configuration.
    names += [port for port in cabled if port not in names and port.count("/") == 1]
    interfaces = {port: Interface() for port in [*names, "mgmt0"]}
    return Config(name, interfaces, single_lane_ports=SINGLE_LANE_PORTS.get(model, 0))


def base_config(site: Site, name: str) -> Config:
    """The configuration that a new switch of this site starts with."""
    return load("\n".join(_lines(site, name)), empty_config(site, name))


def _lines(site: Site, name: str) -> list[str]:
    switches = site.topology.switches
    index = switches.index(name) + 1
    loopback = LOOPBACKS[index]
    lines = [
        f"hostname {name}",
        *_breakouts(site, name),
        "feature ospf",
        "feature lldp",
        "ip domain-lookup",
        "ip name-server 192.168.100.1",
        "copp profile strict",
        f"snmp-server location {site.name}",
        "ntp server 192.168.100.1 use-vrf management",
        "vrf context management",
        "  ip route 0.0.0.0/0 192.168.100.1",
        "router ospf UNDERLAY",
        f"  router-id {loopback}",
        "line console",
        "  exec-timeout 30",
        "line vty",
        "  exec-timeout 30",
        "boot nxos bootflash:/nxos64-cs.10.5.2.F.bin",
        "logging server 192.168.100.1 6 use-vrf management",
        "interface mgmt0",
        "  vrf member management",
        f"  ip address {MANAGEMENT[index + 10]}/{MANAGEMENT.prefixlen}",
        "interface loopback0",
        "  description router id",
        f"  ip address {loopback}/32",
        "  ip router ospf UNDERLAY area 0.0.0.0",
    ]
    for port in site.topology.ports_of[name]:
        lines += _port_lines(site, port)
    return lines


def _breakouts(site: Site, name: str) -> list[str]:
    """Lines that break out the ports of whose parts the site has cables."""
    whole = {
        port.port.split("/")[1]: site.topology.link_of[port].speed_bps // 10**9
        for port in site.topology.ports_of[name]
        if port.port.count("/") > 1
    }
    lanes = {gbps: 2 if gbps in (50, 200) else 4 for gbps in whole.values()}
    return [
        f"interface breakout module 1 port {number} map {gbps}g-{lanes[gbps]}x"
        for number, gbps in whole.items()
    ]


def _port_lines(site: Site, port: PortRef) -> list[str]:
    link, peer = site.topology.link_of[port], site.topology.peer(port)
    lines = [
        f"interface {port.port}",
        f"  description {peer.device} {peer.port} {format_speed(link.speed_bps)}",
        "  no switchport",
    ]
    if peer.device in site.topology.switches:
        number = 2 * site.topology.links.index(link) + (port == link.b)
        lines += [f"  ip address {LINKS[number]}/31", "  ip ospf network point-to-point"]
    else:
        lines += ["  medium p2p", "  ip unnumbered loopback0"]
    return [*lines, "  ip router ospf UNDERLAY area 0.0.0.0", "  no shutdown"]
