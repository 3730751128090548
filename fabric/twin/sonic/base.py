"""The configuration of a switch before anybody provisions lossless Ethernet on it.

A routed Clos after a first installation and ``config qos reload``: SONiC's own
maps, schedulers, WRED profile and watchdog on every cabled port. Its map puts
DSCP 26 into a lossy class. Source: sonic-buildimage files/build_templates/
qos_config.j2 and buffers_config.j2.
"""

from __future__ import annotations

import hashlib
import ipaddress
from typing import Any

from fabric.site import Site
from fabric.topology import PortRef
from fabric.units import format_speed

PLATFORMS = {
    "Accton-AS7326-56X": "x86_64-accton_as7326_56x-r0",
    "Accton-AS7726-32X": "x86_64-accton_as7726_32x-r0",
}
LOOPBACKS = ipaddress.IPv4Network("10.254.0.0/16")
LINKS = ipaddress.IPv4Network("10.255.0.0/16")
MANAGEMENT = ipaddress.IPv4Network("192.168.100.0/22")
POOL_BYTES = 26_000_000

Config = dict[str, dict[str, Any]]


def base_config(site: Site, name: str) -> Config:
    """The tables of a new switch of this site."""
    index = site.topology.switches.index(name) + 1
    return {
        **_system(site, name, index),
        **_ports(site, name),
        **_qos(site, name),
        **_buffers(site, name),
    }


