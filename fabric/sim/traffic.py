"""From flows to the engine's queue pairs: class, rate control, messages, route.

A RoCE sender marks its packets with what its NIC is set to
(``Nic.verbs_traffic_class``), else with what the application sets (``Flow.tos``): a NIC
that lost its settings sends DSCP 0 without ECT where applications leave that to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabric.errors import InputError
from fabric.qos import DSCP_COUNT, Dcqcn, PortQos
from fabric.sim import tcp
from fabric.sim.api import Fault, Flow
from fabric.sim.ecmp import Router
from fabric.sim.engine.layout import (
    CLAMP_AFTER_TIME,
    CLAMP_ALWAYS,
    EVENT_POST,
    NEVER,
    PING,
    PONG,
    PORT_QP_COUNT,
    PORT_QP_FIRST,
    PORT_WORDS,
    PS_PER_US,
    QP_ACK_PRIORITY,
    QP_ACK_TOS,
    QP_CLASS,
    QP_CNP_INTERVAL,
    QP_CNP_PRIORITY,
    QP_CNP_TOS,
    QP_DEPTH,
    QP_FIRST_EXTRA,
    QP_FLOW,
    QP_GAP,
    QP_LAST_CNP,
    QP_LAST_PAYLOAD,
    QP_LEFT,
    QP_MODE,
    QP_PARTNER,
    QP_PAYLOAD,
    QP_PER_MESSAGE,
    QP_PRIORITY,
    QP_ROUTE,
    QP_ROUTE_BACK,
    QP_SOURCE,
    QP_STEP,
    QP_TARGET,
    QP_TOS,
    RATE_AI,
    RATE_ALPHA_START,
    RATE_FIRST,
    RATE_GD,
    RATE_HAI,
    RATE_KEEP,
    RATE_LEAST,
    RATE_LINE,
    RATE_MIN,
    RATE_NOW,
    RATE_TARGET,
    RP_ALPHA_INTERVAL,
    RP_BYTE_RESET,
    RP_CLAMPS,
    RP_CUT_INTERVAL,
    RP_ENABLED,
    RP_PACED,
    RP_STAGES,
    RP_TIMER,
    STREAM,
)
from fabric.sim.engine.memory import Arena
from fabric.sim.faults import first_events
from fabric.sim.model import RETH_BYTES, STREAM_DEPTH, roce_mtu
from fabric.sim.network import Network
from fabric.topology import PortRef

_ENDLESS = 1 << 30

Row = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class QueuePair:
    """One direction of one queue pair of a flow; a ping has one for each direction."""

    flow: int
    number: int
    source: PortRef
    target: PortRef
    mode: int


def check_flows(network: Network, flows: Sequence[Flow]) -> None:
    """InputError for a flow that cannot be simulated; it names the flow."""
    for number, flow in enumerate(flows):
        where = f"flow {number} ({flow.source} to {flow.target})"
        for end in (flow.source, flow.target):
            if end not in network.index or end.device not in network.site.topology.hosts:
                raise InputError(f"{where}: {end} is no cabled NIC of this site")
        if flow.source == flow.target:
            raise InputError(f"{where}: it ends where it starts")
        if not 0 <= flow.dscp < DSCP_COUNT:
            raise InputError(f"{where}: DSCP {flow.dscp} is not in 0..{DSCP_COUNT - 1}")
        if min(flow.message_bytes, flow.qps, 1 if flow.messages is None else flow.messages) < 1:
            raise InputError(f"{where}: message_bytes, messages and qps start from 1")
        if min(flow.start_us, flow.gap_us) < 0:
            raise InputError(f"{where}: start_us and gap_us cannot be negative")
        if flow.transport != "rdma" and flow.kind == "ping":
            raise InputError(f"{where}: a ping is RDMA; TCP flows are streams")
        if flow.path is not None:
            _check_path(network, where, flow, flow.path)


def _check_path(network: Network, where: str, flow: Flow, path: Sequence[PortRef]) -> None:
    topology = network.site.topology
    if not path or path[0] != flow.source:
        raise InputError(f"{where}: its path must start with {flow.source}")
    at = topology.peer(flow.source)
    seen = {flow.source.device}
    for egress in path[1:]:
        if egress.device != at.device or egress not in network.index:
            raise InputError(f"{where}: its path goes on at {egress}, but leads to {at.device}")
        if at.device in seen or at.device in topology.hosts:
            raise InputError(f"{where}: its path cannot pass through {at.device} here")
        seen.add(at.device)
        at = topology.peer(egress)
    if at != flow.target:
        raise InputError(f"{where}: its path ends at {at}")


def queue_pairs(network: Network, flows: Sequence[Flow]) -> tuple[QueuePair, ...]:
    """The queue pairs of these flows, grouped by sending port as the engine wants them."""
    pairs = [pair for number, flow in enumerate(flows) for pair in _pairs(number, flow)]
    return tuple(sorted(pairs, key=lambda pair: network.index[pair.source]))


def _pairs(number: int, flow: Flow) -> Iterator[QueuePair]:
    for qp in range(flow.qps):
        if flow.kind == "ping":
            yield QueuePair(number, qp, flow.source, flow.target, PING)
            yield QueuePair(number, qp, flow.target, flow.source, PONG)
        else:
            yield QueuePair(number, qp, flow.source, flow.target, STREAM)


def lay_routes(
    network: Network, flows: Sequence[Flow], pairs: Sequence[QueuePair], seed: int
) -> tuple[list[int], list[tuple[int, int] | None]]:
    """All paths in one list, and where each pair's way out and way back start in it.

    None for a pair whose every path has a link that is down: it sends nothing.
    InputError where two ports have no path between them at all.
    """
    router = Router(network.routed, seed)
    cabled = Router(network.site.topology, seed)
    route: list[int] = []
    starts: list[tuple[int, int] | None] = []
    for pair in pairs:
        both: list[int] = []
        pinned = flows[pair.flow].path
        if pinned is not None and not network.down.keys().isdisjoint(pinned):
            starts.append(None)
            continue
        for source, target in ((pair.source, pair.target), (pair.target, pair.source)):
            path = router.path(source, target, pair.number) if pinned is None else pinned[1:]
            if path is None:
                if cabled.path(source, target, pair.number) is None:
                    raise InputError(f"flow {pair.flow}: no path leads from {source} to {target}")
                break
            if pinned is not None and source != pinned[0]:
                path = tuple(router.topology.peer(port) for port in reversed(pinned[:-1]))
            both.append(len(route))
            route.extend(network.index[port] for port in path)
        starts.append((both[0], both[1]) if len(both) == len(("out", "back")) else None)
    return route, starts


def dead_flows(
    network: Network,
    flows: Sequence[Flow],
    pairs: Sequence[QueuePair],
    starts: Sequence[tuple[int, int] | None],
) -> tuple[str, ...]:
    """For people: which flows send nothing because links are down, and which links."""
    if not network.down:
        return ()
    of_reason: dict[str, dict[str, None]] = {}
    for pair, start in zip(pairs, starts, strict=True):
        if start is None:
            flow = flows[pair.flow]
            why = network.down.get(flow.source) or network.down.get(flow.target)
            why = why or ", ".join(dict.fromkeys(network.down.values()))
            of_reason.setdefault(why, {})[f"{flow.source} to {flow.target}"] = None
    return tuple(
        f"{why}: nothing passes from {next(iter(ways))}"
        + (f" and on {len(ways) - 1} more ways" if len(ways) > 1 else "")
        for why, ways in of_reason.items()
    )


def fill_traffic(
    arena: Arena,
    network: Network,
    flows: Sequence[Flow],
    pairs: Sequence[QueuePair],
    route: Sequence[int],
    starts: Sequence[tuple[int, int] | None],
    faults: Sequence[Fault] = (),
) -> None:
    """Write routes and queue pairs into the arena; schedule first messages and faults.

    ``route`` and ``starts`` are those of :func:`lay_routes`.
    """
    arena.m[arena.routes : arena.routes + len(route)] = arena.port(0) + PORT_WORDS * np.array(
        route, dtype=np.int64
    )
    rows = {(pair.flow, pair.number, pair.mode): q for q, pair in enumerate(pairs)}
    qps = arena.qp_table()
    posts = first_events(arena, network, faults)
    for q, pair in enumerate(pairs):
        flow = flows[pair.flow]
        source, target = (arena.port(network.index[p]) for p in (pair.source, pair.target))
        if arena.m[source + PORT_QP_COUNT] == 0:
            arena.m[source + PORT_QP_FIRST] = arena.qp(q)
        arena.m[source + PORT_QP_COUNT] += 1
        row = qps[q]
        row[QP_SOURCE], row[QP_TARGET] = source, target
        row[QP_FLOW], row[QP_MODE] = arena.flow(pair.flow), pair.mode
        way = starts[q]
        if way is not None:
            row[QP_ROUTE], row[QP_ROUTE_BACK] = (arena.routes + start for start in way)
        if pair.mode != STREAM:
            other = PONG if pair.mode == PING else PING
            row[QP_PARTNER] = arena.qp(rows[pair.flow, pair.number, other])
        if flow.transport == "rdma":
            asked = flow.tos, flow.tos_back
            ends = network.of(pair.source), network.of(pair.target)
            _fill_marking(row, *ends, asked if pair.mode != PONG else asked[::-1])
            _fill_rdma_messages(row, flow, network)
            _fill_rate_control(row, network, pair.source)
        else:
            tcp.fill_connection(arena, row, flow, network)
            _fill_messages(row, flow, tcp.segment_bytes(flow, network))
        if pair.mode != PONG and way is not None:
            posts.append((round(flow.start_us * PS_PER_US), EVENT_POST, arena.qp(q)))
    arena.schedule(posts)


def sender_tos(port: PortQos, asked: int | None = None) -> int:
    """The TOS byte of RDMA packets from this NIC: its own, else what the application asks."""
    own = port.nic.verbs_traffic_class if port.nic else None
    return own if own is not None else asked or 0


def _fill_marking(
    row: Row, source: PortQos, target: PortQos, asked: tuple[int | None, int | None]
) -> None:
    tos = sender_tos(source, asked[0])
    priority = source.priority_of_dscp(tos >> 2)
    row[QP_TOS], row[QP_PRIORITY] = tos, priority
    row[QP_CLASS] = source.priority_to_class[priority]
    # An ACK has the class that its own sender is set to; it is never ECT.
    dscp = sender_tos(target, asked[1]) >> 2
    row[QP_ACK_TOS], row[QP_ACK_PRIORITY] = dscp << 2, target.priority_of_dscp(dscp)
    row[QP_LAST_CNP] = -NEVER
    dcqcn = target.nic.dcqcn if target.nic else None
    if dcqcn is not None:
        row[QP_CNP_TOS], row[QP_CNP_PRIORITY] = dcqcn.cnp_dscp << 2, dcqcn.cnp_priority
        row[QP_CNP_INTERVAL] = dcqcn.min_time_between_cnps_us * PS_PER_US


def _fill_rdma_messages(row: Row, flow: Flow, network: Network) -> None:
    # perftest takes the smaller of both ends' active MTUs.
    payload = min(roce_mtu(network.of(end).mtu_bytes) for end in (flow.source, flow.target))
    row[QP_FIRST_EXTRA] = RETH_BYTES if row[QP_MODE] == STREAM else 0
    _fill_messages(row, flow, payload)


def _fill_messages(row: Row, flow: Flow, payload: int) -> None:
    per_message = -(-flow.message_bytes // payload)
    row[QP_PAYLOAD] = payload
    row[QP_LAST_PAYLOAD] = flow.message_bytes - (per_message - 1) * payload
    row[QP_PER_MESSAGE] = per_message
    row[QP_GAP] = round(flow.gap_us * PS_PER_US)
    one_by_one = row[QP_MODE] != STREAM or flow.gap_us > 0
    row[QP_DEPTH] = 1 if one_by_one else STREAM_DEPTH
    messages = flow.messages if flow.messages is not None else _ENDLESS
    row[QP_LEFT] = messages if one_by_one else 1
    row[QP_STEP] = per_message if one_by_one else min(messages * per_message, _ENDLESS)


def _fill_rate_control(row: Row, network: Network, source: PortRef) -> None:
    rate = row.view(np.float64)
    line = float(network.site.topology.link_of[source].speed_bps)
    rate[RATE_NOW] = rate[RATE_TARGET] = rate[RATE_LINE] = line
    nic = network.of(source).nic
    if nic is None or nic.dcqcn is None or int(row[QP_PRIORITY]) not in nic.dcqcn.rp_priorities:
        return
    row[RP_ENABLED] = 1
    cap = nic.dcqcn.max_rate_mbps * 1e6
    if 0 < cap < line:
        row[RP_PACED] = 1
        rate[RATE_NOW] = rate[RATE_TARGET] = rate[RATE_LINE] = cap
    _fill_reaction_point(row, nic.dcqcn)


def _fill_reaction_point(row: Row, dcqcn: Dcqcn) -> None:
    rate = row.view(np.float64)
    row[RP_ALPHA_INTERVAL] = max(1, dcqcn.alpha_update_interval_us) * PS_PER_US
    row[RP_CUT_INTERVAL] = dcqcn.rate_reduce_interval_us * PS_PER_US
    row[RP_TIMER] = max(1, dcqcn.time_reset_us) * PS_PER_US
    row[RP_BYTE_RESET] = dcqcn.byte_reset
    row[RP_STAGES] = dcqcn.fast_recovery_stages
    rate[RATE_MIN] = min(dcqcn.min_rate_mbps * 1e6, rate[RATE_LINE])
    rate[RATE_AI] = dcqcn.ai_rate_mbps * 1e6
    rate[RATE_HAI] = dcqcn.hai_rate_mbps * 1e6
    rate[RATE_FIRST] = dcqcn.rate_to_set_on_first_cnp_mbps * 1e6
    rate[RATE_KEEP] = dcqcn.g_of_1024 / 1024
    rate[RATE_ALPHA_START] = dcqcn.initial_alpha_of_1024 / 1024
    # The NIC's alpha counts from 0 to 1024, and is shifted right by gd (2^11: alpha / 2).
    rate[RATE_GD] = 2.0 ** (10 - dcqcn.gd_log2)
    rate[RATE_LEAST] = dcqcn.min_decrease_percent / 100
    row[RP_CLAMPS] = CLAMP_ALWAYS * dcqcn.clamp_target
    row[RP_CLAMPS] += CLAMP_AFTER_TIME * dcqcn.clamp_target_after_time
