"""What a QFX switch can express of an intended state, and in which numbers.

ECN thresholds are percentages of what a queue may hold, so that they depend on the
model. Sources: "QFX5K-Series Switches Packet Buffer Architecture" (Juniper
community, 2025: shared buffers, alphas and their hardware values); Juniper CLI
reference (congestion-notification-profile, ``pfc-watchdog``, ``cable-length``).
"""

from __future__ import annotations

import dataclasses
import math

from fabric.devices.base import Target, TargetPort
from fabric.devices.expressible import Limits
from fabric.headroom import headroom_bytes
from fabric.qos import (
    PRIORITY_COUNT,
    DeviceQos,
    Ecn,
    IngressBuffer,
    PortQos,
    Queue,
    Scheduler,
    Watchdog,
)

# ``mtu`` counts the Ethernet header: QFX switches take 9216 with it.
ETHERNET_HEADER_BYTES = 14
MAX_MTU = 9216
MAX_MRU = 9216
MIN_MRU = 256

# dynamic-threshold -> share of the free buffer.
ALPHAS = {0: 1 / 128, 1: 1 / 64, 2: 1 / 32, 3: 1 / 16, 4: 1 / 8, 5: 1 / 4, 6: 1 / 2}
ALPHAS |= {7: 1.0, 8: 2.0, 9: 4.0, 10: 8.0}
# The share where the intent has none; Junos's own is 1.
OUR_THRESHOLD = 4
DEFAULT_THRESHOLD = 7

# Egress lossless buffer in KB. A lossless queue has an alpha of 8: alone in its
# pool it may hold 8/9 of it.
_LOSSLESS_KB = {
    "QFX5100": 4368,
    "QFX5110": 5616,
    "QFX5120": 13698,
    "QFX5130": 22252,
    "QFX5200": 5616,
    "QFX5210": 14040,
    "QFX5220": 8884,
    "QFX5230": 14948,
    "QFX5240": 16841,
}
_DEFAULT_MODEL = "QFX5120"
_EGRESS_ALPHA = 8

POLL_MS = 100
MAX_POLLS = 100
DEFAULT_POLLS = 2
DEFAULT_RECOVERY_MS = 200
LIMITS = Limits("Junos", "Change intent.classes so that all ports of a switch do the same.")


def queue_bytes(model: str) -> int:
    """The most that a lossless queue of this model can hold: 100 % of a fill level."""
    name = next((known for known in _LOSSLESS_KB if model.upper().startswith(known)), "")
    pool = _LOSSLESS_KB[name or _DEFAULT_MODEL] * 1024
    return pool * _EGRESS_ALPHA // (_EGRESS_ALPHA + 1)


def fill_percents(ecn: Ecn, model: str) -> tuple[int, int]:
    """Kmin and Kmax as whole percentages of the queue, Kmax above Kmin."""
    whole = queue_bytes(model)
    low = min(max(round(100 * ecn.kmin_bytes / whole), 1), 99)
    high = min(max(round(100 * ecn.kmax_bytes / whole), low + 1), 100)
    return low, high


