"""Messages, losses, limits and interruptions of runs with the reference's semantics."""

import itertools
import types

import numpy as np
import psutil
import pytest

from fabric.errors import InputError
from fabric.sim.reference import columns as c
from fabric.sim.reference.dcqcn import SETS, Ecn, read_ecn
from fabric.sim.reference.fixedpoint import nanoseconds, transmit_ns
from fabric.sim.reference.flowfile import read_flows
from fabric.sim.reference.memory import Setup
from fabric.sim.reference.peer import peer_run
from fabric.sim.reference.simulation import prepare
from fabric.sim.reference.topofile import read_topology


def star(folder, hosts, flows, **setup):
    links = "".join(f"{host} {hosts} 25Gbps 1000ns 0\n" for host in range(hosts))
    topology = folder / "star.topo"
    topology.write_text(f"{hosts + 1} 1 {hosts}\n{hosts}\n{links}")
    path = folder / "star.flow"
    path.write_text(f"{len(flows)}\n" + "".join(f"{flow}\n" for flow in flows))
    read = read_topology(topology)
    options = {"dcqcn": SETS["P1"], "ecn": None, "duration_ns": 1_000_000} | setup
    return prepare(read, read_flows(path, read), Setup(**options))


def finished(simulation):
    simulation.run()
    return simulation.result()


@pytest.mark.parametrize(
    ("size", "rate", "ns"), [(1048, 25, 335), (1048, 100, 83), (60, 25, 19), (60, 100, 4)]
)
def test_transmission_times_are_truncated(size, rate, ns):
    assert transmit_ns(size, rate * 10**9) == ns
    assert nanoseconds(0.000001) == 999


@pytest.mark.parametrize("size", [1, 1000, 1001, 2500])
def test_a_lone_message_takes_its_closed_form(tmp_path, size):
    done = finished(star(tmp_path, 2, [f"0 1 3 100 {size} 0"])).messages
    full, rest = divmod(size, 1000)
    last = transmit_ns(48 + (rest or 1000), 25 * 10**9)
    before = (full if rest else full - 1) * 335
    # The last packet waits for the one before it at the switch, its ACK at the receiver.
    there = last + 1000 + last + 1000
    if before:
        there = before + 1000 + 335 + last + 1000 + max(0, 19 - last)
    assert [round(message.fct_us * 1000) for message in done] == [there + 2 * (19 + 1000)]


def test_open_loop_messages_start_when_the_file_says(tmp_path):
    lines = [f"0 1 3 100 10000 {start:.6f}" for start in (0.0, 0.0001, 0.0002)]
    done = finished(star(tmp_path, 2, lines)).messages
    assert [message.flow for message in done] == [0, 1, 2]
    assert [message.start_us for message in done] == pytest.approx([0, 100, 200], abs=0.002)
    assert len({message.fct_us for message in done}) == 1


def test_a_closed_loop_sends_the_next_message_when_the_last_is_acknowledged(tmp_path):
    done = finished(star(tmp_path, 2, ["0 1 3 100 100000 0"], closed_loop=True)).messages
    assert len(done) > 20
    for before, after in itertools.pairwise(done):
        assert after.start_us == pytest.approx(before.start_us + before.fct_us)


def test_many_short_messages_in_a_closed_loop_keep_their_nic_busy(tmp_path):
    lines = [f"0 {1 + flow % 2} 3 100 1000 0" for flow in range(40)]
    result = finished(star(tmp_path, 3, lines, closed_loop=True, duration_ns=5_000_000))
    assert result.goodput_gbps.sum() == pytest.approx(23.88, rel=0.01)
    counts = np.bincount([message.flow for message in result.messages])
    assert counts.max() - counts.min() <= 2


def test_queue_pairs_of_one_nic_share_it(tmp_path):
    lines = [f"0 {target} 3 100 4000000000 0" for target in (1, 2, 3)]
    rates = finished(star(tmp_path, 4, lines)).goodput_gbps
    assert rates == pytest.approx([rates.mean()] * 3, rel=0.01)


def test_with_the_headroom_nothing_is_lost_and_without_it_packets_are_sent_again(tmp_path):
    lines = [f"{host} 2 3 100 4000000000 0" for host in range(2)]
    options = {"duration_ns": 20_000_000, "warmup_ns": 10_000_000, "buffer_bytes": 100_000}
    options["ecn"] = Ecn(10_000, 10_000, 1.0)
    whole = star(tmp_path, 3, lines, **options)
    assert finished(whole).drops == 0
    assert whole.result().pauses > 0
    torn = star(tmp_path, 3, lines, **options)
    torn.memory.ports.reshape(-1, c.PORT_WORDS)[:, c.HEADROOM] = 0
    lossy = finished(torn)
    assert lossy.drops > 0
    # Every flow goes on in order after its losses.
    assert (lossy.goodput_gbps > 5).all()


