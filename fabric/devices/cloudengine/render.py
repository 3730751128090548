"""From an intended state to the configuration that the intent owns.

Priority, per-hop behaviour and queue are one number.
"""

from __future__ import annotations

from fabric.devices.cloudengine.lines import (
    DEFAULT_FRAME_BYTES,
    DOMAIN,
    DROP,
    HEADER_BYTES,
    PFC,
    PREFIX,
    inbound_line,
    to_list,
)
from fabric.devices.cloudengine.normalise import normalise, require_expressible
from fabric.devices.expressible import lowest_strict
from fabric.devices.owning import keep, named
from fabric.devices.sections import Section
from fabric.qos import PRIORITY_COUNT, DeviceQos, Ecn, PortQos


def intended_sections(intended: DeviceQos) -> list[Section]:
    """Everything that the intent owns on this device: objects, then ports.

    Raises InputError for what VRP cannot express at all.
    """
    require_expressible(intended)
    objects: dict[str, Section] = {}
    ports = [_interface(port, objects) for port in normalise(intended).ports]
    return [*objects.values(), *ports]


def _interface(port: PortQos, objects: dict[str, Section]) -> Section:
    lines = []
    if (frame := port.mtu_bytes + HEADER_BYTES) != DEFAULT_FRAME_BYTES:
        lines.append(f"jumboframe enable {frame}")
    if port.link_pause:
        lines.append("flow-control")
    lines += ["trust dscp", f"trust upstream {keep(objects, _domain(port))}"]
    if port.pfc_priorities:
        profile = named(PFC, PREFIX, "PFC", [Section(f"priority {_spaced(port)}")])
        lines.append(f"dcb pfc enable {keep(objects, profile)} mode manual")
    lines += _scheduling(port)
    for queue in port.queues:
        if queue.ecn is not None:
            name = keep(objects, _drop_profile(queue.ecn))
            lines += [
                f"qos queue {queue.traffic_class} wred {name}",
                f"qos queue {queue.traffic_class} ecn",
            ]
    return Section(f"interface {port.name}", [Section(line) for line in lines])


def _spaced(port: PortQos) -> str:
    return " ".join(map(str, port.pfc_priorities))


def _domain(port: PortQos) -> Section:
    lines = [inbound_line(dscp, p) for dscp, p in enumerate(port.dscp_to_priority)]
    return named(DOMAIN, PREFIX, "DSCP", [Section(line) for line in lines])


def _drop_profile(ecn: Ecn) -> Section:
    green = (
        f"color green buffer-size low-limit {ecn.kmin_bytes} high-limit {ecn.kmax_bytes} "
        f"discard-percentage {ecn.pmax_percent}"
    )
    return named(DROP, PREFIX, "WRED", [Section(green)])


def _scheduling(port: PortQos) -> list[str]:
    lowest = lowest_strict(port)
    lines = []
    if lowest < PRIORITY_COUNT:
        lines.append(f"qos pq {to_list(range(lowest, PRIORITY_COUNT))}")
    if lowest:
        lines.append(f"qos drr {to_list(range(lowest))}")
    lines += [
        f"qos queue {queue.traffic_class} drr weight {queue.scheduler.percent}"
        for queue in port.queues
        if queue.traffic_class < lowest and queue.scheduler.percent
    ]
    return lines
