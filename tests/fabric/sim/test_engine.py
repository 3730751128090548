"""What holds for every simulation: conservation, determinism, order, growth, pause arithmetic."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.errors import InputError
from fabric.headroom import MAX_PAUSE_QUANTA, pause_us
from fabric.sim import run
from fabric.sim.api import Flow, SimOptions
from fabric.sim.engine.heap import drop_first, push
from fabric.sim.engine.layout import (
    DATA_HOPS,
    EVENT_HANDLE_MASK,
    EVENT_XOFF,
    FREE,
    FREE_COUNT,
    HEAP,
    HEAP_SIZE,
    INGRESS_WORDS,
    NONE,
    PACKET_NEXT,
    PACKET_WORDS,
    PORT_INGRESSES,
    PS_PER_US,
    QUEUE_HEAD,
)
from fabric.sim.engine.memory import Arena, Sizes
from fabric.sim.model import RETRANSMIT_PS, roce_mtu
from fabric.sim.run import prepare, simulate
from fabric.topology import PortRef
from tests.fabric.sim.scenario import (
    PAYLOAD_BPS,
    ROCE,
    change,
    change_all,
    dropped,
    incast,
    site_of,
    star,
    states_of,
    total,
    without_dcqcn,
    without_ecn,
    without_pfc,
)


@pytest.mark.parametrize("lossless", [True, False])
def test_every_packet_is_received_dropped_or_in_flight(lossless):
    site = site_of()
    states = states_of(site)
    if not lossless:
        change_all(states, without_pfc, "switch")
        change_all(states, without_dcqcn, "host")
    simulation = prepare(site, states, incast(site, qps=2), SimOptions(2_000))
    simulation.advance(2_000)
    arena, result = simulation.arena, simulation.result()
    hosts = frozenset(site.topology.endpoints)
    sent, received = (
        sum(c.value for c in result.counters if c.name == name and (c.device, c.port) in hosts)
        for name in ("tx_packets", "rx_packets")
    )
    answers = sum(queued(arena, p) for p in range(len(hosts)))
    in_flight = arena.packets - int(arena.m[FREE_COUNT])
    assert sent - received - dropped(result) + answers == in_flight > 0
    assert (dropped(result) == 0) == lossless


def queued(arena, port):
    """Packets in the queues of a port; hosts are the first ports."""
    count = 0
    for k in arena.queue_table()[port, :, QUEUE_HEAD]:
        while k != NONE:
            count += 1
            k = arena.m[k + PACKET_NEXT]
    return count


def test_finite_flows_leave_nothing_behind():
    site = site_of()
    ends = site.topology.endpoints
    flows = [Flow(end, ends[0], ROCE, message_bytes=50_000, messages=20, qps=2) for end in ends[1:]]
    simulation = prepare(site, states_of(site), flows, SimOptions(20_000))
    simulation.advance(20_000)
    result = simulation.result()
    assert simulation.arena.m[FREE_COUNT] == simulation.arena.packets
    assert [len(times) for times in result.messages_us] == [40] * 15
    np.testing.assert_allclose(result.goodput_bps * 0.02 / 8, 40 * 50_000)
    assert total(result.counters, "rx_prio_packets", ends[0]) == 15 * 40 * 13


def test_the_same_arguments_give_the_same_bits_and_another_seed_does_not():
    site = site_of()
    first, second, other = (
        simulate(site, states_of(site), incast(site, qps=2), SimOptions(3_000, seed=seed))
        for seed in (5, 5, 6)
    )
    assert first.goodput_series_bps.tobytes() == second.goodput_series_bps.tobytes()
    assert first.queue_series_bytes.tobytes() == second.queue_series_bytes.tobytes()
    assert first.counters == second.counters
    assert first.counters != other.counters


def test_stepping_changes_nothing():
    site = star(6)
    whole = prepare(site, states_of(site), incast(site), SimOptions(2_000))
    whole.advance(2_000)
    steps = prepare(site, states_of(site), incast(site), SimOptions(2_000))
    for until in (1, 17, 500, 501, 2_000):
        steps.advance(until)
    assert whole.result().counters == steps.result().counters
    assert whole.arena.m[DATA_HOPS] == steps.arena.m[DATA_HOPS]


def test_progress_is_reported_and_an_interrupt_passes_through(monkeypatch):
    monkeypatch.setattr(run, "_SLICE_EVENTS", 500)
    site = star(6)
    seen: list[float] = []
    simulate(site, states_of(site), incast(site), SimOptions(2_000), seen.append)
    assert len(seen) > 10
    assert seen == sorted(seen)
    assert seen[-1] == 2_000

    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(site, states_of(site), incast(site), SimOptions(2_000), interrupt)


def test_memory_grows_without_changing_the_result():
    site = star(8)
    states = states_of(site)
    change_all(states, without_ecn, "switch")
    roomy = prepare(site, states, incast(site), SimOptions(3_000))
    roomy.advance(3_000)
    tight = prepare(site, states, incast(site), SimOptions(3_000))
    size = len(tight.arena.m)
    # Hide most of the free list: growth has to make up for it.
    m = tight.arena.m
    while m[FREE_COUNT] > 300:
        m[FREE] = m[int(m[FREE]) + PACKET_NEXT]
        m[FREE_COUNT] -= 1
    tight.advance(3_000)
    assert len(tight.arena.m) > size + 100 * PACKET_WORDS
    assert tight.result().counters == roomy.result().counters


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 20), max_size=200))
def test_events_come_in_time_and_then_in_the_order_of_scheduling(times):
    m = Arena(Sizes(), 0).m
    for number, time in enumerate(times):
        push.py_func(m, time, 1, number)
    popped = []
    while m[HEAP_SIZE]:
        at = int(m[HEAP])
        popped.append((int(m[at]), int(m[at + 1]) & EVENT_HANDLE_MASK))
        drop_first.py_func(m)
    assert popped == sorted((time, number) for number, time in enumerate(times))


def test_a_pause_frame_without_successor_expires_after_its_quanta():
    site = star(2)
    ends = site.topology.endpoints
    simulation = prepare(site, states_of(site), [Flow(ends[0], ends[1], ROCE)], SimOptions(3_000))
    ingress = simulation.arena.port(0) + PORT_INGRESSES + 3 * INGRESS_WORDS
    push.py_func(simulation.arena.m, 500 * PS_PER_US, EVENT_XOFF, ingress)
    simulation.advance(3_000)
    result = simulation.result()
    held = pause_us(MAX_PAUSE_QUANTA, 25 * 10**9)
    assert held == pytest.approx(1342.2, abs=0.1)
    assert total(result.counters, "rx_pause_us", ends[0]) == int(held)
    quiet = np.flatnonzero(result.goodput_series_bps[0] == 0)
    assert len(quiet) == pytest.approx(held / 10, abs=2)


def test_a_long_pause_is_refreshed_before_it_expires():
    # Two strict senders block the third class for longer than its quanta.
    site = star(3)
    states = states_of(site)
    change_all(states, without_dcqcn, "host")
    change_all(states, without_ecn, "switch")
    ends = site.topology.endpoints

    def starve(port):
        queues = tuple(
            dataclasses.replace(
                queue, scheduler=dataclasses.replace(queue.scheduler, mode="strict", percent=0)
            )
            if queue.traffic_class == 0
            else queue
            for queue in port.queues
        )
        return dataclasses.replace(port, queues=queues)

    change_all(states, starve, "switch")
    change(
        states,
        lambda port: dataclasses.replace(
            port, nic=dataclasses.replace(port.nic, verbs_traffic_class=0)
        ),
        ends[2],
    )
    result = simulate(site, states, incast(site), SimOptions(5_000))
    assert total(result.counters, "rx_pause_us", ends[1]) > 3 * pause_us(
        MAX_PAUSE_QUANTA, 25 * 10**9
    )
    assert 5 < total(result.counters, "rx_pause_frames", ends[1]) < 20
    assert dropped(result) == 0


def test_go_back_n_delivers_everything_once_in_spite_of_drops():
    site = star(4)
    states = states_of(site)
    change_all(states, without_pfc, "switch")
    change_all(states, without_dcqcn, "host")
    ends = site.topology.endpoints
    flows = [Flow(end, ends[0], ROCE, message_bytes=400_000, messages=10) for end in ends[1:]]
    result = simulate(site, states, flows, SimOptions(2_000_000, sample_us=1_000))
    assert dropped(result) > 0
    assert [len(times) for times in result.messages_us] == [10, 10, 10]
    np.testing.assert_allclose(result.goodput_bps * 2 / 8, 4_000_000)
    assert total(result.counters, "packet_seq_err") > 0
    assert total(result.counters, "out_of_sequence") > 0


def test_a_lost_tail_waits_for_the_retransmission_time_out():
    site = star(2)
    states = states_of(site)
    ends = site.topology.endpoints
    change(
        states,
        lambda port: dataclasses.replace(port, mtu_bytes=1500),
        site.topology.peer(ends[0]),
    )
    flow = Flow(ends[0], ends[1], ROCE, message_bytes=4096, messages=1)
    result = simulate(
        site, states, [flow], SimOptions(3.5 * RETRANSMIT_PS / PS_PER_US, sample_us=1e3)
    )
    assert total(result.counters, "local_ack_timeout_err", ends[0]) == 3
    assert total(result.counters, "tx_packets", ends[0]) == 4


def test_queue_pairs_spread_over_equal_paths_and_keep_theirs():
    site = site_of()
    ends = site.topology.endpoints
    result = simulate(
        site, states_of(site), [Flow(ends[0], ends[15], ROCE, qps=32)], SimOptions(1_000)
    )
    spines = {
        device: sum(
            c.value for c in result.counters if c.device == device and c.name == "rx_packets"
        )
        for device in ("spine1", "spine2")
    }
    assert min(spines.values()) > 0.2 * sum(spines.values())
    assert total(result.counters, "out_of_sequence") == 0
    assert result.goodput_bps[0] == pytest.approx(PAYLOAD_BPS, rel=0.01)


def test_goodput_series_and_counters_agree():
    site = star(4)
    result = simulate(site, states_of(site), incast(site), SimOptions(2_000))
    assert result.goodput_series_bps.shape == (3, 200)
    assert result.queue_series_bytes.shape == (len(result.queues), 200)
    np.testing.assert_allclose(result.goodput_series_bps.mean(axis=1), result.goodput_bps)
    assert result.queues[0].max_bytes >= result.queue_series_bytes[0].max()
    switch_rx = sum(
        c.value for c in result.counters if c.device == "leaf1" and c.name == "rx_bytes"
    )
    switch_tx = sum(
        c.value for c in result.counters if c.device == "leaf1" and c.name == "tx_queue_bytes"
    )
    assert 0 <= switch_rx - switch_tx < 2e6


def test_long_series_are_thinned_instead_of_filling_memory(monkeypatch):
    monkeypatch.setattr(run, "_MAX_SERIES", 600)
    site = star(4)
    result = simulate(site, states_of(site), incast(site), SimOptions(2_000, 500))
    assert result.options.sample_us > 10
    assert result.goodput_series_bps.size <= 600


@pytest.mark.parametrize(
    ("ip_mtu", "payload"),
    [(9000, 4096), (4192, 4096), (4191, 2048), (2000, 1024), (1500, 1024), (600, 256), (1000, 512)],
)
def test_roce_mtu_is_the_one_that_linux_takes(ip_mtu, payload):
    assert roce_mtu(ip_mtu) == payload


@pytest.mark.parametrize(
    ("change_flow", "message"),
    [
        ({"dscp": 64}, "DSCP 64"),
        ({"message_bytes": 0}, "message_bytes"),
        ({"qps": 0}, "qps"),
        ({"messages": 0}, "messages"),
        ({"start_us": -1.0}, "start_us"),
        ({"target": ("leaf1", "Ethernet1/1")}, "no cabled NIC"),
        ({"target": ("host1", "ens1f0")}, "ends where it starts"),
    ],
)
def test_a_flow_that_makes_no_sense_is_refused_by_name(change_flow, message):
    site = star(2)
    ends = site.topology.endpoints
    if "target" in change_flow:
        change_flow = {"target": PortRef(*change_flow["target"])}
    flow = dataclasses.replace(Flow(ends[0], ends[1], ROCE), **change_flow)
    with pytest.raises(InputError, match=message) as caught:
        simulate(site, states_of(site), [flow], SimOptions(100))
    assert "host1:ens1f0" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (SimOptions(0), "sample_us"),
        (SimOptions(100, sample_us=0), "sample_us"),
        (SimOptions(100, warmup_us=100), "warmup_us"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    site = star(2)
    with pytest.raises(InputError, match=message):
        simulate(site, states_of(site), [], options)


def test_a_device_or_port_without_state_is_named():
    site = star(2)
    states = states_of(site)
    states["leaf1"] = dataclasses.replace(states["leaf1"], ports=states["leaf1"].ports[:1])
    with pytest.raises(InputError, match="leaf1 shows no port Ethernet1/2"):
        simulate(site, states, [], SimOptions(100))
    del states["leaf1"]
    with pytest.raises(InputError, match="leaf1"):
        simulate(site, states, [], SimOptions(100))


WARM = """
from fabric.sim.run import warm_up
from fabric.sim.engine.loop import run_slice
warm_up()
print(sum(run_slice.stats.cache_hits.values()), sum(run_slice.stats.cache_misses.values()))
"""


def test_the_compiled_engine_comes_from_its_cache():
    run.warm_up()  # whoever is first compiles
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WARM],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(run.__file__).parents[2],
        env=os.environ,
    )
    assert done.stdout.split() == ["1", "0"]
