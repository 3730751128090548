"""What SONiC can express of an intended state."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from fabric.errors import InputError
from fabric.qos import (
    PRIORITY_COUNT,
    DeviceQos,
    IngressBuffer,
    PortQos,
    Queue,
    Scheduler,
    Watchdog,
)

# BUFFER_PROFILE dynamic_th is log2 of alpha. Source: sonic-buffer-profile.yang.
MIN_DYNAMIC_TH, MAX_DYNAMIC_TH = -8, 7
# With dynamic thresholds a priority group owns two of the largest frames, and
# takes the rest from the shared pool.
RESERVED_BYTES = 2 * 9216
MIN_DETECT_MS, MAX_DETECT_MS = 100, 5000
MIN_RESTORE_MS, MAX_RESTORE_MS = 100, 60_000


def normalise(intended: DeviceQos) -> DeviceQos:
    """The state that a switch which does all that it can is read back as.

    - The MTU is the port's; there is none by class.
    - A queue's share is its weight, 1 to 100; a strict queue has none.
    - With ``alpha`` the threshold is a power of two times the free pool, from
      1/256 to 128, and what is held back for a priority is two frames.
    - The watchdog drops or forwards; it cannot shut a port down.
    - There is no 802.3x pause.
    """
    return dataclasses.replace(intended, ports=tuple(_port(port) for port in intended.ports))


def _port(port: PortQos) -> PortQos:
    found = {queue.traffic_class: queue for queue in port.queues}
    queues = tuple(
        found.get(number, Queue(number, Scheduler("ets", 0))) for number in range(PRIORITY_COUNT)
    )
    percents = shares(
        {q.traffic_class: q.scheduler.percent for q in queues if q.scheduler.mode == "ets"}
    )
    return dataclasses.replace(
        port,
        class_mtu_bytes=(port.mtu_bytes,) * PRIORITY_COUNT,
        link_pause=False,
        queues=tuple(_queue(queue, percents) for queue in queues),
        ingress_buffers=tuple(
            _buffer(buffer) for buffer in sorted(port.ingress_buffers, key=lambda b: b.priority)
        ),
        watchdog=_watchdog(port.watchdog),
        nic=None,
    )


def _queue(queue: Queue, percents: Mapping[int, int]) -> Queue:
    if queue.scheduler.mode == "strict":
        return dataclasses.replace(queue, scheduler=Scheduler("strict"))
    return dataclasses.replace(
        queue, scheduler=Scheduler("ets", percents.get(queue.traffic_class, 0))
    )


def shares(weights: Mapping[int, int]) -> dict[int, int]:
    """Percents that these weights give their queues, adding up to 100; 0 for weight 0.

    Weights that add up to 100 are percents. What rounding down leaves goes to the
    largest remainders.
    """
    total = sum(weights.values())
    if total == 0:
        return dict.fromkeys(weights, 0)
    exact = {queue: 100 * weight / total for queue, weight in weights.items()}
    found = {queue: math.floor(share) for queue, share in exact.items()}
    missing = 100 - sum(found.values())
    for queue in sorted(exact, key=lambda queue: (found[queue] - exact[queue], queue))[:missing]:
        found[queue] += 1
    return found


def _buffer(buffer: IngressBuffer) -> IngressBuffer:
    if buffer.alpha is None:
        return buffer
    exponent = min(max(round(math.log2(buffer.alpha)), MIN_DYNAMIC_TH), MAX_DYNAMIC_TH)
    headroom = buffer.size_bytes - buffer.xoff_bytes
    hysteresis = buffer.xoff_bytes - buffer.xon_bytes
    reserved = max(RESERVED_BYTES, hysteresis)
    return IngressBuffer(
        buffer.priority, reserved + headroom, reserved, reserved - hysteresis, 2.0**exponent
    )


def _watchdog(watchdog: Watchdog | None) -> Watchdog | None:
    if watchdog is None:
        return None
    return Watchdog(
        _within(watchdog.detect_ms, MIN_DETECT_MS, MAX_DETECT_MS),
        _within(watchdog.restore_ms, MIN_RESTORE_MS, MAX_RESTORE_MS),
        "forward" if watchdog.action == "forward" else "drop",
    )


def _within(value: int | None, low: int, high: int) -> int:
    """The value, or twice the shortest time where none is asked for."""
    return min(max(2 * low if value is None else value, low), high)


def require_expressible(intended: DeviceQos) -> None:
    """InputError where SONiC has no configuration for what is intended."""
    for port in intended.ports:
        where = f"{intended.device}:{port.name}"
        if port.trust != "dscp":
            raise _cannot(where, f"trust {port.trust}; PAISoar classifies by DSCP")
        if len({buffer.priority for buffer in port.ingress_buffers}) == PRIORITY_COUNT:
            raise _cannot(where, "leave no priority group to lossy traffic")


def _cannot(where: str, what: str) -> InputError:
    return InputError(
        f"{where}: PAISoar does not make SONiC {what}",
        advice="Change intent.classes.",
    )
