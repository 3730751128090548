"""Printing a configuration in NX-OS's order and layout.

Order and indentation as in recorded ``show running-config`` outputs of Nexus
9000 switches (9.3(3) and 10.x): network-qos policies stand before ``vdc``, the
other QoS before ``copp profile``, interfaces after VLANs and VRFs, ``line`` and
``boot`` at the end. Lines at their default are not printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fabric.twin.cli.values import compact
from fabric.twin.nxos.config import (
    DEFAULT_MTU,
    PORTS,
    ClassMap,
    Config,
    Interface,
    NetworkClass,
    QosClass,
    QueuingClass,
)

VERSION = "10.5(2)"
BIOS = "05.53"

# Interface lines in the order in which NX-OS prints them, by their slot.
_BEFORE_SWITCHPORT = ("description",)
_AFTER_SWITCHPORT = (
    "switchport mode",
    "switchport access vlan",
    "switchport trunk native vlan",
    "switchport trunk allowed vlan",
    "spanning-tree port type",
    "speed",
    "negotiate auto",
)
_AFTER_QOS = (
    "medium",
    "vrf member",
    "ip address",
    "ip unnumbered",
    "ip ospf network",
    "ip router ospf",
    "ip router bgp",
    "channel-group",
)
INTERFACE_SLOTS = (*_BEFORE_SWITCHPORT, *_AFTER_SWITCHPORT, *_AFTER_QOS)

# Global lines that NX-OS prints elsewhere than behind the features.
_LATE = ("copp ", "snmp-server ", "ntp ")
_LAST = ("boot ", "logging ", "cli alias ")


def interface_key(name: str) -> tuple[int, tuple[int, ...]]:
    """Sort key of a name: Vlan, port-channel, Ethernet, mgmt, loopback; numbers as numbers."""
    kinds = {"Vlan": 0, "port-channel": 1, "Ethernet": 2, "mgmt": 3, "loopback": 4}
    kind = re.match(r"[A-Za-z-]+", name)
    assert kind is not None
    return kinds[kind[0]], tuple(int(n) for n in re.findall(r"\d+", name))


def running_config(config: Config) -> str:
    """The whole configuration, from ``version`` on, without the comment header."""
    lines = [f"version {VERSION} Bios:version {BIOS} ", f"hostname {config.hostname}"]
    lines += network_qos_lines(config)
    lines += _blocks(config, "vdc ")
    lines += ["", *(f"feature {name}" for name in sorted(config.features)), ""]
    late, last = _LATE, _LAST
    lines += [line for line in config.lines if not line.startswith((*late, *last))]
    lines += qos_lines(config)
    lines += [line for line in config.lines if line.startswith(late)]
    lines += ["", *_blocks(config, "vlan "), *_blocks(config, "vrf "), ""]
    for name in sorted(config.interfaces, key=interface_key):
        lines += ["", *interface_lines(name, config.interfaces[name])]
    lines += _blocks(config, "line ")
    lines += [line for line in config.lines if line.startswith(last)]
    lines += _blocks(config, "router ")
    return "\n".join(lines) + "\n"


def _blocks(config: Config, start: str) -> list[str]:
    lines: list[str] = []
    for header, body in config.blocks.items():
        if header.startswith(start):
            lines += [header, *(f"  {line}" for line in body)]
    return lines


def watchdog_lines(config: Config) -> list[str]:
    """The global lines of the PFC watchdog."""
    watchdog, start = config.watchdog, "priority-flow-control"
    values = (
        ("watch-dog-interval", watchdog.enabled),
        ("watch-dog interval", watchdog.interval_ms),
        ("watch-dog shutdown-multiplier", watchdog.shutdown_multiplier),
        ("auto-restore multiplier", watchdog.auto_restore),
        ("fixed-restore multiplier", watchdog.fixed_restore),
    )
    return [f"{start} {name} {value}" for name, value in values if value is not None]


def network_qos_lines(config: Config) -> list[str]:
    """Policies of type network-qos and the PFC watchdog."""
    lines: list[str] = []
    for name, policy in config.network_policies.items():
        lines.append(f"policy-map type network-qos {name}")
        lines += [f"  description {policy.description}"] if policy.description else []
        for cls, actions in policy.classes.items():
            lines.append(f"  class type network-qos {cls}")
            lines += [f"    {line}" for line in network_class_lines(actions)]
    return lines + watchdog_lines(config)


def network_class_lines(actions: NetworkClass) -> list[str]:
    """Actions of one network-qos class."""
    lines = [f"mtu {actions.mtu}"] if actions.mtu is not None else []
    if actions.pause_cos is not None:
        receive = " receive" if actions.pause_receive else ""
        lines.append(f"pause pfc-cos {actions.pause_cos}{receive}")
    return lines


def class_map_lines(name: str, class_map: ClassMap) -> list[str]:
    """One class map of type qos."""
    lines = [f"class-map type qos {class_map.match} {name}"]
    lines += [f"  description {class_map.description}"] if class_map.description else []
    for keyword, values in (
        ("dscp", class_map.dscp),
        ("cos", class_map.cos),
        ("precedence", class_map.precedence),
    ):
        lines += [f"  match {keyword} {compact(values)}"] if values else []
    return lines


def qos_class_lines(actions: QosClass) -> list[str]:
    """Actions of one class of type qos."""
    values = (("qos-group", actions.qos_group), ("dscp", actions.dscp), ("cos", actions.cos))
    return [f"set {name} {value}" for name, value in values if value is not None]


def queuing_class_lines(actions: QueuingClass) -> list[str]:
    """Actions of one queuing class."""
    lines = [f"priority level {actions.priority}"] if actions.priority is not None else []
    if actions.bandwidth is not None:
        lines.append(f"bandwidth percent {actions.bandwidth}")
    if actions.remaining is not None:
        lines.append(f"bandwidth remaining percent {actions.remaining}")
    lines += [line for line in (actions.shape, actions.queue_limit, actions.random_detect) if line]
    if actions.pause is not None:
        pause = actions.pause
        lines.append(
            f"pause buffer-size {pause.buffer_size} pause-threshold {pause.pause_threshold} "
            f"resume-threshold {pause.resume_threshold}"
        )
    return lines


def qos_lines(config: Config) -> list[str]:
    """Class maps, policies of type qos and queuing, and ``system qos``."""
    lines: list[str] = []
    for name, class_map in config.class_maps.items():
        lines += class_map_lines(name, class_map)
    for name, policy in config.qos_policies.items():
        lines.append(f"policy-map type qos {name}")
        lines += [f"  description {policy.description}"] if policy.description else []
        for cls, actions in policy.classes.items():
            lines += [f"  class {cls}", *(f"    {line}" for line in qos_class_lines(actions))]
    for name, queuing in config.queuing_policies.items():
        lines.append(f"policy-map type queuing {name}")
        for cls, queue in queuing.classes.items():
            lines.append(f"  class type queuing {cls}")
            lines += [f"    {line}" for line in queuing_class_lines(queue)]
    attached = [
        ("qos input", config.system_qos_in),
        ("queuing input", config.system_queuing_in),
        ("queuing output", config.system_queuing_out),
        ("network-qos", config.system_network_qos),
    ]
    system = [f"  service-policy type {where} {name}" for where, name in attached if name]
    return [*lines, "system qos", *system] if system else lines


def interface_qos_lines(settings: Interface) -> list[str]:
    """The QoS lines of one interface, but its MTU."""
    lines = _pfc_lines(settings)
    lines += _service_policies(settings)
    return lines


def _pfc_lines(settings: Interface) -> list[str]:
    lines: list[str] = []
    if settings.pfc_mode != "auto":
        tlv = " send-tlv" if settings.pfc_send_tlv else ""
        lines.append(f"priority-flow-control mode {settings.pfc_mode}{tlv}")
    if settings.watchdog is not None:
        lines.append(f"priority-flow-control watch-dog-interval {settings.watchdog}")
    if settings.watchdog_multiplier is not None:
        lines.append(
            f"priority-flow-control watch-dog interface-multiplier {settings.watchdog_multiplier}"
        )
    lines += ["flowcontrol receive on"] if settings.flowcontrol_receive else []
    lines += ["flowcontrol send on"] if settings.flowcontrol_send else []
    return lines


def _service_policies(settings: Interface) -> list[str]:
    attached = (
        ("qos input", settings.qos_in),
        ("queuing input", settings.queuing_in),
        ("queuing output", settings.queuing_out),
    )
    return [
        f"service-policy type {where} {name}{' no-stats' if where in settings.no_stats else ''}"
        for where, name in attached
        if name
    ]


def interface_lines(name: str, settings: Interface) -> list[str]:
    """One interface with its header."""
    lines = _slots(settings, _BEFORE_SWITCHPORT)
    if name.startswith(PORTS) and not settings.switchport:
        lines.append("no switchport")
    lines += _slots(settings, _AFTER_SWITCHPORT)
    lines += _pfc_lines(settings)
    if settings.mtu != DEFAULT_MTU:
        lines.append(f"mtu {settings.mtu}")
    lines += _service_policies(settings)
    lines += _slots(settings, _AFTER_QOS)
    if settings.shutdown is not None and settings.shutdown != (not settings.switchport):
        lines.append("shutdown" if settings.shutdown else "no shutdown")
    return [f"interface {name}", *(f"  {line}" for line in lines)]


def _slots(settings: Interface, slots: Iterable[str]) -> list[str]:
    return [settings.lines[slot] for slot in slots if slot in settings.lines]


def ipqos_config(config: Config) -> str:
    """``show running-config ipqos``: everything about QoS, interfaces included."""
    lines = [f"version {VERSION} Bios:version {BIOS} "]
    lines += network_qos_lines(config)
    lines += qos_lines(config)
    for name in sorted(config.interfaces, key=interface_key):
        own = interface_qos_lines(config.interfaces[name])
        if own:
            lines += ["", f"interface {name}", *(f"  {line}" for line in own)]
    return "\n".join(lines) + "\n"


def interface_config(config: Config, names: Iterable[str]) -> str:
    """``show running-config interface NAME``."""
    lines = [f"version {VERSION} Bios:version {BIOS} "]
    for name in names:
        lines += ["", *interface_lines(name, config.interfaces[name])]
    return "\n".join(lines) + "\n"
