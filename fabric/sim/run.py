"""Run a simulation of a site: what its devices hold, and the flows on top."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fabric.errors import InputError
from fabric.qos import DeviceQos
from fabric.sim import result
from fabric.sim.api import Flow, SimOptions, SimResult
from fabric.sim.deadlock import find_deadlocks
from fabric.sim.engine.layout import (
    ACK_EVERY,
    DATA_HOPS,
    LOG_LOST,
    NOW,
    PS_PER_US,
    RETRANSMIT,
    SAMPLE_AT,
    SAMPLE_EVERY,
    TCP_TIMEOUT,
    WARMUP,
)
from fabric.sim.engine.loop import DONE, GROW, SLACK, run_slice
from fabric.sim.engine.memory import Arena, Sizes
from fabric.sim.faults import check_faults
from fabric.sim.model import PACKETS_PER_ACK, RETRANSMIT_PS, STREAM_DEPTH, TCP_RTO_PS
from fabric.sim.network import Network, fill_network, read_network
from fabric.sim.tcp import words_of
from fabric.sim.traffic import (
    check_flows,
    dead_flows,
    fill_traffic,
    lay_routes,
    queue_pairs,
    sender_tos,
)
from fabric.site import Site
from fabric.topology import PortRef

# Called with the simulated time so far, in microseconds.
Progress = Callable[[float], None]

# Events between two calls of the progress function: a fraction of a second.
_SLICE_EVENTS = 2_000_000
# Series hold at most this many values; then samples are taken less often.
_MAX_SERIES = 1 << 24


@dataclass
class Simulation:
    """A simulation that is ready to run, or stands where it was stopped.

    ``arena`` is the engine's state: tests and analyses may look at it. ``dead`` says
    which flows send nothing because links are down.
    """

    network: Network
    flows: tuple[Flow, ...]
    options: SimOptions
    arena: Arena
    dead: tuple[str, ...] = ()
    wall_s: float = 0.0

    def advance(self, until_us: float, progress: Progress | None = None) -> None:
        """Run up to this simulated time. Ctrl-C takes effect between slices."""
        until = round(until_us * PS_PER_US)
        started = time.perf_counter()
        status = -1
        while status != DONE:
            status = int(run_slice(self.arena.m, until, _SLICE_EVENTS))
            if status == GROW:
                self.arena.grow()
            elif progress is not None:
                progress(float(self.arena.m[NOW]) / PS_PER_US)
        self.wall_s += time.perf_counter() - started

    def result(self) -> SimResult:
        """What was seen so far; goodput is over the whole of the options' duration."""
        arena = self.arena
        stats, depths = result.queue_stats(arena, self.network, self.options)
        return SimResult(
            flows=self.flows,
            options=self.options,
            goodput_bps=result.goodput(arena, self.options),
            goodput_series_bps=result.goodput_series(arena, self.options),
            messages_us=result.messages(arena, self.flows),
            queues=stats,
            queue_series_bytes=depths,
            counters=result.counters(arena, self.network),
            data_hops=int(arena.m[DATA_HOPS]),
            wall_s=self.wall_s,
            notes=_notes(self),
        )


def simulate(
    site: Site,
    states: Mapping[str, DeviceQos],
    flows: Sequence[Flow],
    options: SimOptions,
    progress: Progress | None = None,
) -> SimResult:
    """Simulate these flows on this site, with every device doing what its state says.

    ``states`` has one ``DeviceQos`` for each device. ``progress`` is called with
    the simulated microseconds so far. The same arguments give the same result,
    bit for bit. Raises InputError for flows, options or states that cannot be
    simulated.
    """
    simulation = prepare(site, states, flows, options)
    simulation.advance(simulation.options.duration_us, progress)
    return simulation.result()


def prepare(
    site: Site, states: Mapping[str, DeviceQos], flows: Sequence[Flow], options: SimOptions
) -> Simulation:
    """Lay out a simulation without running it. Raises as :func:`simulate` does."""
    _check_options(options)
    network = read_network(site, states)
    check_flows(network, flows)
    check_faults(network, options.faults)
    pairs = queue_pairs(network, flows)
    route, starts = lay_routes(network, flows, pairs, options.seed)
    options = _bounded(options, len(network.ports) + len(flows))
    sizes = Sizes(
        ports=len(network.ports),
        nodes=len(site.topology.switches),
        qps=len(pairs),
        flows=len(flows),
        hops=len(route),
        depth=STREAM_DEPTH if any(flow.kind == "stream" for flow in flows) else 1,
        samples=int(options.duration_us // options.sample_us),
        events=4 * (len(pairs) + len(network.ports) + SLACK),
        spare=sum(words_of(flow, network) for flow in flows),
    )
    arena = Arena(sizes, options.seed)
    m = arena.m
    m[SAMPLE_AT] = m[SAMPLE_EVERY] = round(options.sample_us * PS_PER_US)
    m[WARMUP] = round(options.warmup_us * PS_PER_US)
    m[ACK_EVERY] = PACKETS_PER_ACK
    m[RETRANSMIT] = RETRANSMIT_PS
    m[TCP_TIMEOUT] = TCP_RTO_PS
    fill_network(arena, network)
    fill_traffic(arena, network, flows, pairs, route, starts, options.faults)
    dead = dead_flows(network, flows, pairs, starts)
    return Simulation(network, tuple(flows), options, arena, dead)


def warm_up() -> float:
    """Compile the engine, or load it from its cache; returns the seconds that took."""
    started = time.perf_counter()
    run_slice(Arena(Sizes(), 0).m, 0, 0)
    return time.perf_counter() - started


def _check_options(options: SimOptions) -> None:
    if not 0 < options.sample_us <= options.duration_us:
        raise InputError(
            f"simulation: sample_us ({options.sample_us:g}) must be above 0 and at most "
            f"duration_us ({options.duration_us:g})"
        )
    if not 0 <= options.warmup_us < options.duration_us:
        raise InputError(
            f"simulation: warmup_us ({options.warmup_us:g}) must be from 0 to below "
            f"duration_us ({options.duration_us:g})"
        )


def _bounded(options: SimOptions, columns: int) -> SimOptions:
    """Options whose series fit into memory."""
    most = max(1, _MAX_SERIES // columns)
    if options.duration_us / options.sample_us <= most:
        return options
    return dataclasses.replace(options, sample_us=options.duration_us / most)


def _notes(simulation: Simulation) -> tuple[str, ...]:
    notes = [*simulation.dead]
    notes += [str(deadlock) for deadlock in find_deadlocks(simulation.arena, simulation.network)]
    network = simulation.network
    asked_of: dict[tuple[PortRef, int | None], set[int]] = {}
    for flow in simulation.flows:
        if flow.transport == "rdma":
            asked_of.setdefault((flow.source, flow.tos), set()).add(flow.dscp)
    for (port, tos), dscps in asked_of.items():
        sent = sender_tos(network.of(port), tos) >> 2
        if dscps != {sent}:
            asked = ", ".join(str(dscp) for dscp in sorted(dscps))
            notes.append(f"{port} sends its RDMA packets with DSCP {sent}; DSCP {asked} was asked")
    lost = int(simulation.arena.m[LOG_LOST])
    if lost:
        notes.append(f"the times of {lost} more completed messages were not kept")
    return tuple(notes)


def jain(rates: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    """Jain's fairness index of these rates: 1 when equal, 1/n when one has all; 1 of none.

    Source: Jain, Chiu, Hawe, DEC-TR-301 (1984).
    """
    squares = float(np.sum(rates**2))
    return float(np.sum(rates)) ** 2 / (len(rates) * squares) if squares else 1.0
