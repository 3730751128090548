"""What one port holds, setting by setting: what is read, and what is to be reached.

Both are one type, so that the way there and the way back are the same function.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

from fabric.devices.switchdev.red import Red, of_ecn
from fabric.qos import DSCP_COUNT, PRIORITY_COUNT, PortQos, Queue, Scheduler

# Ours where a port has no scheduler yet; its RED qdiscs are e751: to e758:.
HANDLE = "e75"
# Bytes of a turn for each percent. A prime: others' quanta are not taken for ours.
PERCENT_BYTES = 1021
# The least quantum that Linux 6.1 keeps: a smaller one becomes this.
LEAST_QUANTUM_BYTES = 256
PRIOMAP_LENGTH = 16
# Preferences of our ingress filters, DSCP by DSCP. A preference has one protocol.
PREFS = {"ip": 49_000, "ipv6": 49_100}


@dataclass(frozen=True, slots=True)
class Ets:
    """An ETS qdisc. Band 0 is served first; ``quanta_bytes`` are of the bands behind ``strict``."""

    handle: str
    strict: int
    quanta_bytes: tuple[int, ...]
    priomap: tuple[int, ...]

    @property
    def bands(self) -> int:
        """How many bands it has."""
        return self.strict + len(self.quanta_bytes)

    @property
    def arguments(self) -> str:
        """What follows ``ets`` on ``tc``'s command line."""
        words = ["bands", self.bands, "strict", self.strict]
        if self.quanta_bytes:
            words += ["quanta", *self.quanta_bytes]
        return " ".join(map(str, [*words, "priomap", *self.priomap]))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a port's scheduler is or goes.

    ``vacate`` is what puts back a place that held none. ``blocked`` names what must
    not be replaced, since nobody could put it back.
    """

    where: str
    vacate: str
    blocked: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """Settings of one port; a mapping without an entry leaves the system's own value.

    ``filters`` are ours only: preference -> DSCP and priority. ``app`` is the DSCP
    part of the DCB APP table. ``thresholds`` are a pool's number and threshold by
    priority group.
    """

    mtu_bytes: int
    ets: Ets | None = None
    reds: Mapping[int, Red] = field(default_factory=dict)
    ingress_hook: bool = False
    filters: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    app: Mapping[int, frozenset[int]] = field(default_factory=dict)
    pfc: tuple[int, ...] = ()
    pause: bool = False
    prio_buffer: tuple[int, ...] = ()
    buffer_bytes: tuple[int, ...] = ()
    thresholds: Mapping[int, tuple[int, int]] = field(default_factory=dict)


def band_of(traffic_class: int) -> int:
    """The band of a traffic class: the highest class comes first, as mlxsw has it."""
    return PRIORITY_COUNT - 1 - traffic_class


def wanted(port: PortQos, held: Held, *, hardware: bool) -> Held:
    """The settings of a port that does what is intended; what is not ours stays.

    ``port`` is as ``normalise`` gives it.
    """
    ets = _ets(port, held.ets)
    reds = {}
    for queue in port.queues:
        band = band_of(queue.traffic_class)
        if queue.ecn is not None:
            now = held.reds.get(band)
            red = of_ecn(queue.ecn, now.handle if now else f"{HANDLE}{band + 1}")
            reds[band] = now if now is not None and now.same_as(red) else red
    common = dataclasses.replace(held, mtu_bytes=port.mtu_bytes, ets=ets, reds=reds)
    return _in_hardware(port, common) if hardware else _in_software(port, common)


def _ets(port: PortQos, held: Ets | None) -> Ets:
    strict = sum(queue.scheduler.mode == "strict" for queue in port.queues)
    shared = sorted((q for q in port.queues if q.scheduler.mode == "ets"), key=_by_band)
    quanta = tuple(quantum_bytes(queue.scheduler.percent) for queue in shared)
    named = tuple(band_of(traffic_class) for traffic_class in port.priority_to_class)
    # Linux has 16 priorities; those that no frame has go to the last band, as tc does it.
    last = (band_of(0),) * (PRIOMAP_LENGTH - PRIORITY_COUNT)
    return Ets(held.handle if held else HANDLE, strict, quanta, named + last)


def _by_band(queue: Queue) -> int:
    return band_of(queue.traffic_class)


def _in_software(port: PortQos, held: Held) -> Held:
    filters = {
        first + dscp: (dscp, priority)
        for first in PREFS.values()
        for dscp, priority in enumerate(port.dscp_to_priority)
        if priority
    }
    hook = held.ingress_hook or bool(filters)
    return dataclasses.replace(held, filters=filters, ingress_hook=hook)


def _in_hardware(port: PortQos, held: Held) -> Held:
    sizes = list(held.buffer_bytes or (0,) * PRIORITY_COUNT)
    prio_buffer = [0] * PRIORITY_COUNT
    thresholds = dict(held.thresholds)
    for buffer in port.ingress_buffers:
        prio_buffer[buffer.priority] = buffer.priority
        sizes[buffer.priority] = buffer.size_bytes
        pool = thresholds.get(buffer.priority, (0, 0))[0]
        thresholds[buffer.priority] = (pool, threshold_of(buffer.alpha))
    return dataclasses.replace(
        held,
        app={d: frozenset({p}) for d, p in enumerate(port.dscp_to_priority)},
        pfc=port.pfc_priorities,
        pause=port.link_pause,
        prio_buffer=tuple(prio_buffer),
        buffer_bytes=tuple(sizes),
        thresholds=thresholds,
    )


def quantum_bytes(percent: int) -> int:
    """Bytes of a turn of a queue with this share."""
    return percent * PERCENT_BYTES or LEAST_QUANTUM_BYTES


def shares(quanta: tuple[int, ...]) -> tuple[int, ...]:
    """Percentages of these quanta: as we wrote them, or else by proportion."""
    if all(q % PERCENT_BYTES == 0 or q == LEAST_QUANTUM_BYTES for q in quanta):
        return tuple(quantum // PERCENT_BYTES for quantum in quanta)
    return tuple(round(100 * quantum / sum(quanta)) for quantum in quanta)


# Dynamic thresholds of mlxsw: 3 to 16, alpha = 2^(threshold - 10). mlxsw wiki,
# "Quality of Service", Shared Buffers.
THRESHOLDS = range(3, 17)
_ONE = 10
OUR_THRESHOLD = 7


def threshold_of(alpha: float | None) -> int:
    """Devlink's threshold for a share of the free buffer; ours where none is asked for."""
    if alpha is None:
        return OUR_THRESHOLD
    return min(THRESHOLDS, key=lambda threshold: abs(alpha_of(threshold) / alpha - 1))


