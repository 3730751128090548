"""Our runs beside the peer's: every given run, every column, with a verdict.

Limits: stochastic runs within two standard deviations of the seeds' mean in every
column, runs without ECN within 1 % in queues and 2 % in pauses, flows on a Clos
within 2 % in goodput, deterministic runs equal in queue and in every flow's rate,
target rate and alpha at every microsecond.
"""

from __future__ import annotations

import dataclasses
import gzip
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabric.sim.reference.peer import DATA, PeerRun, peer_run, table
from fabric.sim.reference.result import ReferenceResult
from fabric.sim.reference.simulation import prepare

# Called with a word for each run that is done, how many are, and of how many.
Told = Callable[[str, int, int], None]

_COLUMNS = {
    "sum_goodput_gbps": "sum_sd",
    "jain": "jain_sd",
    "queue_mean_kb": "queue_mean_sd",
    "queue_p99_kb": "queue_p99_sd",
    "queue_max_kb": "",
    "pfc_pauses": "pfc_sd",
    "ecn_marks": "ecn_sd",
}
_SERIES = ("a2-K3det-P1", "a2-K3det-P2", "a8-K3det-P1")
# The peer's figures have four decimals.
_ROUNDING = 1e-4
# Half of the last digit that the peer's series print of alpha.
_ALPHA_ROUNDING = 5.1e-7


@dataclass(frozen=True, slots=True)
class Comparison:
    """One column of one run. ``limit`` is how far apart they may be, in the column's unit."""

    run: str
    column: str
    ours: float
    reference: float
    limit: float

    @property
    def difference(self) -> float:
        """Ours minus the reference."""
        return self.ours - self.reference

    @property
    def passed(self) -> bool:
        """Whether they are no further apart than the limit."""
        return abs(self.difference) <= self.limit

    def to_json(self) -> dict[str, object]:
        """One row of ``paisoar bench sim --fidelity --json``."""
        return {
            "run": self.run,
            "column": self.column,
            "ours": self.ours,
            "reference": self.reference,
            "difference": self.difference,
            "limit": self.limit,
            "equal": abs(self.difference) <= _ROUNDING * max(1.0, abs(self.reference)),
            "verdict": "PASS" if self.passed else "FAIL",
        }


def compare_all(told: Told | None = None) -> tuple[Comparison, ...]:
    """Repeat every shipped run, the stochastic ones with all their seeds."""
    rows = table("results.csv")
    found: list[Comparison] = []
    for number, row in enumerate(rows):
        name = row["run"]
        if told:
            told(name, number, len(rows))
        run = peer_run(name)
        if name in _SERIES:
            found.extend(compare_series(run))
        results = [_result(run, seed) for seed in range(1, int(row["seeds"]) + 1)]
        found.extend(_compare(row, results))
        found.extend(_compare_flows(name, results[0]))
    return tuple(found)


def _result(run: PeerRun, seed: int) -> ReferenceResult:
    setup = dataclasses.replace(run.setup, seed=seed)
    simulation = prepare(run.topology, run.flows, setup)
    simulation.run()
    return simulation.result()


def values_of(result: ReferenceResult) -> dict[str, float]:
    """A run's values under the names of the peer's columns."""
    port = result.top_port
    return {
        "sum_goodput_gbps": float(result.goodput_gbps.sum()),
        "jain": result.jain,
        "queue_mean_kb": port.mean / 1000,
        "queue_p99_kb": port.p99 / 1000,
        "queue_max_kb": port.max / 1000,
        "pfc_pauses": float(result.pauses),
        "ecn_marks": float(result.marks),
    }


def _compare(row: dict[str, str], results: Sequence[ReferenceResult]) -> Iterator[Comparison]:
    ours = [values_of(result) for result in results]
    for column, deviation in _COLUMNS.items():
        reference = float(row[column])
        spread = float(row[deviation] or 0) if deviation else 0.0
        mean = float(np.mean([values[column] for values in ours]))
        limit = max(2 * spread, _tolerance(row["run"], column, reference))
        yield Comparison(row["run"], column, mean, reference, limit)


def _tolerance(run: str, column: str, reference: float) -> float:
    """What rounding and the limits of a run without spread allow."""
    if "noecn" in run and column.startswith("queue"):
        return 0.01 * reference
    if "noecn" in run and column == "pfc_pauses":
        return 0.02 * reference
    if column == "queue_max_kb" and "K1" in run and run[0] == "a":
        return 0.1 * reference  # the peer's spread of the maximum is not given
    return _ROUNDING


def _compare_flows(run: str, result: ReferenceResult) -> Iterator[Comparison]:
    rows = [row for row in table("perflow.csv") if row["run"] == run]
    if not rows:
        return
    reference = np.array([float(row["goodput_gbps_after_warmup"]) for row in rows])
    worst = int(np.argmax(np.abs(result.goodput_gbps / reference - 1)))
    flow = f"worst flow, {rows[worst]['src']} to {rows[worst]['dst']}"
    limit = 0.02 * float(reference[worst])
    yield Comparison(run, flow, float(result.goodput_gbps[worst]), float(reference[worst]), limit)


def compare_series(run: PeerRun) -> Iterator[Comparison]:
    """Microseconds at which a deterministic run differs: none may."""
    names, values = read_series(run.name)
    switch = run.topology.switches[0]
    port = len(run.topology.cables)
    setup = dataclasses.replace(run.setup, series_every_ns=1000, series_port=(switch, port))
    simulation = prepare(run.topology, run.flows, setup)
    simulation.run()
    ours = simulation.result().series
    assert ours is not None
    length = min(len(ours), len(values))
    apart = {"q": 0, "rate": 0, "target": 0, "alpha": 0}
    for column, name in enumerate(names[1:], 1):
        kind = next(kind for kind in apart if name.startswith(kind))
        rounding = _ALPHA_ROUNDING if kind == "alpha" else 0.0
        mine = ours[name].to_numpy(np.float64)[:length]
        apart[kind] += int((np.abs(mine - values[:length, column]) > rounding).sum())
    missing = abs(len(ours) - len(values))
    for kind, count in apart.items():
        yield Comparison(run.name, f"{kind}: us apart", float(count + missing), 0.0, 0.0)


def read_series(run: str) -> tuple[list[str], NDArray[np.float64]]:
    """Columns of a shipped series, and its values."""
    with gzip.open(DATA / "series" / f"{run}.csv.gz", "rt", encoding="utf-8") as file:
        names = file.readline().strip().split(",")
        return names, np.loadtxt(file, delimiter=",")
