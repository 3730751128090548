"""From a site and what its devices hold to the rows of the engine's arrays.

Only this module knows both ``DeviceQos`` and the engine's columns. It fills what
belongs to ports, queues, ingress buffers and switches; ``traffic`` fills what
belongs to queue pairs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fabric.errors import InputError
from fabric.headroom import PAUSE_QUANTUM_BITS, reaction_bytes
from fabric.qos import DSCP_COUNT, PRIORITY_COUNT, DeviceQos, PortQos, Queue
from fabric.reach.linkstate import down_ports
from fabric.sim.engine.layout import (
    ACTION_DROP,
    ACTION_FORWARD,
    ACTION_SHUTDOWN,
    ALL_CLASSES,
    BYTE_TIME_SHIFT,
    INGRESS_ACTION,
    INGRESS_ALPHA,
    INGRESS_CLASS,
    INGRESS_DETECT,
    INGRESS_MTU,
    INGRESS_PFC,
    INGRESS_RESTORE,
    INGRESS_SHARERS,
    INGRESS_SIZE,
    INGRESS_XOFF,
    INGRESS_XON,
    LINK_IS_DOWN,
    NODE_POOL,
    NONE,
    PORT_BYTE_TIME,
    PORT_CAPPED,
    PORT_CLASSES,
    PORT_DELAY,
    PORT_DISCARD,
    PORT_FLIGHT,
    PORT_LATENCY,
    PORT_MTU,
    PORT_NODE,
    PORT_NP_MASK,
    PORT_PAUSED,
    PORT_PEER,
    PORT_PRIORITY_OF_DSCP,
    PORT_QUANTUM,
    PORT_REACTION,
    PORT_REFUSE,
    PORT_STALL_LIMIT,
    PORT_STRICT,
    PORT_WEIGHTED,
    QUEUE_BYTE_TIME,
    QUEUE_COST,
    QUEUE_KMAX,
    QUEUE_KMIN,
    QUEUE_PMAX,
)
from fabric.sim.engine.memory import Arena
from fabric.sim.model import (
    CABLE_PS_PER_M,
    NIC_LATENCY_PS,
    NIC_LOSSY_BUFFER_BYTES,
    PS_PER_MS,
    PS_PER_S,
    STALL_LIMIT_PS,
    SWITCH_LATENCY_PS,
    WATCHDOG_DETECT_MS,
    WATCHDOG_RESTORE_MS,
)
from fabric.site import Site
from fabric.topology import PortRef, Topology

# Virtual time of one byte of a class with a share of 100 percent.
_ETS_UNIT = 1 << 10
_ACTIONS = {"drop": ACTION_DROP, "forward": ACTION_FORWARD, "shutdown": ACTION_SHUTDOWN}


@dataclass(frozen=True)
class Network:
    """Cabled ports in the engine's order, with what each of them does.

    ``down`` are the ports whose link is down, with the reason; ``routed`` is the site's
    topology without these links.
    """

    site: Site
    ports: tuple[PortRef, ...]
    index: dict[PortRef, int]
    qos: tuple[PortQos, ...]
    down: Mapping[PortRef, str] = field(default_factory=dict)

    @cached_property
    def routed(self) -> Topology:
        """What routing sees: only links that are up."""
        topology = self.site.topology
        if not self.down:
            return topology
        links = tuple(link for link in topology.links if link.a not in self.down)
        return dataclasses.replace(topology, links=links)

    def of(self, port: PortRef) -> PortQos:
        """What this port does."""
        return self.qos[self.index[port]]


def read_network(site: Site, states: Mapping[str, DeviceQos]) -> Network:
    """Every cabled port with its state.

    InputError names a device without a state, or a port that its state lacks.
    """
    topology = site.topology
    ports = tuple(
        port
        for device in (*topology.hosts, *topology.switches)
        for port in topology.ports_of[device]
    )
    qos = []
    for port in ports:
        state = states.get(port.device)
        if state is None:
            raise InputError(
                f"simulating {site.name}: nothing is known of {port.device}",
                advice="Read every device first (`paisoar plan`).",
            )
        found = state.port(port.port)
        if found is None:
            raise InputError(
                f"simulating {site.name}: {port.device} shows no port {port.port}, "
                "which fabric.yaml cables",
                advice="Compare its interface names with the cables in fabric.yaml.",
            )
        qos.append(found)
    index = {port: number for number, port in enumerate(ports)}
    return Network(site, ports, index, tuple(qos), down_ports(site.topology, states))


def fill_network(arena: Arena, network: Network) -> None:
    """Write ports, queues, ingress buffers and switches into the arrays."""
    switches = {name: arena.node(n) for n, name in enumerate(network.site.topology.switches)}
    for name, node in switches.items():
        arena.m[node + NODE_POOL] = network.site.switch(name).buffer
    for p, (port, qos) in enumerate(zip(network.ports, network.qos, strict=True)):
        node = switches.get(port.device, NONE)
        _fill_link(arena, network, p, node)
        _fill_classes(arena, p, qos)
        _fill_queues(arena, p, qos)
        _fill_buffers(arena, p, node, qos)
        _fill_watchdog(arena, p, qos)
        if node == NONE:
            _fill_nic(arena, p, qos)
        if port in network.down:
            row = arena.port_table()[p]
            row[PORT_REFUSE] |= LINK_IS_DOWN
            row[PORT_PAUSED] = row[PORT_DISCARD] = ALL_CLASSES


def pfc_of(qos: PortQos) -> tuple[int, ...]:
    """Priorities in which a port speaks PFC: none where it uses link pause (802.3x)."""
    return () if qos.link_pause else qos.pfc_priorities


def _fill_link(arena: Arena, network: Network, p: int, node: int) -> None:
    topology = network.site.topology
    port = network.ports[p]
    link = topology.link_of[port]
    byte_time = round((8 * PS_PER_S << BYTE_TIME_SHIFT) / link.speed_bps)
    peer = topology.peer(port)
    delay = round(link.length_m * CABLE_PS_PER_M)
    row = arena.port_table()[p]
    row[PORT_PEER] = arena.port(network.index[peer])
    row[PORT_NODE] = node
    row[PORT_BYTE_TIME] = byte_time
    row[PORT_DELAY] = delay
    row[PORT_FLIGHT] = delay + (NIC_LATENCY_PS if peer.device in topology.hosts else 0)
    row[PORT_LATENCY] = SWITCH_LATENCY_PS
    row[PORT_REACTION] = reaction_bytes(link.speed_bps) * byte_time >> BYTE_TIME_SHIFT
    row[PORT_QUANTUM] = round(PAUSE_QUANTUM_BITS * PS_PER_S / link.speed_bps)
    row[PORT_MTU] = network.qos[p].mtu_bytes


def _fill_classes(arena: Arena, p: int, qos: PortQos) -> None:
    at = PORT_PRIORITY_OF_DSCP
    row = arena.port_table()[p]
    row[at : at + DSCP_COUNT] = [qos.priority_of_dscp(dscp) for dscp in range(DSCP_COUNT)]
    row[PORT_CLASSES] = sum(c << 8 * priority for priority, c in enumerate(qos.priority_to_class))
    rows = arena.ingress_table()[p]
    rows[:, INGRESS_CLASS] = qos.priority_to_class
    rows[:, INGRESS_MTU] = qos.class_mtu_bytes
    for priority in pfc_of(qos):
        rows[priority, INGRESS_PFC] = 1
    for priority in range(PRIORITY_COUNT):
        same = (rows[:, INGRESS_CLASS] == rows[priority, INGRESS_CLASS]) & (
            rows[:, INGRESS_PFC] == 1
        )
        rows[priority, INGRESS_SHARERS] = int(np.sum(same << np.arange(PRIORITY_COUNT)))


def _fill_queues(arena: Arena, p: int, qos: PortQos) -> None:
    port, rows = arena.port(p), arena.queue_table()[p]
    rows[:, QUEUE_COST] = 100 * _ETS_UNIT
    for queue in qos.queues:
        row = rows[queue.traffic_class]
        bit = 1 << queue.traffic_class
        if queue.scheduler.mode == "strict":
            arena.m[port + PORT_STRICT] |= bit
        elif queue.scheduler.percent:
            arena.m[port + PORT_WEIGHTED] |= bit
            row[QUEUE_COST] = 100 * _ETS_UNIT // queue.scheduler.percent
        if queue.max_rate_bps:
            arena.m[port + PORT_CAPPED] |= bit
            row[QUEUE_BYTE_TIME] = round((8 * PS_PER_S << BYTE_TIME_SHIFT) / queue.max_rate_bps)
        _fill_ecn(row, queue)


def _fill_ecn(row: NDArray[np.int64], queue: Queue) -> None:
    if queue.ecn is not None:
        row[QUEUE_KMIN] = queue.ecn.kmin_bytes
        row[QUEUE_KMAX] = queue.ecn.kmax_bytes
        row[QUEUE_PMAX] = (queue.ecn.pmax_percent << 32) // 100


def _fill_buffers(arena: Arena, p: int, node: int, qos: PortQos) -> None:
    for buffer in qos.ingress_buffers:
        row = arena.ingress_table()[p, buffer.priority]
        row[INGRESS_SIZE] = buffer.size_bytes
        row[INGRESS_XOFF] = buffer.xoff_bytes
        row[INGRESS_XON] = buffer.xon_bytes
        if node == NONE:
            continue
        reserved = buffer.size_bytes
        if buffer.alpha is not None:
            row[INGRESS_ALPHA] = max(1, round(buffer.alpha * 1024))
            reserved -= buffer.xoff_bytes
        arena.m[node + NODE_POOL] = max(0, arena.m[node + NODE_POOL] - reserved)


def _fill_watchdog(arena: Arena, p: int, qos: PortQos) -> None:
    watchdog = qos.watchdog
    if watchdog is None:
        return
    for priority in pfc_of(qos):
        row = arena.ingress_table()[p, priority]
        row[INGRESS_DETECT] = (watchdog.detect_ms or WATCHDOG_DETECT_MS) * PS_PER_MS
        row[INGRESS_RESTORE] = (watchdog.restore_ms or WATCHDOG_RESTORE_MS) * PS_PER_MS
        row[INGRESS_ACTION] = _ACTIONS[watchdog.action]


def _fill_nic(arena: Arena, p: int, qos: PortQos) -> None:
    row = arena.port_table()[p]
    row[PORT_STALL_LIMIT] = STALL_LIMIT_PS
    for ingress in arena.ingress_table()[p]:
        if ingress[INGRESS_SIZE] == 0:
            ingress[INGRESS_SIZE] = ingress[INGRESS_XOFF] = NIC_LOSSY_BUFFER_BYTES
    if qos.nic is not None and qos.nic.dcqcn is not None:
        notified = set(qos.nic.dcqcn.np_priorities)
        row[PORT_NP_MASK] = sum(1 << priority for priority in notified)