def alpha_of(threshold: int) -> float:
    """The share of the free buffer that devlink's threshold stands for."""
    return float(2.0 ** (threshold - _ONE))


def queues(held: Held) -> tuple[Queue, ...]:
    """The eight queues of a port with an ETS scheduler; what has no band has no share."""
    ets = held.ets
    assert ets is not None
    percents = shares(ets.quanta_bytes)
    found = []
    for traffic_class in range(PRIORITY_COUNT):
        band = band_of(traffic_class)
        scheduler = Scheduler("ets", 0)
        if band < ets.strict:
            scheduler = Scheduler("strict")
        elif band < ets.bands:
            scheduler = Scheduler("ets", percents[band - ets.strict])
        red = held.reds.get(band)
        found.append(Queue(traffic_class, scheduler, red.ecn if red else None))
    return tuple(found)


def classes(ets: Ets) -> tuple[int, ...]:
    """Traffic class of each priority; those that are not named go to the last band."""
    padded = (*ets.priomap, *((ets.bands - 1,) * PRIORITY_COUNT))
    return tuple(max(band_of(band), 0) for band in padded[:PRIORITY_COUNT])


def dscp_priorities(table: Mapping[int, int], default: int = 0) -> tuple[int, ...]:
    """Priority of each DSCP, for those that a table does not name the default."""
    return tuple(table.get(dscp, default) for dscp in range(DSCP_COUNT))
