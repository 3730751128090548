"""What breaks while a simulation runs: checked, and turned into the engine's events."""

from __future__ import annotations

from collections.abc import Sequence

from fabric.errors import InputError
from fabric.qos import PRIORITY_COUNT
from fabric.sim.api import Fault, LinkDown, PauseStorm, SlowReceiver
from fabric.sim.engine.layout import (
    BYTE_TIME_SHIFT,
    EVENT_LINK_DOWN,
    EVENT_LINK_UP,
    EVENT_STORM,
    EVENT_STORM_END,
    INGRESS_WORDS,
    PORT_INGRESSES,
    PORT_RX_BYTE_TIME,
    PS_PER_US,
)
from fabric.sim.engine.memory import Arena
from fabric.sim.model import PS_PER_S
from fabric.sim.network import Network

Event = tuple[int, int, int]


def check_faults(network: Network, faults: Sequence[Fault]) -> None:
    """InputError for a fault that cannot be simulated; it names the fault."""
    hosts = frozenset(network.site.topology.hosts)
    for fault in faults:
        where = f"{type(fault).__name__} at {fault.port}"
        if fault.port not in network.index:
            raise InputError(f"{where}: it is no cabled port of this site")
        if not isinstance(fault, LinkDown) and fault.port.device not in hosts:
            raise InputError(f"{where}: only a host's NIC does that")
        if isinstance(fault, SlowReceiver):
            if fault.rate_bps <= 0:
                raise InputError(f"{where}: rate_bps ({fault.rate_bps:g}) must be above 0")
            continue
        start, end = _times(fault)
        if start < 0 or (end is not None and end <= start):
            raise InputError(f"{where}: it must start at 0 us or later, and end after that")
        if isinstance(fault, PauseStorm) and not 0 <= fault.priority < PRIORITY_COUNT:
            raise InputError(f"{where}: priority {fault.priority} is not in 0..7")


def first_events(arena: Arena, network: Network, faults: Sequence[Fault]) -> list[Event]:
    """Slow the slow receivers down, and give the other faults' events."""
    events: list[Event] = []
    for fault in faults:
        port = arena.port(network.index[fault.port])
        if isinstance(fault, SlowReceiver):
            byte_time = round((8 * PS_PER_S << BYTE_TIME_SHIFT) / fault.rate_bps)
            arena.m[port + PORT_RX_BYTE_TIME] = byte_time
            continue
        handle, kinds = port, (EVENT_LINK_DOWN, EVENT_LINK_UP)
        if isinstance(fault, PauseStorm):
            handle += PORT_INGRESSES + INGRESS_WORDS * fault.priority
            kinds = EVENT_STORM, EVENT_STORM_END
        for time, kind in zip(_times(fault), kinds, strict=True):
            if time is not None:
                events.append((round(time * PS_PER_US), kind, handle))
    return events


def _times(fault: PauseStorm | LinkDown) -> tuple[float, float | None]:
    if isinstance(fault, PauseStorm):
        return fault.start_us, fault.end_us
    return fault.down_us, fault.up_us
