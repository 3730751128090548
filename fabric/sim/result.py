"""From the engine's arrays to what a simulation saw, and to canonical counters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fabric.counters import Counter
from fabric.qos import PRIORITY_COUNT
from fabric.sim.api import Flow, PortQueueStats, SimOptions
from fabric.sim.engine.layout import (
    FLOW_BYTES,
    FLOW_WARMUP_BYTES,
    FLOW_WORDS,
    INGRESS_DISCARDS,
    INGRESS_PAUSED_SINCE,
    INGRESS_PAUSED_UNTIL,
    INGRESS_PAUSING,
    INGRESS_PAUSING_SINCE,
    INGRESS_RX_PACKETS,
    INGRESS_RX_PAUSE_TIME,
    INGRESS_RX_PAUSES,
    INGRESS_STORMS,
    INGRESS_TX_PACKETS,
    INGRESS_TX_PAUSE_TIME,
    INGRESS_TX_PAUSES,
    LOG,
    LOG_SIZE,
    LOG_WORDS,
    NOW,
    PORT_ACK_TIMEOUT_ERR,
    PORT_DEPTH_MAX,
    PORT_DUPLICATE_REQUEST,
    PORT_LINK_DOWNS,
    PORT_NP_CNP_SENT,
    PORT_NP_MARKED,
    PORT_OUT_OF_SEQUENCE,
    PORT_PACKET_SEQ_ERR,
    PORT_RP_CNP_HANDLED,
    PORT_RP_CNP_IGNORED,
    PORT_RX_BYTES,
    PORT_RX_DISCARDS,
    PORT_RX_MTU_DROPS,
    PORT_STALL_ERRORS,
    PORT_STALL_WARNINGS,
    PORT_TX_DISCARDS,
    PS_PER_US,
    QUEUE_DROPS,
    QUEUE_MARKED,
    QUEUE_TX_BYTES,
    QUEUE_TX_PACKETS,
    SAMPLE_DEPTHS,
    SAMPLE_GOODPUT,
    SAMPLES,
)
from fabric.sim.engine.memory import Arena
from fabric.sim.network import Network
from fabric.topology import PortRef

_PORT_COUNTERS = {
    "rx_bytes": PORT_RX_BYTES,
    "rx_discards": PORT_RX_DISCARDS,
    "tx_discards": PORT_TX_DISCARDS,
    "rx_mtu_drops": PORT_RX_MTU_DROPS,
    "link_down_events": PORT_LINK_DOWNS,
}
_HOST_COUNTERS = {
    "np_ecn_marked_packets": PORT_NP_MARKED,
    "np_cnp_sent": PORT_NP_CNP_SENT,
    "rp_cnp_handled": PORT_RP_CNP_HANDLED,
    "rp_cnp_ignored": PORT_RP_CNP_IGNORED,
    "out_of_sequence": PORT_OUT_OF_SEQUENCE,
    "packet_seq_err": PORT_PACKET_SEQ_ERR,
    "local_ack_timeout_err": PORT_ACK_TIMEOUT_ERR,
    "duplicate_request": PORT_DUPLICATE_REQUEST,
    "tx_pause_storm_warnings": PORT_STALL_WARNINGS,
    "tx_pause_storm_errors": PORT_STALL_ERRORS,
}
_PRIORITY_COUNTERS = {
    "rx_pause_frames": INGRESS_RX_PAUSES,
    "tx_pause_frames": INGRESS_TX_PAUSES,
    "rx_prio_packets": INGRESS_RX_PACKETS,
    "tx_prio_packets": INGRESS_TX_PACKETS,
    "rx_prio_discards": INGRESS_DISCARDS,
    "watchdog_storms": INGRESS_STORMS,
}
_QUEUE_COUNTERS = {
    "tx_queue_packets": QUEUE_TX_PACKETS,
    "tx_queue_bytes": QUEUE_TX_BYTES,
    "queue_drops": QUEUE_DROPS,
    "ecn_marked_packets": QUEUE_MARKED,
}


def goodput(arena: Arena, options: SimOptions) -> NDArray[np.float64]:
    """Payload received in order from warm-up on, bits a second, one entry a flow."""
    seconds = (options.duration_us - options.warmup_us) / 1e6
    flows = arena.table(arena.flows, arena.sizes.flows, FLOW_WORDS)
    received = (flows[:, FLOW_BYTES] - flows[:, FLOW_WARMUP_BYTES]).astype(np.float64)
    return received * 8.0 / seconds


def goodput_series(arena: Arena, options: SimOptions) -> NDArray[np.float64]:
    """The same per sample: (flows, samples)."""
    m, columns = arena.m, arena.sizes.flows
    taken = arena.table(int(m[SAMPLE_GOODPUT]), int(m[SAMPLES]), columns)
    steps = np.diff(taken, axis=0, prepend=0)
    return np.ascontiguousarray(steps.T) * 8e6 / options.sample_us


def messages(arena: Arena, flows: Sequence[Flow]) -> tuple[NDArray[np.float64], ...]:
    """Times of completed messages in microseconds, one array a flow."""
    if not flows:
        return ()
    log = arena.table(int(arena.m[LOG]), int(arena.m[LOG_SIZE]), LOG_WORDS)
    log = log[np.argsort(log[:, 0], kind="stable")]
    ends = np.searchsorted(log[:, 0], [arena.flow(number) for number in range(1, len(flows))])
    return tuple(np.split(log[:, 1] / PS_PER_US, ends))


def queue_stats(
    arena: Arena, network: Network, options: SimOptions
) -> tuple[tuple[PortQueueStats, ...], NDArray[np.float64]]:
    """Depth of every switch port: statistics after warm-up, and (ports, samples).

    Mean and percentiles are over the samples after warm-up, the maximum is
    exact and over the whole run.
    """
    switches = frozenset(network.site.topology.switches)
    chosen = [p for p, port in enumerate(network.ports) if port.device in switches]
    m = arena.m
    taken = arena.table(int(m[SAMPLE_DEPTHS]), int(m[SAMPLES]), arena.sizes.ports)
    depths = taken[:, chosen].astype(np.float64)
    steady = depths[int(options.warmup_us // options.sample_us) :]
    if not len(steady):
        steady = np.zeros((1, len(chosen)))
    mean = steady.mean(axis=0)
    p50, p99 = np.percentile(steady, (50, 99), axis=0)
    stats = tuple(
        PortQueueStats(
            network.ports[p],
            float(mean[i]),
            float(p50[i]),
            float(p99[i]),
            float(m[arena.port(p) + PORT_DEPTH_MAX]),
        )
        for i, p in enumerate(chosen)
    )
    return stats, np.ascontiguousarray(depths.T)


def counters(arena: Arena, network: Network) -> tuple[Counter, ...]:
    """What the traffic adds to every device's counters; what it does not move is left out."""
    _close_pauses(arena)
    hosts = frozenset(network.site.topology.hosts)
    found: list[Counter] = []
    for p, port in enumerate(network.ports):
        found.extend(_totals(arena, p, port))
        found.extend(_plain(arena, p, port, _PORT_COUNTERS))
        if port.device in hosts:
            found.extend(_plain(arena, p, port, _HOST_COUNTERS))
        found.extend(_by_priority(arena, p, port, port.device in hosts))
    return tuple(found)


