"""The peer's runs that ship with this package: what was run, and what came out.

``data`` holds topologies, flows, results, per-flow goodput, series and speed of
HPCC's ns-3 simulator (alibaba-edu/High-Precision-Congestion-Control), run with
counters added, and of htsim (Broadcom/csg-htsim).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from fabric.sim.reference.dcqcn import SETS, read_ecn
from fabric.sim.reference.flowfile import FlowFile, read_flows
from fabric.sim.reference.memory import Setup
from fabric.sim.reference.topofile import TopologyFile, read_topology

DATA = Path(__file__).parent / "data"
_MS = 1_000_000
_ECN = {"K1": "100KB,400KB,0.2", "K3det": "100KB,100KB,0.2", "noecn": "off"}
# Topology, flows and simulated milliseconds by the first part of a run's name.
_SCENES = {
    "a2": ("star3", "inc2", 10),
    "a8": ("star9", "inc8", 10),
    "a32": ("star33", "inc32", 10),
    "c": ("clos4x8s2", "perm32-1", 5),
    "d-star": ("star64", "ring64", 5),
    "d-block": ("clos8x8s2", "ring64", 5),
    "d-stride": ("clos8x8s2stride", "ring64", 5),
}


@dataclass(frozen=True)
class PeerRun:
    """One run of the peer, ready to be repeated: its files and its setup (seed 1)."""

    name: str
    topology: TopologyFile
    flows: FlowFile
    setup: Setup


def peer_run(name: str, duration_ms: float | None = None) -> PeerRun:
    """The run of this name, such as ``a8-K1-P2`` or ``d-star-K1-P1``."""
    words = name.split("-")
    scene, rest = ("-".join(words[:2]), words[2:]) if words[0] == "d" else (words[0], words[1:])
    topology_name, flows_name, scene_ms = _SCENES[scene]
    dcqcn = next((word for word in rest if word in SETS), "P1")
    topology = read_topology(DATA / "topologies" / f"{topology_name}.topo")
    setup = Setup(
        SETS[dcqcn],
        read_ecn(_ECN[rest[0]]),
        duration_ns=round((duration_ms or scene_ms) * _MS),
        warmup_ns=2 * _MS,
    )
    flows = read_flows(DATA / "flows" / f"{flows_name}.flow", topology)
    return PeerRun(name, topology, flows, setup)


def table(name: str) -> list[dict[str, str]]:
    """The rows of one of the shipped CSV files."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
