"""PFC deadlocks: ports that pause each other in a circle, for ever.

An egress port that is paused waits for the switch at its other end to drain the
ingress that paused it; what that ingress holds waits in egress queues, which may
be paused too. Where such a chain closes, and each ingress holds at least its XON
threshold in queues of the chain, none can ever send XON (cyclic buffer dependency:
Hu et al., HotNets 2016, "Deadlocks in Datacenter Networks: Why Do They Form, and
How to Avoid Them"). What is found here is such a set: the largest one in which
every port waits for another of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fabric.qos import PRIORITY_COUNT
from fabric.sim.engine.layout import (
    FRAME_BYTES,
    INGRESS_ALPHA,
    INGRESS_CLASS,
    INGRESS_HEADROOM_USED,
    INGRESS_PAUSED_UNTIL,
    INGRESS_PAUSING,
    INGRESS_STUCK_SINCE,
    INGRESS_WORDS,
    INGRESS_XON,
    NONE,
    PACKET_AT,
    PACKET_IP,
    PACKET_NEXT,
    PORT_INGRESSES,
    PORT_PEER,
    PS_PER_US,
    QUEUE_HEAD,
)
from fabric.sim.engine.memory import Arena
from fabric.sim.network import Network
from fabric.topology import PortRef


@dataclass(frozen=True, slots=True)
class Deadlock:
    """Egress ports, each waiting for the next and the last for the first, in one priority.

    ``since_us`` is when the last of their pauses began.
    """

    priority: int
    ports: tuple[PortRef, ...]
    since_us: float

    def __str__(self) -> str:
        chain = " waits for ".join(str(port) for port in (*self.ports, self.ports[0]))
        return f"PFC deadlock in priority {self.priority} since {self.since_us:.0f} us: {chain}"


def find_deadlocks(arena: Arena, network: Network) -> tuple[Deadlock, ...]:
    """The deadlocks that hold now, one for each circle of ports."""
    found: list[Deadlock] = []
    for priority in range(PRIORITY_COUNT):
        stuck = _stuck(arena, network, priority)
        for circle in _circles(stuck):
            since = max(
                int(arena.m[_ingress(arena, p, priority) + INGRESS_STUCK_SINCE]) for p in circle
            )
            ports = tuple(network.ports[p] for p in circle)
            found.append(Deadlock(priority, ports, since / PS_PER_US))
    return tuple(found)


def _ingress(arena: Arena, p: int, priority: int) -> int:
    return arena.port(p) + PORT_INGRESSES + INGRESS_WORDS * priority


def _stuck(arena: Arena, network: Network, priority: int) -> dict[int, tuple[int, ...]]:
    """Switch ports that can never send again, each with those that it waits for."""
    m = arena.m
    switches = frozenset(network.site.topology.switches)
    handles = {arena.port(p): p for p in range(len(network.ports))}
    paused: dict[int, int] = {}
    for p, port in enumerate(network.ports):
        if port.device in switches and m[_ingress(arena, p, priority) + INGRESS_PAUSED_UNTIL]:
            pauser = _ingress(arena, handles[int(m[arena.port(p) + PORT_PEER])], priority)
            if m[pauser + INGRESS_PAUSING]:
                paused[p] = pauser
    held = {p: _held(arena, p, priority) for p in paused}
    while True:
        waits = {p: tuple(q for q in paused if held[q].get(pauser)) for p, pauser in paused.items()}
        free = [
            p
            for p, pauser in paused.items()
            if sum(held[q][pauser] for q in waits[p]) < _enough(arena, pauser)
        ]
        if not free:
            return waits
        for p in free:
            del paused[p], held[p]


def _held(arena: Arena, p: int, priority: int) -> dict[int, int]:
    """Bytes that wait in a port's queue, by the ingress that they count against."""
    m = arena.m
    traffic_class = int(m[_ingress(arena, p, priority) + INGRESS_CLASS])
    held: defaultdict[int, int] = defaultdict(int)
    k = int(arena.queue_table()[p, traffic_class, QUEUE_HEAD])
    while k != NONE:
        held[int(m[k + PACKET_AT])] += int(m[k + PACKET_IP]) + FRAME_BYTES
        k = int(m[k + PACKET_NEXT])
    return held


def _enough(arena: Arena, ingress: int) -> int:
    """Bytes with which an ingress goes on pausing, whatever else leaves."""
    m = arena.m
    if m[ingress + INGRESS_ALPHA]:
        return max(1, int(m[ingress + INGRESS_HEADROOM_USED]))
    return max(1, int(m[ingress + INGRESS_XON]))


def _circles(waits: dict[int, tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """One circle for each set of ports that all lead to each other."""
    done: set[int] = set()
    for start in waits:
        if start in done:
            continue
        circle = _circle_from(start, waits)
        if circle and not done.intersection(circle):
            yield circle
        done.update(_reached(start, waits))


def _circle_from(start: int, waits: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
    """Follow the first port that each waits for until one comes again."""
    order: dict[int, int] = {}
    at = start
    while at not in order:
        order[at] = len(order)
        at = waits[at][0]
    return tuple(p for p, number in order.items() if number >= order[at])


def _reached(start: int, waits: dict[int, tuple[int, ...]]) -> Iterable[int]:
    reached, todo = {start}, [start]
    while todo:
        for following in waits[todo.pop()]:
            if following not in reached:
                reached.add(following)
                todo.append(following)
    return reached