def _totals(arena: Arena, p: int, port: PortRef) -> Iterator[Counter]:
    queues = arena.queue_table()[p]
    totals = {
        "rx_packets": arena.ingress_table()[p, :, INGRESS_RX_PACKETS].sum(),
        "tx_packets": queues[:, QUEUE_TX_PACKETS].sum(),
        "tx_bytes": queues[:, QUEUE_TX_BYTES].sum(),
    }
    for name, value in totals.items():
        if value:
            yield Counter(port.device, port.port, name, int(value))


def _plain(arena: Arena, p: int, port: PortRef, columns: dict[str, int]) -> Iterator[Counter]:
    for name, column in columns.items():
        if value := int(arena.m[arena.port(p) + column]):
            yield Counter(port.device, port.port, name, value)


def _by_priority(arena: Arena, p: int, port: PortRef, host: bool) -> Iterator[Counter]:
    ingresses, queues = arena.ingress_table()[p], arena.queue_table()[p]
    for priority in range(PRIORITY_COUNT):
        ingress, queue = ingresses[priority], queues[priority]
        values = {name: ingress[column] for name, column in _PRIORITY_COUNTERS.items()}
        values["rx_pause_us"] = ingress[INGRESS_RX_PAUSE_TIME] // PS_PER_US
        values["tx_pause_us"] = ingress[INGRESS_TX_PAUSE_TIME] // PS_PER_US
        if not host:
            values |= {name: queue[column] for name, column in _QUEUE_COUNTERS.items()}
        for name, value in values.items():
            if value:
                yield Counter(port.device, port.port, name, int(value), priority)


def _close_pauses(arena: Arena) -> None:
    """Count pauses that still hold at the end up to now."""
    ingress, now = arena.ingress_table(), arena.m[NOW]
    paused = ingress[..., INGRESS_PAUSED_UNTIL] > 0
    ingress[paused, INGRESS_RX_PAUSE_TIME] += now - ingress[paused, INGRESS_PAUSED_SINCE]
    ingress[paused, INGRESS_PAUSED_SINCE] = now
    pausing = ingress[..., INGRESS_PAUSING] > 0
    ingress[pausing, INGRESS_TX_PAUSE_TIME] += now - ingress[pausing, INGRESS_PAUSING_SINCE]
    ingress[pausing, INGRESS_PAUSING_SINCE] = now
