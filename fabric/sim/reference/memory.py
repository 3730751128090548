"""From topology, flows and settings to the engine's arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fabric.errors import InputError
from fabric.sim.reference import columns as c
from fabric.sim.reference.columns import Arrays
from fabric.sim.reference.dcqcn import DcqcnSet, Ecn
from fabric.sim.reference.fixedpoint import transmit_ns
from fabric.sim.reference.flowfile import FlowFile
from fabric.sim.reference.host import ACK_BYTES, HEADER_BYTES
from fabric.sim.reference.pathfile import Pin
from fabric.sim.reference.randoms import first_stream
from fabric.sim.reference.wheel import FAR_SLOTS
from fabric.sim.reference.wiring import Port, Wiring

PAYLOAD_BYTES = 1000
RESERVE_BYTES = 4096
RESUME_OFFSET_BYTES = 3072
# A host port's share of the free buffer is 2^-3; it doubles with a port's rate.
HOST_SHIFT = 3
FIRST_UDP_PORT = 10000
SAMPLE_NS = 1000
_QUEUES_FROM_NS = 2_000_000
# Streams of random numbers that the reference has used up before its run begins:
# its protocol stacks take six a node, its error model two. Found by comparison:
# with them a run's random marks are the reference's own.
STREAMS_PER_NODE = 6
STREAMS_BESIDE = 2
_SLOT_NS = 2048
_FOREVER = 1 << 40


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything that decides a run beside topology and flows.

    Goodput counts from ``warmup_ns`` on, queues are sampled from ``queues_from_ns``
    on; None: from 2 ms, as in the reference whatever its warm-up, or from
    ``warmup_ns`` in a shorter run.
    """

    dcqcn: DcqcnSet
    ecn: Ecn | None
    duration_ns: int
    warmup_ns: int = 0
    queues_from_ns: int | None = None
    seed: int = 1
    buffer_bytes: int = 12 << 20
    closed_loop: bool = False
    ack_first: bool = False
    series_every_ns: int | None = None
    series_port: tuple[int, int] | None = None

    @property
    def sampled_from_ns(self) -> int:
        """When the first sample of the queues is taken."""
        if self.queues_from_ns is not None:
            return self.queues_from_ns
        return _QUEUES_FROM_NS if self.duration_ns > _QUEUES_FROM_NS else self.warmup_ns


