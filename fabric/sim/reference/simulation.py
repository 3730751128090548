"""A run with the reference's semantics, from its files to its results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from fabric.errors import InputError
from fabric.sim.reference import columns as c
from fabric.sim.reference.columns import Arrays
from fabric.sim.reference.dcqcn import SETS
from fabric.sim.reference.flowfile import FileFlow, FlowFile
from fabric.sim.reference.loop import DONE, GROW, MORE, run_slice
from fabric.sim.reference.memory import SAMPLE_NS, Setup, build, link_free
from fabric.sim.reference.pathfile import Pin
from fabric.sim.reference.result import ReferenceResult, collect
from fabric.sim.reference.topofile import Cable, TopologyFile
from fabric.sim.reference.wiring import Wiring

# Called with the simulated nanoseconds so far.
Progress = Callable[[int], None]

# A call of the engine lasts about this long: short enough for progress and Ctrl-C,
# long enough for what a call itself costs (some 50 us) not to count.
_SLICE_S = 0.1
_FIRST_SLICE_NS = 100_000
# Bytes of one waiting packet: its node, and the copy while nodes grow.
_PACKET_BYTES = 3 * 8 * c.NODE_WORDS


@dataclass
class Simulation:
    """A run that stands at the time up to which it was simulated."""

    wiring: Wiring
    flows: FlowFile
    setup: Setup
    memory: Arrays
    wall_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def now_ns(self) -> int:
        """How far the run has got."""
        return int(min(self.memory.settings[c.SLOT_START], self.setup.duration_ns))

    def run(self, progress: Progress | None = None) -> None:
        """Simulate to the end. KeyboardInterrupt leaves a state that can be looked at."""
        warm_up()
        step = _FIRST_SLICE_NS
        status = -1
        while status != DONE:
            began, began_cpu = time.perf_counter(), time.thread_time()
            status = int(run_slice(self.memory, self.now_ns + step))
            if status == GROW:
                self.memory = _grown(self.memory)
            took = time.perf_counter() - began
            self.wall_s += took
            self.cpu_s += time.thread_time() - began_cpu
            if status == MORE and took < _SLICE_S / 2:
                step *= 2
            elif took > 2 * _SLICE_S:
                step = max(step // 2, _FIRST_SLICE_NS)
            if progress is not None:
                progress(self.now_ns)

    def result(self) -> ReferenceResult:
        """What was seen so far."""
        return collect(self.wiring, self.flows, self.setup, self.memory, self.now_ns, self.wall_s)


def prepare(
    topology: TopologyFile, flows: FlowFile, setup: Setup, pins: Sequence[Pin] = ()
) -> Simulation:
    """Lay out a run. InputError for what cannot be simulated, memory included."""
    wiring = Wiring(topology)
    check_setup(wiring, setup)
    check_memory(wiring, flows, setup)
    return Simulation(wiring, flows, setup, build(wiring, flows, setup, pins))


def warm_up() -> float:
    """Load or compile the engine; returns the seconds that took."""
    began = time.perf_counter()
    topology = TopologyFile(
        Path("-"), 3, (2,), (Cable(0, 2, 10**10, 1000, 1), Cable(1, 2, 10**10, 1000, 2))
    )
    flows = FlowFile(Path("-"), (FileFlow(0, 1, 3, 1, 1, 0, 1),))
    memory = build(Wiring(topology), flows, Setup(SETS["P1"], None, 1000))
    run_slice(memory, 0)
    return time.perf_counter() - began


def check_setup(wiring: Wiring, setup: Setup) -> None:
    """InputError for times and ports that make no sense."""
    if setup.duration_ns <= 0:
        raise InputError(f"--duration {setup.duration_ns} ns: it has to be above zero")
    if not 0 <= setup.warmup_ns < setup.duration_ns:
        raise InputError(
            f"--warmup {setup.warmup_ns} ns: it has to be from 0 to below the duration "
            f"({setup.duration_ns} ns)"
        )
    if not 0 <= setup.sampled_from_ns < setup.duration_ns:
        raise InputError(
            f"--queues-from {setup.sampled_from_ns} ns: it has to be from 0 to below the "
            f"duration ({setup.duration_ns} ns)"
        )
    if setup.seed < 0:
        raise InputError(f"--seed {setup.seed}: it has to be from 0 up")
    if setup.series_every_ns is not None and setup.series_every_ns <= 0:
        raise InputError("--every: it has to be at least 1ns")
    if setup.series_port is not None:
        switch, number = setup.series_port
        ports = wiring.of_node[switch] if switch in wiring.switch_set else []
        if not 1 <= number <= len(ports):
            raise InputError(
                f"--series {switch}:{number}: {wiring.topology.path.name} has no such switch port",
                advice="Write SWITCH:PORT; ports count from 1 in the order of the links.",
            )


def memory_bytes(wiring: Wiring, flows: FlowFile, setup: Setup) -> int:
    """What a run may need at most: samples, series, and switches full of packets."""
    ports = sum(port.node in wiring.switch_set for port in wiring.ports)
    samples = ports * 4 * ((setup.duration_ns - setup.sampled_from_ns) // SAMPLE_NS)
    series = 0
    if setup.series_every_ns:
        series = setup.duration_ns // setup.series_every_ns * (8 + 24 * len(flows.flows))
    switches = len(wiring.topology.switches)
    packets = switches * (setup.buffer_bytes // 1048) * _PACKET_BYTES
    routes = switches * wiring.topology.nodes * 8
    rows = 8 * (len(wiring.ports) * c.PORT_WORDS + len(flows.flows) * 3 * c.FLOW_WORDS)
    return samples + 2 * series + packets + routes + rows


def check_memory(wiring: Wiring, flows: FlowFile, setup: Setup) -> None:
    """InputError where a run may need more memory than there is."""
    needed = memory_bytes(wiring, flows, setup)
    free = int(psutil.virtual_memory().available)
    if needed > free:
        raise InputError(
            f"this run may need {needed / 2**30:.1f} GiB of memory; "
            f"{free / 2**30:.1f} GiB are free",
            advice="Shorten --duration, lengthen --every, or take a smaller topology.",
        )


def _grown(m: Arrays) -> Arrays:
    """The same state with room for more packets or more messages."""
    settings = m.settings
    if settings[c.FREE_COUNT] < settings[c.FREE_LOW]:
        before = len(m.nodes)
        nodes = np.zeros(2 * before, np.int64)
        nodes[:before] = m.nodes
        m = m._replace(nodes=nodes)
        link_free(m, before)
    if settings[c.LOG_COUNT] + settings[c.FREE_LOW] > settings[c.LOG_ROOM]:
        log = np.zeros(2 * len(m.log), np.int64)
        log[: len(m.log)] = m.log
        m = m._replace(log=log)
        settings[c.LOG_ROOM] *= 2
    return m