def test_acks_that_switches_forward_first_do_not_wait_behind_data(tmp_path):
    lines = ["0 1 3 100 4000000000 0", "1 0 3 100 4000000000 0", "2 0 3 100 4000000000 0"]
    slow, fast = (
        finished(star(tmp_path, 3, lines, ack_first=first, duration_ns=500_000)) for first in (0, 1)
    )
    assert fast.data_hops != slow.data_hops
    assert fast.pauses <= slow.pauses


def test_marks_follow_the_thresholds(tmp_path):
    lines = [f"{host} 2 3 100 4000000000 0" for host in range(2)]
    low, high = (
        finished(star(tmp_path, 3, lines, ecn=Ecn(k, k, 1.0), duration_ns=3_000_000))
        for k in (20_000, 200_000)
    )
    bottlenecks = [max(run.ports, key=lambda port: port.max) for run in (low, high)]
    assert bottlenecks[0].max < bottlenecks[1].max
    assert low.marks > 0
    assert low.rate_cuts > 0


def test_scaled_thresholds_grow_with_a_ports_speed():
    run = peer_run("c-K1-P1")
    ecn = read_ecn("100KB,400KB,0.2", scaled=True)
    simulation = prepare(run.topology, run.flows, Setup(SETS["P1"], ecn, 10_000))
    ports = simulation.memory.ports.reshape(-1, c.PORT_WORDS)
    by_rate = {port.rate_bps: row for port, row in zip(simulation.wiring.ports, ports, strict=True)}
    assert by_rate[25 * 10**9][c.KMAX] == 400_000
    assert by_rate[100 * 10**9][c.KMAX] == 1_600_000
    assert (by_rate[25 * 10**9][c.SHIFT], by_rate[100 * 10**9][c.SHIFT]) == (3, 1)


def test_an_interrupted_run_gives_what_it_has_seen(tmp_path):
    simulation = star(tmp_path, 2, ["0 1 3 100 4000000000 0"], duration_ns=50_000_000)

    def stop(now_ns):
        if now_ns > 1_000_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulation.run(stop)
    result = simulation.result()
    assert result.partial
    assert 1000 < result.simulated_us < 50_000
    document = result.to_json()
    assert document["partial"] is True
    assert document["goodput_gbps"]["sum"] == pytest.approx(23.88, rel=0.01)


def test_a_run_too_large_for_memory_is_refused_before_it_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(
        psutil, "virtual_memory", lambda: types.SimpleNamespace(available=100 << 20)
    )
    with pytest.raises(InputError, match="GiB of memory"):
        star(tmp_path, 2, ["0 1 3 100 1 0"], duration_ns=100 * 10**9)


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        ({"duration_ns": 0}, "--duration"),
        ({"warmup_ns": 2_000_000}, "--warmup"),
        ({"buffer_bytes": 1000}, "--buffer"),
        ({"series_every_ns": 1000, "series_port": (0, 1)}, "no such switch port"),
        ({"series_every_ns": 1000, "series_port": (2, 9)}, "no such switch port"),
    ],
)
def test_refuses_settings_that_make_no_sense(tmp_path, setup, words):
    with pytest.raises(InputError, match=words):
        star(tmp_path, 2, ["0 1 3 100 1 0"], **setup)


def test_slices_of_a_run_do_not_change_it():
    run = peer_run("a8-K1-P1")
    whole = prepare(run.topology, run.flows, run.setup)
    whole.run()
    from fabric.sim.reference.loop import run_slice

    sliced = prepare(run.topology, run.flows, run.setup)
    sliced.run(lambda _now: None)
    assert run_slice(sliced.memory, 0) == 0
    assert np.array_equal(whole.result().goodput_gbps, sliced.result().goodput_gbps)


def test_long_cables_need_a_longer_wheel(tmp_path):
    path = tmp_path / "far.topo"
    path.write_text("3 1 2\n2\n0 2 25Gbps 1ms 0\n1 2 25Gbps 5us 0\n")
    flows = tmp_path / "far.flow"
    flows.write_text("1\n0 1 3 100 1000 0\n")
    topology = read_topology(path)
    setup = Setup(SETS["P2"], None, 4_000_000)
    done = finished(prepare(topology, read_flows(flows, topology), setup)).messages
    assert [message.fct_us for message in done] == [2010 + (2 * 335 + 2 * 19) / 1000]