def build(wiring: Wiring, flows: FlowFile, setup: Setup, pins: Sequence[Pin] = ()) -> Arrays:
    """All arrays of a run at time zero; ``pins`` has one pin a flow, or none at all."""
    topology = wiring.topology
    ports, n_flows = wiring.ports, len(flows.flows)
    settings = np.zeros(c.SETTINGS, np.int64)
    port_rows = np.zeros(len(ports) * c.PORT_WORDS, np.int64)
    flow_rows = np.zeros(n_flows * c.FLOW_WORDS, np.int64)
    slowest = max(
        port.delay_ns + transmit_ns(PAYLOAD_BYTES + HEADER_BYTES, port.rate_bps) for port in ports
    )
    slot = _SLOT_NS
    while slot <= slowest:
        slot *= 2
    smallest = HEADER_BYTES + min(
        flow.size_bytes % PAYLOAD_BYTES or PAYLOAD_BYTES for flow in flows.flows
    )
    per_host = Counter(flow.source for flow in flows.flows)
    margin = (
        64
        + sum(
            2 + slot // max(1, transmit_ns(smallest, wiring.of_node[host][0].rate_bps))
            for host in per_host
            if wiring.of_node[host]
        )
        * 4
    )
    timers = 2 * len(ports) + 3 * n_flows + 4
    packets = 4 * margin
    nodes = np.zeros((timers + packets) * c.NODE_WORDS, np.int64)
    samples = max(0, -(-(setup.duration_ns - setup.sampled_from_ns) // SAMPLE_NS))
    every = setup.series_every_ns or 0
    rows = max(0, -(-setup.duration_ns // every) - 1) if every else 0
    switch_ports = [port.row for port in ports if port.node in wiring.switch_set]
    order = sorted(topology.switches)
    switch_row = {switch: 2 * number for number, switch in enumerate(order)}
    log_room = 4 * margin + 1024

    m = Arrays(
        settings=settings,
        gains=np.array([setup.dcqcn.g, setup.ecn.pmax if setup.ecn else 0.0]),
        random=first_stream(setup.seed, STREAMS_PER_NODE * topology.nodes + STREAMS_BESIDE),
        ports=port_rows,
        flows=flow_rows,
        alphas=np.ones(len(flow_rows)),
        nodes=nodes,
        near=np.full(4 * slot, c.NONE, np.int32),
        bits=np.zeros(2 * slot // 64 + 2 * slot // _SLOT_NS, np.int64),
        far=np.full(2 * (FAR_SLOTS + 1), c.NONE, np.int32),
        hops=np.full(n_flows * 4 * c.MAX_HOPS, c.NONE, np.int64),
        tx_times=np.zeros(0, np.int64),
        shares=np.zeros(2 * len(order), np.int64),
        qps=np.zeros(sum(map(_qp_room, per_host.values())), np.int64),
        inputs=np.zeros(3 * n_flows, np.int64),
        switch_ports=np.array(switch_ports, np.int64),
        routes=np.zeros(0, np.int64),
        choices=np.zeros(0, np.int64),
        samples=np.zeros(samples * len(switch_ports), np.int32),
        series=np.zeros(rows * (1 + 2 * n_flows), np.int64),
        series_alphas=np.zeros(rows * n_flows),
        log=np.zeros(log_room * c.LOG_WORDS, np.int64),
    )
    m = m._replace(tx_times=_fill_ports(m, wiring, setup, switch_row))
    routes, choices = _routes(wiring, order, flows)
    m = m._replace(routes=routes, choices=choices)
    _fill_settings(m, setup, slot, margin, samples, rows, log_room, n_flows, topology.nodes)
    _fill_nodes(m, ports, n_flows, timers)
    _fill_flows(m, wiring, flows, setup, len(ports), pins)
    if every:
        m.settings[c.SERIES_PORT] = series_row(wiring, setup)
        _schedule(m, timers - 2, c.SAMPLE_SERIES, every)
    _schedule(m, timers - 4, c.WARM, setup.warmup_ns)
    _schedule(m, timers - 3, c.SAMPLE_QUEUES, setup.sampled_from_ns)
    _schedule(m, timers - 1, c.INPUT, int(m.inputs[0]))
    return m


def _schedule(m: Arrays, number: int, kind: int, time: int) -> None:
    """What ``wheel.put`` does, for the few timers that stand before the run begins."""
    node = number * c.NODE_WORDS
    m.nodes[node : node + c.NODE_WORDS] = c.NONE, kind, time, 0
    if time < m.settings[c.NEAR_END]:
        bucket, lists = time, m.near
        m.bits[bucket >> 6] |= np.uint64(1 << (bucket & 63)).astype(np.int64)
        words = m.near.size >> 7
        m.bits[words + (bucket >> 11)] |= 1 << (bucket >> 6 & 31)
    else:
        slot_ns = m.near.size >> 2
        ahead = (time - int(m.settings[c.NEAR_END])) // slot_ns
        near = ahead < FAR_SLOTS - 4
        bucket, lists = (time // slot_ns) % FAR_SLOTS if near else FAR_SLOTS, m.far
    if lists[2 * bucket] < 0:
        lists[2 * bucket] = node
    else:
        m.nodes[lists[2 * bucket + 1] + c.NEXT] = node
    lists[2 * bucket + 1] = node


def _fill_settings(
    m: Arrays,
    setup: Setup,
    slot: int,
    margin: int,
    samples: int,
    rows: int,
    log: int,
    flows: int,
    nodes: int,
) -> None:
    s, d = m.settings, setup.dcqcn
    s[c.END_TIME] = setup.duration_ns
    s[c.NEAR_END] = 2 * slot
    s[c.FREE_LOW] = margin
    s[c.ALPHA_EVERY] = d.alpha_timer_us * 1000
    s[c.CUT_EVERY] = d.decrease_interval_us * 1000
    s[c.RAISE_EVERY] = d.increase_timer_us * 1000
    s[c.STAGES] = d.fast_recovery
    s[c.RATE_AI], s[c.RATE_HAI], s[c.MIN_RATE] = d.rate_ai_bps, d.rate_hai_bps, d.min_rate_bps
    s[c.CLAMP] = d.clamp_target
    s[c.ECN] = setup.ecn is not None
    s[c.NODE_COUNT] = nodes
    s[c.ACK_FIRST] = setup.ack_first
    s[c.RESERVE], s[c.RESUME_OFFSET] = RESERVE_BYTES, RESUME_OFFSET_BYTES
    s[c.PAYLOAD] = PAYLOAD_BYTES
    s[c.SERIES_EVERY], s[c.SERIES_ROOM] = setup.series_every_ns or 0, rows
    s[c.SAMPLE_EVERY], s[c.SAMPLE_ROOM] = SAMPLE_NS, samples
    s[c.LOG_ROOM] = log
    s[c.SWITCH_PORTS], s[c.FLOWS] = len(m.switch_ports), flows


def _fill_ports(m: Arrays, wiring: Wiring, setup: Setup, switch_row: dict[int, int]) -> c.Words:
    rates = sorted({port.rate_bps for port in wiring.ports})
    sizes = PAYLOAD_BYTES + HEADER_BYTES + 1
    table = np.array([transmit_ns(size, rate) for rate in rates for size in range(sizes)], np.int64)
    nic_bps = next(
        wiring.of_node[host][0].rate_bps for host in wiring.topology.hosts if wiring.of_node[host]
    )
    for number, port in enumerate(wiring.ports):
        row = m.ports[port.row : port.row + c.PORT_WORDS]
        for queue in (c.Q0_HEAD, c.Q0_TAIL, c.Q3_HEAD, c.Q3_TAIL):
            row[queue] = c.NONE
        row[c.TX_TIMES] = rates.index(port.rate_bps) * sizes
        row[c.DELAY] = port.delay_ns
        row[c.SWITCH] = switch_row.get(port.node, c.NONE)
        row[c.PEER] = wiring.to_peer[port.peer, port.node].row
        row[c.TX_NODE] = number * c.NODE_WORDS
        row[c.SEND_NODE] = (len(wiring.ports) + number) * c.NODE_WORDS
        row[c.NEXT_UDP_PORT] = FIRST_UDP_PORT
        row[c.LATENCY_ACK] = port.delay_ns + transmit_ns(ACK_BYTES, port.rate_bps)
        row[c.HEADROOM] = port.rate_bps * port.delay_ns // 8 // 10**9 * 3
        row[c.SHIFT] = _shift(port.rate_bps, nic_bps)
        if setup.ecn:
            ecn = setup.ecn
            factor = port.rate_bps / nic_bps if ecn.scaled else 1.0
            row[c.KMIN] = round(ecn.kmin_bytes * factor)
            row[c.KMAX] = round(ecn.kmax_bytes * factor)
    for switch, place in switch_row.items():
        own = wiring.of_node[switch]
        kept = sum(int(m.ports[port.row + c.HEADROOM]) + RESERVE_BYTES for port in own)
        if setup.buffer_bytes <= kept:
            raise InputError(
                f"--buffer {setup.buffer_bytes}: switch {switch} keeps {kept} bytes for the "
                f"headroom and reserve of its {len(own)} ports",
                advice="Give it more.",
            )
        m.shares[place] = setup.buffer_bytes - kept
        m.shares[place + 1] = switch
    return table


def _shift(rate_bps: int, nic_bps: int) -> int:
    shift, rate = HOST_SHIFT, rate_bps
    while rate > nic_bps and shift > 0:
        shift -= 1
        rate //= 2
    return shift


def _routes(wiring: Wiring, order: list[int], flows: FlowFile) -> tuple[c.Words, c.Words]:
    """(switches, nodes) places in ``choices``, each the number of next hops and their rows.

    InputError with the line of a flow between hosts that do not reach each other.
    """
    nodes = wiring.topology.nodes
    routes = np.full((len(order), nodes), c.NONE, np.int64)
    choices: list[int] = []
    place = {switch: number for number, switch in enumerate(order)}
    lines: dict[int, int] = {}
    for flow in flows.flows:
        lines.setdefault(flow.source, flow.line)
        lines.setdefault(flow.target, flow.line)
    behind: dict[int, list[int]] = {}
    for host, line in lines.items():
        leaf = wiring.leaf(host)
        if leaf is None:
            raise _unreachable(wiring, flows, f"host {host} has no link", line)
        behind.setdefault(leaf, []).append(host)
    for leaf, hosts in behind.items():
        hops = wiring.next_hops(leaf)
        for switch, ports in hops.items():
            if switch in place:
                routes[place[switch], hosts] = len(choices)
                choices.append(len(ports))
                choices.extend(port.row for port in ports)
        for host in hosts:
            routes[place[leaf], host] = len(choices)
            choices.extend((1, wiring.to_peer[leaf, host].row))
    for flow in flows.flows:
        leaf = wiring.leaf(flow.source)
        assert leaf is not None
        if routes[place[leaf], flow.target] < 0:
            what = f"host {flow.source} does not reach host {flow.target}"
            raise _unreachable(wiring, flows, what, flow.line)
    return routes.ravel(), np.array(choices, np.int64)


def _unreachable(wiring: Wiring, flows: FlowFile, what: str, line: int) -> InputError:
    return InputError(f"{what} in {wiring.topology.path}", file=flows.path, line=line)


def _fill_nodes(m: Arrays, ports: list[Port], flows: int, timers: int) -> None:
    nodes = m.nodes.reshape(-1, c.NODE_WORDS)
    for number, port in enumerate(ports):
        nodes[number, c.INFO] = c.TX_DONE | port.row << c.FLOW_SHIFT
        nodes[len(ports) + number, c.INFO] = c.NEXT_SEND | port.row << c.FLOW_SHIFT
    first = 2 * len(ports)
    for flow in range(flows):
        f = flow * c.FLOW_WORDS
        nodes[first + 2 * flow, c.INFO] = c.CUT | f << c.FLOW_SHIFT
        nodes[first + 2 * flow + 1, c.INFO] = c.RAISE | f << c.FLOW_SHIFT
        m.flows[f + c.CUT_NODE] = (first + 2 * flow) * c.NODE_WORDS
        m.flows[f + c.RAISE_NODE] = (first + 2 * flow + 1) * c.NODE_WORDS
    link_free(m, timers * c.NODE_WORDS)


def link_free(m: Arrays, first: int) -> None:
    """Put all nodes from this row on to the list of free ones."""
    nodes = m.nodes.reshape(-1, c.NODE_WORDS)
    start = first // c.NODE_WORDS
    count = len(nodes) - start
    nodes[start:, c.NEXT] = (np.arange(start + 1, len(nodes) + 1)) * c.NODE_WORDS
    nodes[-1, c.NEXT] = m.settings[c.FREE] if m.settings[c.FREE_COUNT] else c.NONE
    m.settings[c.FREE] = first
    m.settings[c.FREE_COUNT] += count


def _fill_flows(
    m: Arrays,
    wiring: Wiring,
    flows: FlowFile,
    setup: Setup,
    n_ports: int,
    pins: Sequence[Pin],
) -> None:
    start = 0
    for host, count in Counter(flow.source for flow in flows.flows).items():
        nic = wiring.of_node[host][0].row
        m.ports[nic + c.QP_FIRST] = start
        m.ports[nic + c.QP_ROOM] = _qp_room(count)
        start += _qp_room(count)
    for number, flow in enumerate(flows.flows):
        f = number * c.FLOW_WORDS
        port = wiring.of_node[flow.source][0]
        row = m.flows[f : f + c.FLOW_WORDS]
        row[c.HOST], row[c.LINE_RATE] = port.row, port.rate_bps
        row[c.RATE] = row[c.TARGET] = port.rate_bps
        row[c.CUT_DUE] = row[c.RAISE_DUE] = c.NEVER
        row[c.FIRST_CNP] = 1
        row[c.TICKED] = c.NEVER
        row[c.FLOW_NUMBER] = number
        row[c.MESSAGE_BYTES] = flow.size_bytes
        row[c.MESSAGES_LEFT] = _FOREVER if setup.closed_loop else 1
        row[c.SOURCE_NUMBER], row[c.TARGET_NUMBER] = flow.source, flow.target
        row[c.TARGET_PORT] = flow.udp_port
        row[c.OUT_PATH] = number * 4 * c.MAX_HOPS
        row[c.BACK_PATH] = (number * 4 + 2) * c.MAX_HOPS
        install = (2 * n_ports + 2 * len(flows.flows) + number) * c.NODE_WORDS
        m.inputs[3 * number : 3 * number + 3] = flow.start_ns, f, install
        for bit, start_at, hops in (
            (c.OUT_PINNED, row[c.OUT_PATH], pins[number].out if pins else None),
            (c.BACK_PINNED, row[c.BACK_PATH], pins[number].back if pins else None),
        ):
            if hops is not None:
                row[c.PINNED] |= bit
                m.hops[start_at : start_at + len(hops)] = hops
    m.settings[c.INPUTS] = len(flows.flows)


def _qp_room(flows: int) -> int:
    """Places in a NIC's list of queue pairs, complete ones that still stand there included."""
    return 4 * flows + 64


def series_row(wiring: Wiring, setup: Setup) -> int:
    """Row of the port whose queue the series shows."""
    assert setup.series_port is not None
    switch, number = setup.series_port
    return wiring.of_node[switch][number - 1].row
