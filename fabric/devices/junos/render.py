"""From an intended state to the statements that the intent owns.

Forwarding class, queue and PFC priority have one number. ``docs/devices-junos.md``
lists every statement. Forms: Juniper, Traffic Management User Guide (QFX Series);
Apstra configlets for GPU fabrics (set and hierarchical form); JVD for AI data
centers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from fabric.devices.base import Target, TargetPort
from fabric.devices.junos.fit import (
    ETHERNET_HEADER_BYTES,
    POLL_MS,
    cable_length,
    fill_percents,
    fit,
    mru_of,
    require_expressible,
    threshold_of,
)
from fabric.devices.junos.statements import COS, PREFIX, Statement
from fabric.qos import DeviceQos, PortQos, Queue

DEFAULT_MTU = 1514
THRESHOLD = (
    *(COS, "shared-buffer", "ingress", "buffer-partition", "lossless"),
    "dynamic-threshold",
)


def class_name(number: int) -> str:
    """Name of the forwarding class of this priority."""
    return f"{PREFIX}Q{number}"


def intended_statements(target: Target, intended: DeviceQos) -> tuple[Statement, ...]:
    """Everything that the intent owns on this device.

    Lengths of cables come from the target: a port that it does not have gets none.
    Raises InputError for what Junos cannot express at all.
    """
    require_expressible(intended)
    state = fit(target, intended)
    if not state.ports:
        return ()
    renderer = _Renderer(target, state)
    return tuple(dict.fromkeys(renderer.statements()))


class _Renderer:
    def __init__(self, target: Target, state: DeviceQos) -> None:
        self._target = target
        self._state = state
        self._cabled: Mapping[str, TargetPort] = {port.name: port for port in target.ports}

    def statements(self) -> Iterator[Statement]:
        lossless = {p for port in self._state.ports for p in port.pfc_priorities}
        used = sorted({n for port in self._state.ports for n in _used(port)})
        for number in used:
            attributes = ("no-loss", "pfc-priority", str(number)) if number in lossless else ()
            head = (COS, "forwarding-classes", "class", class_name(number))
            yield (*head, "queue-num", str(number), *attributes)
        if any(port.ingress_buffers for port in self._state.ports):
            yield (*THRESHOLD, str(threshold_of(self._state)))
        for port in self._state.ports:
            yield from self._port(port)

    def _port(self, port: PortQos) -> Iterator[Statement]:
        mtu = port.mtu_bytes + ETHERNET_HEADER_BYTES
        if mtu != DEFAULT_MTU:
            yield ("interfaces", port.name, "mtu", str(mtu))
        if port.link_pause:
            yield ("interfaces", port.name, "ether-options", "flow-control")
        classifier, statements = _named(
            (COS, "classifiers", "dscp"), "DSCP", list(_classifier(port))
        )
        yield from statements
        here = (COS, "interfaces", port.name)
        yield (*here, "unit", "0", "classifiers", "dscp", classifier)
        scheduling, statements = self._scheduling(port)
        yield from statements
        yield (*here, "scheduler-map", scheduling)
        if port.pfc_priorities:
            profile, statements = _named(
                (COS, "congestion-notification-profile"), "PFC", list(self._pfc(port))
            )
            yield from statements
            yield (*here, "congestion-notification-profile", profile)

    def _pfc(self, port: PortQos) -> Iterator[Statement]:
        cabled = self._cabled.get(port.name)
        mru: Statement = ()
        if cabled is not None and port.ingress_buffers:
            headroom = port.ingress_buffers[0].size_bytes - port.ingress_buffers[0].xoff_bytes
            mru = ("mru", str(mru_of(cabled, headroom)))
            yield ("input", "cable-length", str(cable_length(cabled)))
        for dscp, priority in enumerate(port.dscp_to_priority):
            if priority in port.pfc_priorities:
                yield ("input", "dscp", "code-point", f"{dscp:06b}", "pfc", *mru)
        for priority in port.pfc_priorities:
            point = ("output", "ieee-802.1", "code-point", f"{priority:03b}")
            yield (*point, "flow-control-queue", str(priority))
        if port.watchdog is not None:
            polls = (port.watchdog.detect_ms or POLL_MS) // POLL_MS
            yield ("pfc-watchdog", "poll-interval", str(POLL_MS))
            yield ("pfc-watchdog", "detection", str(polls))
            yield ("pfc-watchdog", "recovery", str(port.watchdog.restore_ms))

    def _scheduling(self, port: PortQos) -> tuple[str, list[Statement]]:
        found: list[Statement] = []
        entries: list[Statement] = []
        for number in _used(port):
            queue = port.queue(number)
            assert queue is not None
            drop_profile, statements = self._drop_profile(queue)
            found += statements
            lines = list(_scheduler(queue, drop_profile))
            name, statements = _named((COS, "schedulers"), "S", lines)
            found += statements
            entries.append(("forwarding-class", class_name(number), "scheduler", name))
        name, statements = _named((COS, "scheduler-maps"), "MAP", entries)
        return name, [*found, *statements]

    def _drop_profile(self, queue: Queue) -> tuple[str, list[Statement]]:
        if queue.ecn is None:
            return "", []
        low, high = fill_percents(queue.ecn, self._target.model)
        lines: list[Statement] = [
            ("interpolate", "fill-level", str(low)),
            ("interpolate", "fill-level", str(high)),
            ("interpolate", "drop-probability", "0"),
            ("interpolate", "drop-probability", str(queue.ecn.pmax_percent)),
        ]
        return _named((COS, "drop-profiles"), "DP", lines)


def _used(port: PortQos) -> list[int]:
    """Priorities that traffic comes into, or that are served, on a port."""
    served = {
        queue.traffic_class
        for queue in port.queues
        if queue.ecn or queue.scheduler.percent or queue.scheduler.mode == "strict"
    }
    return sorted({*port.dscp_to_priority, *port.pfc_priorities, *served})


def _classifier(port: PortQos) -> Iterator[Statement]:
    for dscp, priority in enumerate(port.dscp_to_priority):
        head = ("forwarding-class", class_name(priority), "loss-priority", "low")
        yield (*head, "code-points", f"{dscp:06b}")


def _scheduler(queue: Queue, drop_profile: str) -> Iterator[Statement]:
    if queue.scheduler.mode == "strict":
        yield ("priority", "strict-high")
    else:
        yield ("priority", "low")
        if queue.scheduler.percent:
            yield ("transmit-rate", "percent", str(queue.scheduler.percent))
    if drop_profile:
        any_packet = ("loss-priority", "any", "protocol", "any")
        yield ("drop-profile-map", *any_packet, "drop-profile", drop_profile)
        yield ("explicit-congestion-notification",)


def _named(
    head: Statement, kind: str, children: Iterable[Statement]
) -> tuple[str, list[Statement]]:
    """An object whose name comes from what it holds, and its statements.

    It is never redefined under its name: what holds other statements has another
    name, and others may still use the old one.
    """
    rows = list(children)
    text = "\n".join(" ".join(row) for row in rows)
    name = f"{PREFIX}{kind}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    return name, [(*head, name, *row) for row in rows]
