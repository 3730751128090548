"""What CloudEngine switches can express of an intended state."""

from __future__ import annotations

import dataclasses

from fabric.devices.cloudengine.lines import HEADER_BYTES, MAX_FRAME_BYTES, MIN_FRAME_BYTES
from fabric.devices.expressible import Limits, strict_upwards
from fabric.qos import PRIORITY_COUNT, DeviceQos, PortQos

LIMITS = Limits("VRP")


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
        queues=strict_upwards(port),
        ingress_buffers=(),
        watchdog=None,
        nic=None,
    )


def require_expressible(intended: DeviceQos) -> None:
    """InputError where VRP has no configuration for what is intended."""
    LIMITS.require_ports(intended, one_queue=True, strict_upwards=True)
