"""What Comware switches can express of an intended state."""

from __future__ import annotations

import dataclasses

from fabric.devices.comware.lines import (
    ALPHAS,
    CELL_BYTES,
    HEADER_BYTES,
    MAX_FRAME_BYTES,
    MIN_FRAME_BYTES,
)
from fabric.devices.expressible import Limits, eight_queues
from fabric.qos import PRIORITY_COUNT, DeviceQos, Ecn, IngressBuffer, PortQos

LIMITS = Limits("Comware")


def normalise(intended: DeviceQos) -> DeviceQos:
    """The state that a switch which does all that it can is read back as.

    - The MTU lies between 1518 and 9398, and is that of every class.
    - ECN thresholds and buffers are whole cells, rounded up; Kmax lies above Kmin.
    - XOFF is static, or a share of the free buffer where the intent names one: then
      ``xoff_bytes`` holds the distance of XON, and ``xon_bytes`` nothing.
    - Deadlock detection is not configured: there is no watchdog.
    """
    return dataclasses.replace(intended, ports=tuple(map(_port, intended.ports)))


def cells(size_bytes: int) -> int:
    """Whole cells, at least one."""
    return max(-(-size_bytes // CELL_BYTES), 1)


def ratio_of(alpha: float) -> int:
    """The number behind ``dynamic`` whose share is nearest."""
    return min(ALPHAS, key=lambda number: abs(ALPHAS[number] / alpha - 1))


def _port(port: PortQos) -> PortQos:
    smallest, largest = MIN_FRAME_BYTES - HEADER_BYTES, MAX_FRAME_BYTES - HEADER_BYTES
    mtu = min(max(port.mtu_bytes, smallest), largest)
    return dataclasses.replace(
        port,
        mtu_bytes=mtu,
        class_mtu_bytes=(mtu,) * PRIORITY_COUNT,
        queues=tuple(
            dataclasses.replace(queue, ecn=_ecn(queue.ecn)) for queue in eight_queues(port)
        ),
        ingress_buffers=tuple(map(_buffer, port.ingress_buffers)),
        watchdog=None,
        nic=None,
    )


def _ecn(ecn: Ecn | None) -> Ecn | None:
    if ecn is None:
        return None
    low = cells(ecn.kmin_bytes)
    high = max(cells(ecn.kmax_bytes), low + 1)
    return Ecn(low * CELL_BYTES, high * CELL_BYTES, ecn.pmax_percent)


def _buffer(buffer: IngressBuffer) -> IngressBuffer:
    headroom = cells(buffer.size_bytes - buffer.xoff_bytes) * CELL_BYTES
    offset = cells(buffer.xoff_bytes - buffer.xon_bytes) * CELL_BYTES
    if buffer.alpha is not None:
        alpha = ALPHAS[ratio_of(buffer.alpha)]
        return IngressBuffer(buffer.priority, headroom + offset, offset, 0, alpha)
    xoff = max(cells(buffer.xoff_bytes) * CELL_BYTES, offset)
    return IngressBuffer(buffer.priority, xoff + headroom, xoff, xoff - offset)


def require_expressible(intended: DeviceQos) -> None:
    """InputError where Comware has no configuration for what is intended."""
    LIMITS.require_ports(intended)
    LIMITS.require_buffers_of_paused(intended)
    maps = {(port.dscp_to_priority, port.priority_to_class) for port in intended.ports}
    if len(maps) > 1:
        raise LIMITS.cannot(intended.device, "map DSCPs otherwise on other ports")
