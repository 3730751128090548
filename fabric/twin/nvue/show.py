"""What ``nv show`` and ``lldpctl`` print, as JSON.

Sources: CumulusNetworks/docs, nvue-reference "QoS", "Interface", "Platform"; lldpd's
``lldpctl -f json``.
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fabric.twin.nvue.switch import EmulatedSwitch

RELEASE = "5.14.0"
_NO_STORM = "OK"


def system(switch: EmulatedSwitch) -> dict[str, Any]:
    """``nv show system``."""
    return {
        "build": f"Cumulus Linux {RELEASE}",
        "hostname": switch.config.hostname,
        "product-name": "Cumulus Linux",
        "product-release": RELEASE,
        "timezone": switch.config.leaf("system", "timezone"),
        "uptime": int(time.time() - switch.booted_at_s),
    }


def hardware(switch: EmulatedSwitch) -> dict[str, Any]:
    """``nv show platform hardware``."""
    return {
        "asic-model": "Spectrum-2",
        "asic-vendor": "Mellanox",
        "base-mac": "48:b0:2d:00:00:01",
        "manufacturer": "Mellanox",
        "model": switch.model,
        "part-number": f"{switch.model}-CS2FC",
        "product-name": switch.model,
        "serial-number": switch.serial,
    }


def counters(switch: EmulatedSwitch) -> dict[str, Any]:
    """``nv show interface counters``."""
    return {
        port: {
            "counters": {
                "netstat": {
                    "rx-drop": switch.counter_sum(port, "rx_discards"),
                    "rx-error": switch.counter_sum(port, "rx_crc_errors"),
                    "rx-okay": switch.counter_sum(port, "rx_packets"),
                    "rx-over": 0,
                    "tx-drop": switch.counter_sum(port, "tx_discards"),
                    "tx-error": 0,
                    "tx-okay": switch.counter_sum(port, "tx_packets"),
                    "tx-over": 0,
                }
            }
        }
        for port in switch.ports()
    }


def qos_counters(switch: EmulatedSwitch, port: str) -> dict[str, Any]:
    """``nv show interface PORT counters qos``."""

    def of(name: str, number: int) -> int:
        return switch.counter(port, name, number)

    return {
        "egress-queue-stats": {
            str(n): {
                "ecn-marked-frames": of("ecn_marked_packets", n),
                "tx-bytes": of("tx_queue_bytes", n),
                "tx-frames": of("tx_queue_packets", n),
                "tx-uc-buffer-discards": of("queue_drops", n),
                "wred-discards": 0,
            }
            for n in range(8)
        },
        "ingress-buffer-stats": {
            str(n): {
                "rx-buffer-discards": of("rx_prio_discards", n),
                "rx-frames": of("rx_prio_packets", n),
                "rx-shared-buffer-discards": 0,
            }
            for n in range(8)
        },
        "pfc-stats": {
            str(n): {
                "rx-pause-duration": of("rx_pause_us", n),
                "rx-pause-frames": of("rx_pause_frames", n),
                "tx-pause-duration": of("tx_pause_us", n),
                "tx-pause-frames": of("tx_pause_frames", n),
            }
            for n in range(8)
        },
    }


def watchdog(switch: EmulatedSwitch, port: str) -> dict[str, Any]:
    """``nv show interface PORT qos pfc-watchdog``."""
    row = switch.config.at("interface", port, "qos").get("pfc-watchdog")
    enabled = row is not None and row.get("state") != "disable"
    storms = {
        str(n): {"deadlock-count": switch.counter(port, "watchdog_storms", n), "status": _NO_STORM}
        for n in range(8)
    }
    return {"state": "enabled" if enabled else "disabled", "status": storms}


def lldp(switch: EmulatedSwitch) -> dict[str, Any]:
    """``lldpctl -f json``: one entry a neighbour; a lone one is no list."""
    entries = []
    for port in switch.ports():
        peer = switch.peer_of(port)
        other = switch.peers.get(peer.device) if peer else None
        if peer is None or not switch.link_up(port) or not getattr(other, "speaks_lldp", True):
            continue
        digest = hashlib.sha256(f"{peer.device}/{peer.port}".encode()).hexdigest()
        octets = ":".join(digest[i : i + 2] for i in range(0, 12, 2))
        host = peer.device in switch.site.topology.hosts
        kind = {"type": "mac", "value": octets} if host else {"type": "ifname", "value": peer.port}
        entries.append({
            port: {
                "age": "1 day, 00:00:00",
                "chassis": {peer.device: {"id": {"type": "mac", "value": octets}}},
                "port": {"descr": peer.port, "id": kind, "ttl": "120"},
                "rid": "1",
                "via": "LLDP",
            }
        })  # fmt: skip
    return {"lldp": {"interface": entries[0] if len(entries) == 1 else entries}}
