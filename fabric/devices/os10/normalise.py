"""What OS10 can express of an intended state."""

from __future__ import annotations

import dataclasses

from fabric.devices.expressible import Limits, eight_queues
from fabric.devices.os10.lines import KB, MAX_MTU, MTU_HEADER_BYTES
from fabric.qos import PRIORITY_COUNT, DeviceQos, Ecn, IngressBuffer, PortQos

LIMITS = Limits("OS10")


def normalise(intended: DeviceQos) -> DeviceQos:
    """The state that a switch which does all that it can is read back as.

    - The MTU is 9184 at most (9216 with headers), and that of every class.
    - ECN thresholds and buffers are whole kilobytes, rounded up; Kmax lies above Kmin.
    - XOFF is static; there is no watchdog in what could be verified.
    """
    return dataclasses.replace(intended, ports=tuple(map(_port, intended.ports)))


def _port(port: PortQos) -> PortQos:
    mtu = min(port.mtu_bytes, MAX_MTU - MTU_HEADER_BYTES)
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
    low = kilobytes(ecn.kmin_bytes)
    return Ecn(low * KB, max(kilobytes(ecn.kmax_bytes), low + 1) * KB, ecn.pmax_percent)


def _buffer(buffer: IngressBuffer) -> IngressBuffer:
    xon, xoff = kilobytes(buffer.xon_bytes), kilobytes(buffer.xoff_bytes)
    size = max(kilobytes(buffer.size_bytes), xoff)
    return IngressBuffer(buffer.priority, size * KB, xoff * KB, xon * KB)


def kilobytes(size_bytes: int) -> int:
    """Whole kilobytes, at least one."""
    return max(-(-size_bytes // KB), 1)


def require_expressible(intended: DeviceQos) -> None:
    """InputError where OS10 has no configuration for what is intended."""
    LIMITS.require_ports(intended)
    LIMITS.require_buffers_of_paused(intended)
