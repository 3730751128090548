"""From an intended state to the configuration that the intent owns.

Priority, qos-group and queue are one number unless the intent maps otherwise.
"""

from __future__ import annotations

from collections import defaultdict

from fabric.devices.os10.lines import (
    DEFAULT_MTU,
    KB,
    MTU_HEADER_BYTES,
    NETWORK_CLASS,
    NETWORK_POLICY,
    PREFIX,
    QUEUE_CLASS,
    QUEUE_MAP,
    QUEUE_POLICY,
    TRUST,
    USE_NETWORK,
    USE_QUEUE,
    USE_TRUST,
    WRED,
    ranges,
)
from fabric.devices.os10.normalise import normalise, require_expressible
from fabric.devices.owning import keep, named
from fabric.devices.sections import Section
from fabric.qos import PRIORITY_COUNT, DeviceQos, Ecn, IngressBuffer, PortQos, Queue


def intended_sections(intended: DeviceQos) -> list[Section]:
    """Everything that the intent owns on this device: objects, then ports.

    Raises InputError for what OS10 cannot express at all.
    """
    require_expressible(intended)
    objects: dict[str, Section] = {}
    ports = [_interface(port, objects) for port in normalise(intended).ports]
    return [*objects.values(), *ports]


def _interface(port: PortQos, objects: dict[str, Section]) -> Section:
    lines = []
    if (mtu := port.mtu_bytes + MTU_HEADER_BYTES) != DEFAULT_MTU:
        lines.append(f"mtu {mtu}")
    pause = "on" if port.link_pause else "off"
    lines += [f"flowcontrol receive {pause}", f"flowcontrol transmit {pause}"]
    if port.pfc_priorities:
        lines.append("priority-flow-control mode on")
        lines.append(USE_NETWORK + _network_policy(port, objects))
    lines.append(USE_QUEUE + _queue_policy(port, objects))
    lines.append(USE_TRUST + keep(objects, _trust_map(port)))
    lines.append(QUEUE_MAP + keep(objects, _queue_map(port)))
    return Section(f"interface {port.name}", [Section(line) for line in lines])


def _trust_map(port: PortQos) -> Section:
    by_priority: dict[int, list[int]] = defaultdict(list)
    for dscp, priority in enumerate(port.dscp_to_priority):
        by_priority[priority].append(dscp)
    lines = [f"qos-group {p} dscp {ranges(by_priority[p])}" for p in sorted(by_priority)]
    return named(TRUST, PREFIX, "DSCP", [Section(line) for line in lines])


def _queue_map(port: PortQos) -> Section:
    by_queue: dict[int, list[int]] = defaultdict(list)
    for priority, queue in enumerate(port.priority_to_class):
        by_queue[queue].append(priority)
    lines = [f"queue {q} qos-group {ranges(by_queue[q])} type ucast" for q in sorted(by_queue)]
    return named(QUEUE_MAP, PREFIX, "TC", [Section(line) for line in lines])


def _network_policy(port: PortQos, objects: dict[str, Section]) -> str:
    classes = []
    for buffer in port.ingress_buffers:
        match = Section(f"match qos-group {buffer.priority}")
        name = keep(objects, Section(f"{NETWORK_CLASS}{PREFIX}NQ{buffer.priority}", [match]))
        lines = [Section(_pause(buffer)), Section(f"pfc-cos {buffer.priority}")]
        classes.append(Section(f"class {name}", lines))
    return keep(objects, named(NETWORK_POLICY, PREFIX, "PFC", classes))


def _pause(buffer: IngressBuffer) -> str:
    return (
        f"pause buffer-size {buffer.size_bytes // KB} pause-threshold {buffer.xoff_bytes // KB} "
        f"resume-threshold {buffer.xon_bytes // KB}"
    )


def _queue_policy(port: PortQos, objects: dict[str, Section]) -> str:
    classes = []
    for number in range(PRIORITY_COUNT):
        queue = port.queue(number)
        lines = _queue_lines(queue, objects) if queue else []
        if lines:
            match = Section(f"match queue {number}")
            name = keep(objects, Section(f"{QUEUE_CLASS}{PREFIX}Q{number}", [match]))
            classes.append(Section(f"class {name}", [Section(line) for line in lines]))
    return keep(objects, named(QUEUE_POLICY, PREFIX, "SCHED", classes))


def _queue_lines(queue: Queue, objects: dict[str, Section]) -> list[str]:
    lines = []
    if queue.scheduler.mode == "strict":
        lines.append("priority")
    elif queue.scheduler.percent:
        lines.append(f"bandwidth percent {queue.scheduler.percent}")
    if queue.ecn is not None:
        lines.append(f"random-detect {keep(objects, _wred(queue.ecn))}")
    return lines


def _wred(ecn: Ecn) -> Section:
    green = (
        f"random-detect color green minimum-threshold {ecn.kmin_bytes // KB} "
        f"maximum-threshold {ecn.kmax_bytes // KB} drop-probability {ecn.pmax_percent}"
    )
    return named(WRED, PREFIX, "WRED", [Section(green), Section("random-detect ecn")])
