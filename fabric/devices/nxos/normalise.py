"""What NX-OS can express of an intended state."""

from __future__ import annotations

import dataclasses

from fabric.devices.expressible import eight_queues
from fabric.errors import InputError
from fabric.qos import PRIORITY_COUNT, DeviceQos, PortQos, Queue, Watchdog

# The watchdog looks at each queue every 100 ms and acts after as many polls
# as its shutdown multiplier says. Cisco, Nexus 9000 NX-OS QoS guide 10.5(x),
# "About Priority Flow Control Watchdog".
POLL_MS = 100
MAX_SHUTDOWN_MULTIPLIER = 10
# ``priority level 1`` to ``3``: no public source shows a higher one.
MAX_STRICT_QUEUES = 3


def normalise(intended: DeviceQos) -> DeviceQos:
    """The state that a switch which does all that it can is read back as.

    - Watchdog: one detection time for the device, in steps of 100 ms up to one
      second, the longest that a port asks for; the restore time is the
      device's own; the action is to drop.
    - Every port has eight queues; a strict queue has no share.
    - Receive buffers have static thresholds, one for each lossless priority.
    """
    detect_ms = _detect_ms(intended)
    queues: dict[tuple[Queue, ...], tuple[Queue, ...]] = {}
    ports = []
    for port in intended.ports:
        if port.queues not in queues:
            queues[port.queues] = eight_queues(port)
        ports.append(_port(port, detect_ms, queues[port.queues]))
    return dataclasses.replace(intended, ports=tuple(ports))


def _detect_ms(intended: DeviceQos) -> int:
    asked = [port.watchdog.detect_ms or 0 for port in intended.ports if port.watchdog]
    polls = -(-max(asked, default=0) // POLL_MS)
    return POLL_MS * min(max(polls, 1), MAX_SHUTDOWN_MULTIPLIER)


def _port(port: PortQos, detect_ms: int, queues: tuple[Queue, ...]) -> PortQos:
    return dataclasses.replace(
        port,
        queues=queues,
        ingress_buffers=tuple(
            dataclasses.replace(buffer, alpha=None)
            for buffer in sorted(port.ingress_buffers, key=lambda buffer: buffer.priority)
        ),
        watchdog=Watchdog(detect_ms, None, "drop") if port.watchdog else None,
        nic=None,
    )


def require_expressible(intended: DeviceQos) -> None:
    """InputError where NX-OS has no configuration for what is intended."""
    for port in intended.ports:
        where = f"{intended.device}:{port.name}"
        if port.trust != "dscp":
            raise _cannot(where, f"trust {port.trust}; PAISoar classifies by DSCP")
        if port.priority_to_class != tuple(range(PRIORITY_COUNT)):
            raise _cannot(where, "map a priority to another queue: qos-group is both")
        if sum(queue.scheduler.mode == "strict" for queue in port.queues) > MAX_STRICT_QUEUES:
            raise _cannot(where, f"serve more than {MAX_STRICT_QUEUES} queues strictly")
        if port.link_pause and port.pfc_priorities:
            raise _cannot(where, "pause the link and single priorities of it")
    pauses = {port.pfc_priorities for port in intended.ports if port.pfc_priorities}
    if len(pauses) > 1:
        raise _cannot(intended.device, "pause other priorities on other ports")
    if len({port.class_mtu_bytes for port in intended.ports}) > 1:
        raise _cannot(intended.device, "give a class another MTU on other ports")


def _cannot(where: str, what: str) -> InputError:
    return InputError(
        f"{where}: NX-OS cannot {what}",
        advice="Change intent.classes so that all ports of a switch do the same.",
    )
