"""From an intended state to the configuration that the intent owns.

A DSCP is mapped to an 802.1p priority, that to a queue; both tables are the switch's.
"""

from __future__ import annotations

from collections.abc import Iterable

from fabric.devices.comware.lines import (
    CELL_BYTES,
    DSCP_TABLE,
    HEADER_BYTES,
    QUEUE_TABLE,
    QUEUES,
    default_of,
    import_line,
    to_list,
)
from fabric.devices.comware.normalise import normalise, ratio_of, require_expressible
from fabric.devices.sections import Section
from fabric.qos import DeviceQos, IngressBuffer, PortQos, Queue

# Packets are green without a meter; all three levels are marked alike.
DROP_LEVELS = range(3)


def intended_sections(intended: DeviceQos) -> list[Section]:
    """Everything that the intent owns on this device: tables, then ports.

    Raises InputError for what Comware cannot express at all.
    """
    require_expressible(intended)
    state = normalise(intended)
    if not state.ports:
        return []
    first = state.ports[0]
    tables = [
        _table(DSCP_TABLE, first.dscp_to_priority),
        _table(QUEUE_TABLE, first.priority_to_class),
    ]
    return [*tables, *map(_interface, state.ports)]


def _table(name: str, results: Iterable[int]) -> Section:
    lines = [
        import_line(value, result)
        for value, result in enumerate(results)
        if default_of(name, value) != result
    ]
    return Section(name, [Section(line) for line in lines])


def _interface(port: PortQos) -> Section:
    lines = [f"jumboframe enable {port.mtu_bytes + HEADER_BYTES}"]
    if port.link_pause:
        lines.append("flow-control")
    if port.pfc_priorities:
        lines.append("priority-flow-control enable")
        lines.append(f"priority-flow-control no-drop dot1p {to_list(port.pfc_priorities)}")
    for buffer in port.ingress_buffers:
        lines += _buffer(buffer)
    lines += ["qos trust dscp", "qos wfq byte-count"]
    for queue in port.queues:
        lines += _queue(queue)
    return Section(f"interface {port.name}", [Section(line) for line in lines])


def _buffer(buffer: IngressBuffer) -> list[str]:
    head = f"priority-flow-control dot1p {buffer.priority}"
    xoff = buffer.xoff_bytes // CELL_BYTES
    threshold = f"static {xoff}" if buffer.alpha is None else f"dynamic {ratio_of(buffer.alpha)}"
    offset = (buffer.xoff_bytes - buffer.xon_bytes) // CELL_BYTES
    return [
        f"{head} headroom {(buffer.size_bytes - buffer.xoff_bytes) // CELL_BYTES}",
        f"{head} ingress-buffer {threshold}",
        f"{head} ingress-threshold-offset {offset}",
    ]


def _queue(queue: Queue) -> list[str]:
    name = QUEUES[queue.traffic_class]
    lines = []
    if queue.scheduler.mode == "strict":
        lines.append(f"qos wfq {name} group sp")
    elif queue.scheduler.percent:
        lines.append(f"qos wfq {name} group 1 byte-count {queue.scheduler.percent}")
    if queue.ecn is not None:
        head = f"qos wred queue {queue.traffic_class}"
        limits = (
            f"low-limit {queue.ecn.kmin_bytes // CELL_BYTES} "
            f"high-limit {queue.ecn.kmax_bytes // CELL_BYTES} "
            f"discard-probability {queue.ecn.pmax_percent}"
        )
        lines += [f"{head} drop-level {level} {limits}" for level in DROP_LEVELS]
        lines += [f"{head} ecn", f"{head} weighting-constant 0"]
    return lines
