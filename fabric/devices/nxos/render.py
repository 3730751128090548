"""From an intended state to the configuration that the intent owns.

Line forms: Cisco, Nexus 9000 Series NX-OS QoS Configuration Guide 10.5(x);
paregupt/nx-os nxos_config_roce.py. qos-group, priority, queue and pfc-cos are
one number. ``docs/devices-nxos.md`` lists every line.
"""

from __future__ import annotations

from collections import Counter

from fabric.devices.nxos.names import DEFAULT_QUEUE, content_name, dscp_class_name, format_dscps
from fabric.devices.nxos.normalise import POLL_MS, normalise, require_expressible
from fabric.devices.sections import Section
from fabric.qos import PRIORITY_COUNT, DeviceQos, Ecn, PortQos

DEFAULT_MTU = 1500
KBYTES = 1000

WATCHDOG_ON = "priority-flow-control watch-dog-interval on"
SHUTDOWN_MULTIPLIER = "priority-flow-control watch-dog shutdown-multiplier"


def intended_sections(intended: DeviceQos) -> list[Section]:
    """Everything that the intent owns on this device, in the order of its definition.

    Raises InputError for what NX-OS cannot express at all.
    """
    require_expressible(intended)
    state = normalise(intended)
    if not state.ports:
        return []
    objects: dict[str, Section] = {}
    interfaces = [_interface(port, objects) for port in state.ports]
    network_qos = _network_qos(state, objects)
    order = ("class-map", "policy-map type qos", "policy-map type queuing", "policy-map")
    ranked = sorted(
        objects.values(),
        key=lambda section: next(
            i for i, kind in enumerate(order) if section.text.startswith(kind)
        ),
    )
    return [*_watchdog(state), *ranked, *network_qos, *interfaces]


def _watchdog(state: DeviceQos) -> list[Section]:
    watchdogs = [port.watchdog for port in state.ports if port.watchdog]
    if not watchdogs:
        return []
    multiplier = (watchdogs[0].detect_ms or POLL_MS) // POLL_MS
    lines = [Section(WATCHDOG_ON)]
    if multiplier > 1:
        lines.append(Section(f"{SHUTDOWN_MULTIPLIER} {multiplier}"))
    return lines


def _network_qos(state: DeviceQos, objects: dict[str, Section]) -> list[Section]:
    mtus = state.ports[0].class_mtu_bytes
    paused = {priority for port in state.ports for priority in port.pfc_priorities}
    classes = []
    for group in range(PRIORITY_COUNT):
        lines = [f"mtu {mtus[group]}"] if mtus[group] != DEFAULT_MTU else []
        if group in paused:
            lines.append(f"pause pfc-cos {group}")
        if lines:
            classes.append(_class(f"class type network-qos c-8q-nq{_suffix(group)}", lines))
    if not classes:
        return []
    name = _define(objects, "policy-map type network-qos", "NQ", classes)
    return [Section("system qos", [Section(f"service-policy type network-qos {name}")])]


def _suffix(group: int) -> str:
    return "-default" if group == DEFAULT_QUEUE else str(group)


def _interface(port: PortQos, objects: dict[str, Section]) -> Section:
    lines = []
    if port.mtu_bytes != DEFAULT_MTU:
        lines.append(f"mtu {port.mtu_bytes}")
    if port.link_pause:
        lines += ["flowcontrol receive on", "flowcontrol send on"]
    lines.append(f"priority-flow-control mode {'on' if port.pfc_priorities else 'off'}")
    if port.watchdog:
        lines.append(WATCHDOG_ON)
    lines.append(f"service-policy type qos input {_classification(port, objects)}")
    if port.ingress_buffers:
        lines.append(f"service-policy type queuing input {_buffers(port, objects)}")
    lines.append(f"service-policy type queuing output {_scheduling(port, objects)}")
    return _class(f"interface {port.name}", lines)


def _classification(port: PortQos, objects: dict[str, Section]) -> str:
    count = Counter(port.dscp_to_priority)
    default = min(count, key=lambda priority: (-count[priority], priority))
    classes = []
    for priority in sorted(set(count) - {default}):
        dscps = [dscp for dscp, to in enumerate(port.dscp_to_priority) if to == priority]
        name = dscp_class_name(dscps)
        text = f"class-map type qos match-any {name}"
        objects[text] = _class(text, [f"match dscp {format_dscps(dscps)}"])
        classes.append(_class(f"class {name}", [f"set qos-group {priority}"]))
    classes.append(_class("class class-default", [f"set qos-group {default}"]))
    return _define(objects, "policy-map type qos", "IN", classes)


def _buffers(port: PortQos, objects: dict[str, Section]) -> str:
    classes = [
        _class(
            f"class type queuing c-in-q{_suffix(buffer.priority)}",
            [
                f"pause buffer-size {buffer.size_bytes} pause-threshold {buffer.xoff_bytes} "
                f"resume-threshold {buffer.xon_bytes}"
            ],
        )
        for buffer in port.ingress_buffers
    ]
    return _define(objects, "policy-map type queuing", "BUF", classes)


def _scheduling(port: PortQos, objects: dict[str, Section]) -> str:
    classes, level = [], 0
    for queue in reversed(port.queues):
        if queue.scheduler.mode == "strict":
            level += 1
            lines = [f"priority level {level}"]
        else:
            lines = [f"bandwidth remaining percent {queue.scheduler.percent}"]
        if queue.ecn is not None:
            lines.append(_random_detect(queue.ecn))
        name = f"class type queuing c-out-8q-q{_suffix(queue.traffic_class)}"
        classes.append(_class(name, lines))
    return _define(objects, "policy-map type queuing", "OUT", classes)


def _random_detect(ecn: Ecn) -> str:
    return (
        f"random-detect minimum-threshold {_size(ecn.kmin_bytes)} "
        f"maximum-threshold {_size(ecn.kmax_bytes)} "
        f"drop-probability {ecn.pmax_percent} weight 0 ecn"
    )


def _size(size_bytes: int) -> str:
    if size_bytes % KBYTES:
        return f"{size_bytes} bytes"
    return f"{size_bytes // KBYTES} kbytes"


def _class(text: str, lines: list[str]) -> Section:
    return Section(text, [Section(line) for line in lines])


def _define(objects: dict[str, Section], head: str, kind: str, classes: list[Section]) -> str:
    """Add the policy map of these classes, once, and return its name."""
    name = content_name(kind, classes)
    objects[f"{head} {name}"] = Section(f"{head} {name}", classes)
    return name
