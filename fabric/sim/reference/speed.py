"""Our speed beside the peers': data packets times links, for each second of one thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fabric.sim.reference.peer import peer_run, table
from fabric.sim.reference.simulation import prepare, warm_up

Told = Callable[[str, int, int], None]

# What of ours stands beside htsim's scenarios, which have neither ECN nor DCQCN:
# ours runs with every mechanism on.
_BESIDE_HTSIM = {
    "2:1 no ECN": "a2-K1-P1",
    "8:1 no ECN": "a8-K1-P1",
    "32:1 no ECN": "a32-K1-P1",
    "permutation no ECN": "c-K1-P1",
}
REPEATS = 3


@dataclass(frozen=True, slots=True)
class Speed:
    """One scenario. ``hops_per_s`` counts wall seconds, ``hops_per_cpu_s`` this thread's own."""

    scenario: str
    peer: str
    hops_per_s: float
    hops_per_cpu_s: float
    events_per_hop: float
    peer_hops_per_s: float

    @property
    def ratio(self) -> float:
        """How many times as fast as the peer."""
        return self.hops_per_s / self.peer_hops_per_s

    def to_json(self) -> dict[str, object]:
        """One row of ``paisoar bench sim --json``."""
        return {
            "scenario": self.scenario,
            "hops_per_s": self.hops_per_s,
            "peer_hops_per_s": self.peer_hops_per_s,
            "ratio": self.ratio,
            "peer": self.peer,
            "hops_per_cpu_s": self.hops_per_cpu_s,
            "events_per_hop": self.events_per_hop,
        }


def measure_all(told: Told | None = None) -> tuple[Speed, ...]:
    """Every scenario of ``speed.csv``, best of three as the peers were measured."""
    warm_up()
    rows = table("speed.csv")
    measured: dict[str, tuple[float, float, float]] = {}
    found: list[Speed] = []
    for number, row in enumerate(rows):
        scenario, peer = row["scenario"], row["simulator"]
        ours = _BESIDE_HTSIM.get(scenario, scenario)
        if told:
            told(ours, number, len(rows))
        if ours not in measured:
            measured[ours] = measure(ours, float(row["simulated_ms"]))
        peer_speed = float(row["data_packet_hops_per_s"])
        found.append(Speed(scenario, peer, *measured[ours], peer_speed))
    return tuple(found)


def measure(name: str, simulated_ms: float) -> tuple[float, float, float]:
    """Best hops a wall second, hops a CPU second, and events a hop."""
    run = peer_run(name, simulated_ms)
    wall = cpu = float("inf")
    hops = events = 0
    for _ in range(REPEATS):
        simulation = prepare(run.topology, run.flows, run.setup)
        simulation.run()
        cpu = min(cpu, simulation.cpu_s)
        wall = min(wall, simulation.wall_s)
        result = simulation.result()
        hops, events = result.data_hops, result.events
    return hops / wall, hops / cpu, events / hops
