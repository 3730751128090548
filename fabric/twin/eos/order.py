"""In which order a configuration is printed, and which mode a header opens.

The order of ``show running-config`` in public captures of EOS 4.2x and 4.3x and
in the configurations that aristanetworks/avd generates; where they differ, the
order does not matter to anybody but a text comparison.
"""

from __future__ import annotations

_PFC = (
    "priority-flow-control on",
    "priority-flow-control priority",
    "priority-flow-control pause watchdog port timer",
    "priority-flow-control pause watchdog port action",
    "priority-flow-control pause watchdog",
    "priority-flow-control",
)

ORDER: dict[str, tuple[str, ...]] = {
    "config": (
        "service routing",
        "transceiver",
        "logging",
        "hostname",
        "ip name-server",
        "ntp",
        "snmp-server",
        "platform trident mmu headroom-pool",
        "platform trident mmu queue profile",
        "qos profile",
        "spanning-tree",
        "aaa root",
        "username",
        "clock",
        "vlan",
        "vrf instance",
        "interface Port-Channel",
        "interface Ethernet",
        "interface Loopback",
        "interface Management",
        "interface Vlan",
        "hardware counter",
        "class-map",
        "policy-map",
        "ip routing",
        "ip route",
        "priority-flow-control",
        "qos rewrite",
        "qos map cos",
        "qos map dscp",
        "qos map traffic-class",
        "router",
        "management",
    ),
    "if": (
        "description",
        "shutdown",
        "mtu",
        "speed",
        "flowcontrol send",
        "flowcontrol receive",
        "switchport",
        "channel-group",
        "vrf",
        "ip address",
        "ip ospf",
        "dcbx",
        "qos trust",
        "qos cos",
        "qos dscp",
        "service-policy",
        *_PFC,
        "service-profile",
        "spanning-tree",
        "tx-queue",
        "uc-tx-queue",
        "mc-tx-queue",
    ),
    "qos-profile": (
        "qos trust",
        "qos cos",
        "qos dscp",
        "shape rate",
        *_PFC,
        "service-policy",
        "uc-tx-queue",
        "mc-tx-queue",
    ),
    "txq": ("priority", "bandwidth", "shape rate", "random-detect ecn count", "random-detect"),
    "mmu-profile": ("ingress", "egress unicast", "egress multicast"),
}

_KINDS = (
    ("interface ", "if"),
    ("qos profile ", "qos-profile"),
    ("platform trident mmu queue profile ", "mmu-profile"),
    ("uc-tx-queue ", "txq"),
    ("mc-tx-queue ", "txq-mc"),
)


def kind_of(header: str) -> str:
    """The kind of block that a header opens."""
    return next((kind for start, kind in _KINDS if header.startswith(start)), "block")
