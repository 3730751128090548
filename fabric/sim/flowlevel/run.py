"""Run flows at the flow level: rates change only when a flow starts or ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fabric.errors import InputError
from fabric.sim.api import Flow
from fabric.sim.flowlevel.model import MARK_TOLERANCE, PAUSE_TOLERANCE, Solver, Steady
from fabric.sim.flowlevel.network import FlowNetwork
from fabric.sim.flowlevel.units import Units, units_of
from fabric.topology import PortRef

# Called with what is being done, how much of it is done, and of how much.
Progress = Callable[[str, int, int], None]

Floats = NDArray[np.float64]

# Flows that end within this part of each other's time end together.
_TOGETHER = 1e-9


@dataclass(frozen=True, slots=True)
class PortLoad:
    """One egress port, averaged over the time that was simulated.

    ``load`` and ``paused`` are fractions of line rate and of time; ``mark`` is a
    probability.
    """

    port: PortRef
    load: float
    queue_bytes: float
    mark: float
    paused: float


@dataclass(frozen=True)
class FlowLevelResult:
    """What a flow-level simulation found.

    ``goodput_bps`` is payload from warm-up on, ``completion_us`` the time from a flow's
    start to its last byte (NaN: not finished, or endless); both are (flows,).
    ``simulated_us`` is how far it came; ``partial`` that it was stopped before the end.
    """

    flows: tuple[Flow, ...]
    goodput_bps: Floats
    completion_us: Floats
    ports: tuple[PortLoad, ...]
    regime: str
    solves: int
    simulated_us: float
    partial: bool
    wall_s: float
    notes: tuple[str, ...]


@dataclass
class FlowSimulation:
    """A flow-level simulation that is ready, or stands where it was stopped."""

    network: FlowNetwork
    flows: tuple[Flow, ...]
    units: Units
    duration_us: float
    warmup_us: float
    solver: Solver
    now_us: float = 0.0
    wall_s: float = 0.0
    solves: int = 0
    off: float = 0.0
    swinging: int = 0
    beyond: int = 0
    pausing: int = 0
    _left: Floats = field(default_factory=lambda: np.empty(0))
    _end_us: Floats = field(default_factory=lambda: np.empty(0))
    _received: Floats = field(default_factory=lambda: np.empty(0))
    _sums: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        count = len(self.units.flow)
        self._left = self.units.payload_bytes.copy()
        self._end_us = np.full(count, np.nan)
        self._received = np.zeros(count)
        self._sums = np.zeros((4, len(self.network.ports)))

    def advance(self, progress: Progress | None = None) -> None:
        """Run to the end. After Ctrl-C :meth:`result` says what was found until then."""
        began = time.perf_counter()
        try:
            while self.now_us < self.duration_us:
                self._step(progress)
        finally:
            self.wall_s += time.perf_counter() - began

    def _step(self, progress: Progress | None) -> None:
        """One steady state, up to the next start or end of a flow."""
        started = self.units.start_us <= self.now_us
        active = np.flatnonzero(started & (self._left > 0))
        later = self.units.start_us[~started]
        until = min(self.duration_us, float(later.min()) if len(later) else np.inf)
        if not len(active):
            self.now_us = until
            return
        steady = self.solver.solve(active, self._tell(progress))
        payload = steady.rates_bps * self.units.payload_share[active] / 8e6
        ends = self.now_us + self._left[active] / payload
        until = min(until, float(ends.min()))
        ended = ends <= until + _TOGETHER * (until - self.now_us)
        self._take(active, payload, steady, until)
        done = active[ended & np.isfinite(ends)]
        self._left[done] = 0.0
        self._end_us[done] = until
        self.now_us = until
        self.solves += 1
        self.off = max(self.off, steady.off)
        self.swinging = max(self.swinging, steady.swinging)
        self.beyond = max(self.beyond, steady.beyond)
        self.pausing = max(self.pausing, steady.pausing)

    def _tell(self, progress: Progress | None) -> Callable[[int, float], None] | None:
        if progress is None:
            return None

        def tell(rounds: int, off: float) -> None:
            word = f"us simulated; round {rounds}, {100 * off:.2g} % off"
            progress(word, int(self.now_us), int(self.duration_us))

        return tell

    def _take(
        self, active: NDArray[np.int64], payload: Floats, steady: Steady, until: float
    ) -> None:
        span = until - self.now_us
        self._left[active] -= payload * span
        self._received[active] += payload * max(0.0, until - max(self.now_us, self.warmup_us))
        load = steady.load_bps / self.network.speed_bps
        parts = (load, steady.queue_bytes, steady.mark_fraction, steady.paused_fraction)
        self._sums += span * np.array(parts)

    def result(self) -> FlowLevelResult:
        """What was found so far."""
        flows, count = self.units.flow, len(self.flows)
        seconds = max(self.now_us - self.warmup_us, 1e-9) / 1e6
        received = np.bincount(flows, self._received, count)
        last = np.full(count, -np.inf)
        np.maximum.at(last, flows, np.where(np.isnan(self._end_us), np.inf, self._end_us))
        starts = np.array([flow.start_us for flow in self.flows])
        means = self._sums / max(self.now_us, 1e-9)
        return FlowLevelResult(
            flows=self.flows,
            goodput_bps=received * 8 / seconds,
            completion_us=np.where(np.isfinite(last), last - starts, np.nan),
            ports=tuple(
                PortLoad(self.network.ports[p], *(float(value) for value in means[:, p]))
                for p in np.flatnonzero(means[0] > 0)
            ),
            regime="dcqcn" if self.solver.marks else "pfc",
            solves=self.solves,
            simulated_us=self.now_us,
            partial=self.now_us < self.duration_us,
            wall_s=self.wall_s,
            notes=tuple(self._notes()),
        )

    def _notes(self) -> list[str]:
        notes = []
        if self.off > (MARK_TOLERANCE if self.solver.marks else PAUSE_TOLERANCE):
            notes.append(
                f"the search for steady rates was cut short, the worst {100 * self.off:.1f} % off"
            )
        if self.swinging:
            notes.append(
                f"{self.swinging} ports would have to mark more than Pmax: DCQCN swings there, "
                "goodput is up to 10 % lower than said"
            )
        if self.beyond:
            notes.append(
                f"on {self.beyond} ports even DCQCN's lowest rates are too much; "
                "PFC pauses there, which is left out"
            )
        if self.pausing:
            notes.append(
                f"queues fill {self.pausing} receive buffers to XOFF in spite of DCQCN; "
                "PFC pauses there, which is left out"
            )
        return notes


def prepare_flows(
    network: FlowNetwork,
    flows: Sequence[Flow],
    duration_us: float,
    warmup_us: float = 0.0,
    seed: int = 1,
    progress: Progress | None = None,
) -> FlowSimulation:
    """Lay out a flow-level simulation. InputError for what it cannot do."""
    if not 0 <= warmup_us < duration_us:
        raise InputError(
            f"simulation: warmup_us ({warmup_us:g}) must be from 0 to below "
            f"duration_us ({duration_us:g})"
        )
    began = time.perf_counter()
    total = sum(flow.qps for flow in flows)

    def tell(done: int) -> None:
        if progress is not None:
            progress("paths", done, total)

    units = units_of(network, flows, seed, tell)
    solver = Solver(network, units)
    simulation = FlowSimulation(network, tuple(flows), units, duration_us, warmup_us, solver)
    simulation.wall_s = time.perf_counter() - began
    return simulation
