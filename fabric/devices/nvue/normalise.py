"""What Cumulus Linux can express of an intended state."""

from __future__ import annotations

import dataclasses

from fabric.devices.expressible import eight_queues
from fabric.errors import InputError
from fabric.qos import PRIORITY_COUNT, DeviceQos, PortQos, Watchdog

POLL_MS = 100
MAX_ROBUSTNESS = 50


def normalise(intended: DeviceQos) -> DeviceQos:
    """The state that a switch which does all that it can is read back as.

    - The MTU is the port's; there is none by class.
    - A queue's share is 1 to 100 percent; a queue without any gets what is left.
    - PFC thresholds are static, the same for all lossless priorities of a port.
    - Watchdog: one detection time for the device, in steps of 100 ms; it drops, and
      ends when a poll finds no more pause frames.
    - There is no 802.3x pause on ports of the intent.
    """
    detect_ms = _detect_ms(intended)
    return dataclasses.replace(
        intended, ports=tuple(_port(port, detect_ms) for port in intended.ports)
    )


def _detect_ms(intended: DeviceQos) -> int:
    asked = [port.watchdog.detect_ms or 0 for port in intended.ports if port.watchdog]
    polls = -(-max(asked, default=0) // POLL_MS)
    return POLL_MS * min(max(polls, 1), MAX_ROBUSTNESS)


def _port(port: PortQos, detect_ms: int) -> PortQos:
    return dataclasses.replace(
        port,
        class_mtu_bytes=(port.mtu_bytes,) * PRIORITY_COUNT,
        link_pause=False,
        queues=eight_queues(port),
        ingress_buffers=tuple(
            dataclasses.replace(buffer, alpha=None)
            for buffer in sorted(port.ingress_buffers, key=lambda buffer: buffer.priority)
        ),
        # Only a port with PFC takes a watchdog.
        watchdog=Watchdog(detect_ms, None, "drop")
        if port.watchdog and port.pfc_priorities
        else None,
        nic=None,
    )


def require_expressible(intended: DeviceQos) -> None:
    """InputError where NVUE has no configuration for what is intended."""
    for port in intended.ports:
        where = f"{intended.device}:{port.name}"
        if port.trust != "dscp":
            raise _cannot(where, f"trust {port.trust}; PAISoar classifies by DSCP")
        buffers = {
            b.priority: (b.size_bytes, b.xoff_bytes, b.xon_bytes) for b in port.ingress_buffers
        }
        if buffers and set(buffers) != set(port.pfc_priorities):
            raise _cannot(where, "give some lossless priorities a buffer and others none")
        if len(set(buffers.values())) > 1:
            raise _cannot(where, "give lossless priorities of one port different thresholds")
    if len({port.priority_to_class for port in intended.ports}) > 1:
        raise _cannot(intended.device, "map priorities to queues differently by port")


def _cannot(where: str, what: str) -> InputError:
    return InputError(f"{where}: NVUE cannot {what}", advice="Change intent.classes.")
