"""What plain Linux can express of an intended state."""

from __future__ import annotations

import dataclasses

from fabric.devices.switchdev.state import alpha_of, threshold_of
from fabric.errors import InputError
from fabric.qos import PRIORITY_COUNT, DeviceQos, IngressBuffer, PortQos, Queue, Scheduler

# A multiple of the buffer cells of all Spectrum chips (96, 144 and 192 bytes), so
# that a size is stored as it is given.
CELLS_BYTES = 576


def normalise(intended: DeviceQos, *, hardware: bool) -> DeviceQos:
    """The state that a switch which does all that it can is read back as.

    - The MTU of every class is that of its port. Queues above a strict one are
      strict too. There is no PFC watchdog.
    - Hardware: XOFF is dynamic, one of the shares of devlink (1/8 where none is
      intended); ``xoff_bytes`` and ``xon_bytes`` are 0 and ``size_bytes`` is the
      headroom, rounded up to whole cells.
    - A software bridge has no PFC, no pause and no receive buffers.
    """
    ports = tuple(_port(port, hardware=hardware) for port in intended.ports)
    return dataclasses.replace(intended, ports=ports)


def _port(port: PortQos, *, hardware: bool) -> PortQos:
    return dataclasses.replace(
        port,
        class_mtu_bytes=(port.mtu_bytes,) * PRIORITY_COUNT,
        queues=_queues(port),
        pfc_priorities=port.pfc_priorities if hardware else (),
        link_pause=port.link_pause and hardware,
        ingress_buffers=tuple(map(_buffer, port.ingress_buffers)) if hardware else (),
        watchdog=None,
        nic=None,
    )


def _buffer(buffer: IngressBuffer) -> IngressBuffer:
    cells = -(-(buffer.size_bytes - buffer.xoff_bytes) // CELLS_BYTES)
    alpha = alpha_of(threshold_of(buffer.alpha))
    return IngressBuffer(buffer.priority, max(cells, 1) * CELLS_BYTES, 0, 0, alpha)


def _queues(port: PortQos) -> tuple[Queue, ...]:
    strict = [q.traffic_class for q in port.queues if q.scheduler.mode == "strict"]
    lowest = min(strict, default=PRIORITY_COUNT)
    queues = []
    for number in range(PRIORITY_COUNT):
        queue = port.queue(number) or Queue(number, Scheduler("ets", 0))
        if number >= lowest:
            queue = dataclasses.replace(queue, scheduler=Scheduler("strict"))
        queues.append(queue)
    return tuple(queues)


def require_expressible(intended: DeviceQos) -> None:
    """InputError where Linux has no configuration for what is intended."""
    for port in intended.ports:
        where = f"{intended.device}:{port.name}"
        if port.trust != "dscp":
            raise _cannot(where, f"is not told to trust {port.trust}: PAISoar classifies by DSCP")
        if port.link_pause and port.pfc_priorities:
            raise _cannot(where, "cannot pause the link and single priorities of it")
        lowest = [q.traffic_class for q in port.queues if q.scheduler.mode == "strict"]
        shared = [q for q in port.queues if q.scheduler.percent and q.scheduler.mode == "ets"]
        if any(q.traffic_class > min(lowest, default=PRIORITY_COUNT) for q in shared):
            raise _cannot(where, "cannot serve a strict queue before a shared one above it")


def _cannot(where: str, what: str) -> InputError:
    return InputError(
        f"{where}: Linux {what}",
        advice="Change intent.classes: strict queues above shared ones, all by DSCP.",
    )