def mac(name: str) -> str:
    """A MAC address that stays the same for this switch."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    return ":".join(["00", "a0", "c9", digest[:2], digest[2:4], digest[4:6]])


def _system(site: Site, name: str, index: int) -> Config:
    model = site.switch(name).model
    spine = site.switch(name).role == "spine"
    return {
        "DEVICE_METADATA": {
            "localhost": {
                "bgp_asn": str(65000 + index),
                "hostname": name,
                "hwsku": model,
                "mac": mac(name),
                "platform": PLATFORMS.get(model, f"x86_64-{model.lower().replace('-', '_')}-r0"),
                "type": "LeafRouter" if spine else "ToRRouter",
            }
        },
        "FEATURE": {
            feature: {"auto_restart": "enabled", "state": "enabled"}
            for feature in ("bgp", "lldp", "swss", "syncd", "teamd")
        },
        "LOOPBACK_INTERFACE": {"Loopback0": {}, f"Loopback0|{LOOPBACKS[index]}/32": {}},
        "MGMT_INTERFACE": {
            f"eth0|{MANAGEMENT[index + 10]}/{MANAGEMENT.prefixlen}": {"gwaddr": str(MANAGEMENT[1])}
        },
        "NTP_SERVER": {str(MANAGEMENT[1]): {}},
        "SYSLOG_SERVER": {str(MANAGEMENT[1]): {}},
    }


def _ports(site: Site, name: str) -> Config:
    ports: dict[str, Any] = {}
    interfaces: dict[str, Any] = {}
    lane = 1
    for number, ref in enumerate(site.topology.ports_of[name], start=1):
        link, peer = site.topology.link_of[ref], site.topology.peer(ref)
        lanes = max(1, link.speed_bps // 25_000_000_000)
        ports[ref.port] = {
            "admin_status": "up",
            "alias": f"Eth{number}",
            "description": f"{peer.device}:{peer.port} {format_speed(link.speed_bps)}",
            "fec": "rs",
            "index": str(number),
            "lanes": ",".join(str(lane + offset) for offset in range(lanes)),
            "mtu": "9100",
            "speed": str(link.speed_bps // 10**6),
        }
        lane += lanes
        interfaces |= _address(site, ref)
    return {"PORT": ports, "INTERFACE": interfaces}


def _address(site: Site, ref: PortRef) -> Config:
    link, peer = site.topology.link_of[ref], site.topology.peer(ref)
    if peer.device not in site.topology.switches:
        return {ref.port: {"ipv6_use_link_local_only": "enable"}}
    number = 2 * site.topology.links.index(link) + (ref == link.b)
    return {ref.port: {}, f"{ref.port}|{LINKS[number]}/31": {}}


def _qos(site: Site, name: str) -> Config:
    ports = [ref.port for ref in site.topology.ports_of[name]]
    identity = {str(number): str(number) for number in range(8)}
    dscps = {str(dscp): "1" for dscp in range(64)}
    dscps |= {"3": "3", "4": "4", "5": "2", "8": "0", "46": "5", "48": "6"}
    maps = {
        "dscp_to_tc_map": "AZURE",
        "pfc_enable": "3,4",
        "pfc_to_queue_map": "AZURE",
        "pfcwd_sw_enable": "3,4",
        "tc_to_pg_map": "AZURE",
        "tc_to_queue_map": "AZURE",
    }
    wred: dict[str, str] = {"ecn": "ecn_all"}
    for color in ("green", "red", "yellow"):
        wred |= {
            f"{color}_drop_probability": "5",
            f"{color}_max_threshold": "2097152",
            f"{color}_min_threshold": "1048576",
            f"wred_{color}_enable": "true",
        }
    lossless = {"scheduler": "scheduler.1", "wred_profile": "AZURE_LOSSLESS"}
    groups = {**dict.fromkeys(identity, "0"), "3": "3", "4": "4", "7": "7"}
    return {
        "DSCP_TO_TC_MAP": {"AZURE": dscps},
        "MAP_PFC_PRIORITY_TO_QUEUE": {"AZURE": dict(identity)},
        "PFC_WD": {
            "GLOBAL": {"POLL_INTERVAL": "200"},
            **{
                port: {"action": "drop", "detection_time": "200", "restoration_time": "200"}
                for port in ports
            },
        },
        "PORT_QOS_MAP": {
            "global": {"dscp_to_tc_map": "AZURE"},
            **{port: dict(maps) for port in ports},
        },
        "QUEUE": {
            f"{port}|{queue}": dict(lossless) if queue in (3, 4) else {"scheduler": "scheduler.0"}
            for port in ports
            for queue in range(7)
        },
        "SCHEDULER": {
            "scheduler.0": {"type": "DWRR", "weight": "14"},
            "scheduler.1": {"type": "DWRR", "weight": "15"},
        },
        "TC_TO_PRIORITY_GROUP_MAP": {"AZURE": groups},
        "TC_TO_QUEUE_MAP": {"AZURE": dict(identity)},
        "WRED_PROFILE": {"AZURE_LOSSLESS": wred},
    }


def _buffers(site: Site, name: str) -> Config:
    ports = [ref.port for ref in site.topology.ports_of[name]]
    size = str(POOL_BYTES)
    return {
        "BUFFER_PG": {f"{port}|0": {"profile": "ingress_lossy_profile"} for port in ports},
        "BUFFER_POOL": {
            "egress_lossless_pool": {"mode": "static", "size": size, "type": "egress"},
            "egress_lossy_pool": {"mode": "dynamic", "size": size, "type": "egress"},
            "ingress_lossless_pool": {
                "mode": "dynamic",
                "size": size,
                "type": "ingress",
                "xoff": "4194112",
            },
        },
        "BUFFER_PROFILE": {
            "egress_lossless_profile": {
                "pool": "egress_lossless_pool",
                "size": "0",
                "static_th": size,
            },
            "egress_lossy_profile": {"dynamic_th": "3", "pool": "egress_lossy_pool", "size": "0"},
            "ingress_lossy_profile": {
                "pool": "ingress_lossless_pool",
                "size": "0",
                "static_th": size,
            },
        },
        "BUFFER_QUEUE": {
            key: {"profile": profile}
            for port in ports
            for key, profile in (
                (f"{port}|0-2", "egress_lossy_profile"),
                (f"{port}|3-4", "egress_lossless_profile"),
                (f"{port}|5-6", "egress_lossy_profile"),
            )
        },
        "CABLE_LENGTH": {"AZURE": dict.fromkeys(ports, "5m")},
    }
