"""The configuration of a switch before anybody provisions lossless Ethernet on it.

A routed Clos as it comes from a first installation: addresses, unnumbered BGP, NTP,
descriptions; QoS at its factory defaults. These lines are not ours, and
provisioning must leave them alone.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from fabric.site import Site
from fabric.units import format_speed

LOOPBACKS = ipaddress.IPv4Network("10.254.0.0/16")


def base_tree(site: Site, name: str) -> dict[str, Any]:
    """The tree of a new switch of this site."""
    index = site.topology.switches.index(name) + 1
    loopback = str(LOOPBACKS[index])
    interfaces: dict[str, Any] = {
        "eth0": {"ip": {"vrf": "mgmt"}, "type": "eth"},
        "lo": {"ip": {"address": {f"{loopback}/32": {}}}, "type": "loopback"},
    }
    neighbors: dict[str, Any] = {}
    for ref in site.topology.ports_of[name]:
        link, peer = site.topology.link_of[ref], site.topology.peer(ref)
        interfaces[ref.port] = {
            "description": f"{peer.device} {peer.port} {format_speed(link.speed_bps)}",
            "link": {"state": "up"},
            "type": "swp",
        }
        if peer.device in site.topology.switches:
            neighbors[ref.port] = {"remote-as": "external", "type": "unnumbered"}
        else:
            interfaces[ref.port]["ip"] = {"address": {f"{loopback}/32": {}}}
    return {
        "interface": interfaces,
        "router": {
            "bgp": {
                "autonomous-system": str(65000 + index),
                "router-id": loopback,
                "state": "enabled",
            }
        },
        "service": {"ntp": {"mgmt": {"server": {"192.168.100.1": {}}}}},
        "system": {"hostname": name, "timezone": "Etc/UTC"},
        "vrf": {"default": {"router": {"bgp": {"neighbor": neighbors, "state": "enabled"}}}},
    }