def ecn_of_percents(low: int, high: int, percent: int, model: str) -> Ecn:
    """The inverse of :func:`fill_percents`."""
    whole = queue_bytes(model)
    return Ecn(whole * low // 100, whole * high // 100, percent)


def cable_length(port: TargetPort) -> int:
    """Whole metres that are configured for a port's cable."""
    return max(1, math.ceil(port.cable_m))


def headroom_of(port: TargetPort, cable_m: int, mru: int) -> int:
    """Headroom that a port with this cable length and MRU is taken to have.

    Junos computes it and shows it nowhere; this is our own formula, with the
    cable's exact length where the configured one is that, rounded up.
    """
    length = port.cable_m if cable_m == cable_length(port) else float(cable_m)
    return headroom_bytes(port.speed_bps, length, mru)


def mru_of(port: TargetPort, headroom: int) -> int:
    """The MRU with which a port comes nearest to this headroom."""
    rest = headroom_bytes(port.speed_bps, port.cable_m, 0)
    return min(max((headroom - rest) // 2, MIN_MRU), MAX_MRU)


def threshold_of(intended: DeviceQos) -> int:
    """The ``dynamic-threshold`` of all lossless priorities of a switch."""
    buffers = [buffer for port in intended.ports for buffer in port.ingress_buffers]
    asked = [buffer.alpha for buffer in buffers if buffer.alpha is not None]
    if not asked:
        return OUR_THRESHOLD
    return min(ALPHAS, key=lambda number: abs(math.log2(ALPHAS[number] / max(asked))))


def fit(target: Target, intended: DeviceQos) -> DeviceQos:
    """The state that this switch, doing all that it can, is read back as.

    - The MTU is 9202 at most (9216 with the Ethernet header), for every class.
    - ECN thresholds are whole percentages of what a queue may hold.
    - XOFF is a share of the free buffer, one for the switch; the headroom follows
      from cable length and MRU of each port.
    - The watchdog polls every 100 ms, drops, and needs PFC on its port.
    - Every port has eight queues; a strict one has no share.
    """
    alpha = ALPHAS[threshold_of(intended)]
    known = {port.name: port for port in target.ports}
    ports = tuple(_port(port, known.get(port.name), alpha, target.model) for port in intended.ports)
    return dataclasses.replace(intended, ports=ports)


def _port(port: PortQos, cabled: TargetPort | None, alpha: float, model: str) -> PortQos:
    mtu = min(port.mtu_bytes, MAX_MTU - ETHERNET_HEADER_BYTES)
    return dataclasses.replace(
        port,
        mtu_bytes=mtu,
        class_mtu_bytes=(mtu,) * PRIORITY_COUNT,
        queues=tuple(_queue(port, number, model) for number in range(PRIORITY_COUNT)),
        ingress_buffers=_buffers(port, cabled, alpha),
        watchdog=_watchdog(port),
        nic=None,
    )


def _buffers(port: PortQos, cabled: TargetPort | None, alpha: float) -> tuple[IngressBuffer, ...]:
    """One headroom for all lossless priorities of a port: the largest that is asked for."""
    asked = [buffer.size_bytes - buffer.xoff_bytes for buffer in port.ingress_buffers]
    if cabled is None or not asked:
        return ()
    size = headroom_of(cabled, cable_length(cabled), mru_of(cabled, max(asked)))
    return tuple(IngressBuffer(p, size, 0, 0, alpha) for p in port.pfc_priorities)


def _queue(port: PortQos, number: int, model: str) -> Queue:
    queue = port.queue(number) or Queue(number, Scheduler("ets", 0))
    scheduler = queue.scheduler if queue.scheduler.mode == "ets" else Scheduler("strict")
    ecn = queue.ecn
    if ecn is not None:
        ecn = ecn_of_percents(*fill_percents(ecn, model), ecn.pmax_percent, model)
    return Queue(number, scheduler, ecn)


def _watchdog(port: PortQos) -> Watchdog | None:
    if port.watchdog is None or not port.pfc_priorities:
        return None
    polls = -(-(port.watchdog.detect_ms or POLL_MS * DEFAULT_POLLS) // POLL_MS)
    detect_ms = POLL_MS * min(max(polls, 1), MAX_POLLS)
    return Watchdog(detect_ms, port.watchdog.restore_ms or DEFAULT_RECOVERY_MS, "drop")


def require_expressible(intended: DeviceQos) -> None:
    """InputError where Junos has no configuration for what is intended."""
    LIMITS.require_ports(intended, one_queue=True)
    for port in intended.ports:
        if not set(port.pfc_priorities) <= set(port.dscp_to_priority):
            where = f"{intended.device}:{port.name}"
            raise LIMITS.cannot(where, "pause a priority that no DSCP is put into")
    if len({port.pfc_priorities for port in intended.ports if port.pfc_priorities}) > 1:
        raise LIMITS.cannot(intended.device, "pause other priorities on other ports")
