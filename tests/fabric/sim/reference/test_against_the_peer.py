"""Runs of HPCC's ns-3 simulator that have to come out as they did there."""

import csv
import dataclasses

import numpy as np
import pytest

from fabric.sim.reference.fidelity import compare_series, values_of
from fabric.sim.reference.memory import Setup
from fabric.sim.reference.peer import DATA, peer_run, table
from fabric.sim.reference.simulation import prepare

RESULTS = {row["run"]: row for row in table("results.csv")}


def run(name, **changes):
    peer = peer_run(name)
    simulation = prepare(peer.topology, peer.flows, dataclasses.replace(peer.setup, **changes))
    simulation.run()
    return simulation.result()


@pytest.mark.parametrize("name", ["a2-K3det-P1", "a2-K3det-P2", "a8-K3det-P1"])
def test_queue_rates_targets_and_alphas_are_equal_at_every_microsecond(name):
    found = {row.column: row.ours for row in compare_series(peer_run(name))}
    assert found == dict.fromkeys(
        ("q: us apart", "rate: us apart", "target: us apart", "alpha: us apart"), 0.0
    )


@pytest.mark.parametrize(
    "name", ["a2-noecn", "a8-noecn", "a2-K3det-P2", "c-K1-P2-perm1", "d-star-K1-P1-s1"]
)
def test_a_run_of_one_seed_is_equal_in_every_column(name):
    values = values_of(run(name))
    for column, value in values.items():
        assert value == pytest.approx(float(RESULTS[name][column]), abs=1e-4), column


def test_the_mean_of_twenty_seeds_is_equal_because_random_marks_are_the_same():
    name = "a2-K1-P1"
    values = [values_of(run(name, seed=seed)) for seed in range(1, 21)]
    for column in values[0]:
        mean = np.mean([value[column] for value in values])
        assert mean == pytest.approx(float(RESULTS[name][column]), abs=1e-4), column


def test_each_flow_on_a_clos_has_the_peers_goodput():
    goodput = run("c-K1-P2-perm1").goodput_gbps
    rows = [row for row in table("perflow.csv") if row["run"] == "c-K1-P2-perm1"]
    reference = [float(row["goodput_gbps_after_warmup"]) for row in rows]
    assert goodput == pytest.approx(np.array(reference), abs=1e-4)


def test_the_hash_chooses_the_peers_paths():
    peer = peer_run("c-K1-P2-perm1", 2.1)
    simulation = prepare(peer.topology, peer.flows, peer.setup)
    simulation.run()
    owner = {port.row: port.node for port in simulation.wiring.ports}
    m = simulation.memory
    from fabric.sim.reference import columns as c

    with (DATA / "perflow.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["run"] == "c-K1-P2-perm1"]
    for number, row in enumerate(rows):
        at, path = m.flows[number * c.FLOW_WORDS + c.OUT_PATH], []
        while m.hops[at] >= 0:
            path.append(str(owner[int(m.hops[at])]))
            at += 2
        assert "-".join(path) == row["switch_path"]


@pytest.mark.parametrize("row", [r for r in table("speed.csv") if r["simulator"] == "ns-3 (HPCC)"])
def test_as_many_data_packets_pass_as_many_links_as_in_the_peer(row):
    peer = peer_run(row["scenario"], float(row["simulated_ms"]))
    simulation = prepare(peer.topology, peer.flows, peer.setup)
    simulation.run()
    assert simulation.result().data_hops == int(row["data_packet_hops"])


def test_the_same_seed_gives_the_same_run_and_another_one_another():
    first, again, other = (run("a8-K1-P2", seed=seed) for seed in (1, 1, 2))
    assert (first.goodput_gbps == again.goodput_gbps).all()
    assert (first.goodput_gbps != other.goodput_gbps).any()


def test_queues_count_from_two_milliseconds_whatever_the_warm_up():
    early, late = (run("a2-K3det-P1", warmup_ns=at) for at in (2_000_000, 5_000_000))
    assert early.ports == late.ports
    assert early.goodput_gbps.sum() != late.goodput_gbps.sum()
    assert isinstance(peer_run("a2-noecn").setup, Setup)
