"""Rates of all queue pairs that are sending, by the regime that rules them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabric.sim.flowlevel import backpressure, marking
from fabric.sim.flowlevel.network import FlowNetwork
from fabric.sim.flowlevel.units import Units, controlled

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Called with the rounds done so far and how far off the worst link still is.
Tell = Callable[[int, float], None]

# Load over capacity beyond 1, of the worst port.
MARK_TOLERANCE = 2e-3
MAX_SWEEPS = 500
# Of a fluid that is paused: what goes in against what comes out of each unit. Each
# look is over twice as many steps as the one before; in all, no more than so many moves
# from hop to hop (some 20 s).
PAUSE_TOLERANCE = 5e-3
_STEPS = 500
_MAX_MOVES = 2e9


@dataclass
class Steady:
    """A steady state. ``rates_bps`` is (active units,) on the wire, the rest (ports,).

    ``load_bps``, ``queue_bytes`` and ``mark_fraction`` are of egress ports;
    ``paused_fraction`` is of the time in which a port that could send is paused.
    ``off`` is how far the worst is from where it should be; above the regime's
    tolerance the search was cut short. Of ports: ``swinging`` counts those that would
    have to mark more than Pmax, ``beyond`` those that DCQCN's lowest rates overfill,
    ``pausing`` those whose queue fills a receive buffer to XOFF all the same.
    """

    rates_bps: Floats
    load_bps: Floats
    queue_bytes: Floats
    mark_fraction: Floats
    paused_fraction: Floats
    off: float
    swinging: int = 0
    beyond: int = 0
    pausing: int = 0


class Solver:
    """Finds steady states on one network; each search starts from the last one's prices."""

    def __init__(self, network: FlowNetwork, units: Units) -> None:
        self.network = network
        self.units = units
        self.marks = controlled(units)
        ports = len(network.ports)
        self._prices = np.zeros(ports)
        self._amounts = np.zeros(len(units.paths.hops))
        self._curves = np.array([curve.rates_bps for curve in units.curves])
        self._lines = np.array([curve.line_bps for curve in units.curves])

    def solve(self, active: Ints, tell: Tell | None = None) -> Steady:
        """The steady state while these units, and no others, are sending."""
        hops, starts = _select(self.units, active)
        if self.marks:
            return self._by_marks(active, hops, starts, tell)
        return self._by_pauses(active, hops, starts, tell)

    def _by_marks(self, active: Ints, hops: Ints, starts: Ints, tell: Tell | None) -> Steady:
        ports = len(self.network.ports)
        unit_of = np.repeat(np.arange(len(active)), np.diff(starts))
        nic = np.zeros(len(hops), bool)
        nic[starts[:-1]] = True
        on_link = marking.members_of(hops[~nic], unit_of[~nic], ports)
        on_nic = marking.members_of(hops[nic], unit_of[nic], ports)
        capacity = self.network.speed_bps
        link_price = self._prices
        link_price[np.diff(on_link.starts) == 0] = 0.0
        price = np.zeros(len(active))
        np.add.at(price, unit_of[~nic], link_price[hops[~nic]])
        kind = self.units.curve[active]
        level = capacity[hops[starts[:-1]]].copy()
        tables = (kind, self._curves, self._lines)
        off = np.inf
        for done in range(1, MAX_SWEEPS + 1):
            marking.sweep_nics(on_nic.starts, on_nic.units, capacity, price, level, *tables)
            off = marking.sweep_links(
                on_link.starts, on_link.units, capacity, link_price, price, level, *tables
            )
            if tell is not None:
                tell(done, off)
            if off <= MARK_TOLERANCE:
                break
        rates = np.zeros(len(active))
        marking.rates_of(price, level, *tables, rates)
        facts = self.units.facts
        ramp = link_price / np.where(facts.pmax > 0, facts.pmax, 1.0)
        queue = facts.kmin_bytes + np.minimum(ramp, 1.0) * (facts.kmax_bytes - facts.kmin_bytes)
        queue = np.where(link_price > 0, queue, 0.0)
        load = np.bincount(hops, rates[unit_of], ports).astype(np.float64)
        # What each ingress holds of the queues that it feeds, by its part in them.
        part = rates[unit_of] / np.where(load > 0, load, 1.0)[hops]
        feeding = np.bincount(hops[:-1][~nic[1:]], (queue[hops] * part)[1:][~nic[1:]], ports)
        xoff = facts.xoff_bytes[self.network.graph.peer]
        return Steady(
            rates_bps=rates,
            load_bps=load,
            queue_bytes=queue,
            mark_fraction=np.minimum(link_price, 1.0),
            paused_fraction=np.zeros(ports),
            off=off,
            swinging=int(np.sum((link_price > facts.pmax) & (link_price <= 1))),
            beyond=int(np.sum(link_price > 1)),
            pausing=int(np.sum((feeding > xoff) & (xoff > 0))),
        )

    def _by_pauses(self, active: Ints, hops: Ints, starts: Ints, tell: Tell | None) -> Steady:
        ports, units = len(self.network.ports), len(active)
        capacity = self.network.speed_bps
        share = np.bincount(hops[starts[:-1]], minlength=ports).astype(np.float64)
        window = 8 * self.units.facts.xoff_bytes[self.network.graph.peer]
        window = np.where(window > 0, window, np.inf)
        used = np.unique(hops)
        step_s = backpressure.time_step_s(window[used], capacity[used])
        at = _places(self.units, active)
        amounts = self._amounts[at]
        sent, arrived = np.zeros(units), np.zeros(units)
        load, held, queued = np.zeros(ports), np.zeros(ports), np.zeros(ports)
        off, done, steps = np.inf, 0, _STEPS
        while off > PAUSE_TOLERANCE and (done + 2 * steps) * len(hops) < _MAX_MOVES:
            steps = _STEPS if done == 0 else 2 * steps
            backpressure.play(
                steps,
                step_s,
                hops,
                starts,
                capacity,
                window,
                share,
                amounts,
                sent,
                arrived,
                load,
                held,
                queued,
            )
            off = float(np.max(np.abs(arrived / np.maximum(sent, 1e-9) - 1)))
            done += steps
            if tell is not None:
                tell(done, off)
        self._amounts[at] = amounts
        load /= steps * step_s
        paused = backpressure.paused_part(held, window)
        return Steady(
            rates_bps=arrived / (steps * step_s),
            load_bps=load,
            queue_bytes=queued / 8,
            mark_fraction=np.zeros(ports),
            paused_fraction=np.where(load > 0, paused, 0.0),
            off=off,
        )


def _places(units: Units, active: Ints) -> Ints:
    """Where the hops of some units stand among those of all."""
    lengths = np.diff(units.paths.starts)[active]
    ends = np.cumsum(lengths)
    first = units.paths.starts[active] - (ends - lengths)
    return np.asarray(np.arange(ends[-1]) + np.repeat(first, lengths), np.int64)


def _select(units: Units, active: Ints) -> tuple[Ints, Ints]:
    """Paths of some units: hops, and where each starts."""
    lengths = np.diff(units.paths.starts)[active]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return units.paths.hops[_places(units, active)], starts
