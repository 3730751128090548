"""What CloudEngine switches can express of an intended state."""

from __future__ import annotations

import dataclasses

from fabric.devices.cloudengine.lines import HEADER_BYTES, MAX_FRAME_BYTES, MIN_FRAME_BYTES
from fabric.errors import InputError
from fabric.qos import PRIORITY_COUNT, DeviceQos, PortQos, Queue, Scheduler


def normalise(intended: DeviceQos) -> DeviceQos:
    """The state that a switch which does all that it can is read back as.

    - The MTU lies between 1518 and 9198, and is that of every class.
    - Queues above a strict one are strict too; a shared one has a weight.
    - Receive buffers and the watchdog are the switch's own: they are not configured.
    """
    return dataclasses.replace(intended, ports=tuple(map(_port, intended.ports)))


def _port(port: PortQos) -> PortQos:
    smallest, largest = MIN_FRAME_BYTES - HEADER_BYTES, MAX_FRAME_BYTES - HEADER_BYTES
    mtu = min(max(port.mtu_bytes, smallest), largest)
    return dataclasses.replace(
        port,
        mtu_bytes=mtu,
        class_mtu_bytes=(mtu,) * PRIORITY_COUNT,
        queues=tuple(_queues(port)),
        ingress_buffers=(),
        watchdog=None,
        nic=None,
    )


def lowest_strict(port: PortQos) -> int:
    """The lowest strict queue; 8 where all share."""
    strict = (q.traffic_class for q in port.queues if q.scheduler.mode == "strict")
    return min(strict, default=PRIORITY_COUNT)


def _queues(port: PortQos) -> list[Queue]:
    lowest = lowest_strict(port)
    queues = []
    for number in range(PRIORITY_COUNT):
        queue = port.queue(number) or Queue(number, Scheduler("ets", 0))
        if number >= lowest:
            queue = dataclasses.replace(queue, scheduler=Scheduler("strict"))
        queues.append(queue)
    return queues


def require_expressible(intended: DeviceQos) -> None:
    """InputError where VRP has no configuration for what is intended."""
    for port in intended.ports:
        where = f"{intended.device}:{port.name}"
        if port.trust != "dscp":
            raise _cannot(where, f"trust {port.trust}; PAISoar classifies by DSCP")
        if port.priority_to_class != tuple(range(PRIORITY_COUNT)):
            raise _cannot(where, "pause a priority that leaves by another queue")
        if port.link_pause and port.pfc_priorities:
            raise _cannot(where, "pause the link and single priorities of it")
        above = [q for q in port.queues if q.traffic_class > lowest_strict(port)]
        if any(queue.scheduler.percent for queue in above):
            raise _cannot(where, "serve a strict queue before a shared one above it")


def _cannot(where: str, what: str) -> InputError:
    return InputError(f"{where}: VRP cannot {what}", advice="Change intent.classes.")
