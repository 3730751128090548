"""TCP: windows, losses and marks, alone and beside RDMA."""

import dataclasses

import numpy as np
import pytest

from fabric.errors import InputError
from fabric.qos import Ecn
from fabric.sim.api import Flow, SimOptions
from fabric.sim.engine.layout import (
    FREE_COUNT,
    TCP_EPOCH,
    TCP_RECOVERY,
    WINDOW_BEFORE,
    WINDOW_MOST,
    WINDOW_NOW,
)
from fabric.sim.engine.window import cut, grow
from fabric.sim.run import jain, prepare, simulate
from tests.fabric.sim.scenario import (
    ROCE,
    change_all,
    dropped,
    star,
    states_of,
    total,
    without_dcqcn,
    without_ecn,
)

# Segments of 8948 with IPv4, TCP and timestamps (52), Ethernet and gap (38).
TCP_BPS = 25e9 * 8948 / (8948 + 52 + 38)
TCP = 0
SMALL_BUFFER = ("buffer: 40MB", "buffer: 4MB")


def senders(site, count, transport="tcp", dscp=TCP, **more):
    """One flow from each of the first hosts after host1, to host1."""
    ends = site.topology.endpoints
    more.setdefault("message_bytes", 8948 * 16)
    return [Flow(ends[i + 1], ends[0], dscp, transport=transport, **more) for i in range(count)]


def marking(kmin, kmax, pmax=100):
    """ECN on the default class too."""

    def edit(port):
        queues = tuple(
            dataclasses.replace(queue, ecn=Ecn(kmin, kmax, pmax))
            if queue.traffic_class == 0
            else queue
            for queue in port.queues
        )
        return dataclasses.replace(port, queues=queues)

    return edit


@pytest.mark.parametrize("transport", ["tcp", "dctcp"])
def test_one_flow_fills_the_wire(transport):
    site = star(2)
    flows = senders(site, 1, transport)
    result = simulate(site, states_of(site), flows, SimOptions(10_000, 2_000))
    assert result.goodput_bps[0] == pytest.approx(TCP_BPS, rel=0.002)
    assert dropped(result) == 0


def test_slow_start_doubles_the_window_each_round_trip():
    site = star(2, ("length_m: 3", "length_m: 10000"))
    simulation = prepare(site, states_of(site), senders(site, 1), SimOptions(1_000))
    row = simulation.arena.qp_table()[0].view(np.float64)
    seen = []
    for until in range(1, 800):
        simulation.advance(until)
        seen.append(row[WINDOW_NOW])
    # Two cables of 50 us each way, two wires, switch and NICs.
    round_trip_us = 4 * 50 + 2 * 2.9 + 4 * 0.5
    first, second, third = (
        next(us for us, window in enumerate(seen) if window >= w) for w in (12, 24, 48)
    )
    assert first == pytest.approx(round_trip_us, abs=8)
    assert second - first == pytest.approx(round_trip_us, rel=0.1)
    assert third - second == pytest.approx(round_trip_us, rel=0.1)


def test_losses_are_repaired_without_a_time_out():
    site = star(4, SMALL_BUFFER)
    flows = senders(site, 3, message_bytes=8948 * 3_000, messages=1)
    simulation = prepare(site, states_of(site), flows, SimOptions(100_000, sample_us=100))
    simulation.advance(100_000)
    result = simulation.result()
    assert total(result.counters, "queue_drops") == dropped(result) > 100
    assert [len(times) for times in result.messages_us] == [1, 1, 1]
    # Three times 27 MB at 25 Gbit/s take 26 ms; a time-out alone would take 200 ms.
    assert max(times[0] for times in result.messages_us) < 35_000
    np.testing.assert_allclose(result.goodput_bps * 0.1 / 8, 8948 * 3_000)
    assert simulation.arena.m[FREE_COUNT] == simulation.arena.packets


def test_a_lost_end_waits_for_the_time_out():
    site = star(2)
    states = states_of(site)
    port = site.topology.peer(site.topology.endpoints[1])

    def small(p):
        return dataclasses.replace(p, mtu_bytes=1500) if p.name == port.port else p

    change_all(states, small, "switch")
    flow = senders(site, 1, message_bytes=8948, messages=1)
    result = simulate(site, states, flow, SimOptions(1_500_000, sample_us=1_000))
    # At 0, 200 ms, and twice as long each time: 600, 1400.
    assert total(result.counters, "tx_packets", site.topology.endpoints[1]) == 4


def test_flows_share_a_lossy_bottleneck():
    site = star(5, SMALL_BUFFER)
    result = simulate(
        site, states_of(site), senders(site, 4), SimOptions(300_000, 50_000, sample_us=100)
    )
    assert result.goodput_bps.sum() > 0.97 * TCP_BPS
    assert jain(result.goodput_bps) > 0.7
    assert dropped(result) > 0


def one_window():
    """A CUBIC connection with a window of 100 segments in congestion avoidance."""
    site = star(2)
    simulation = prepare(site, states_of(site), senders(site, 1), SimOptions(100))
    m, q = simulation.arena.m, simulation.arena.qp(0)
    return m, m.view(np.float64), q


def test_cubic_cuts_to_seven_tenths_and_comes_back_after_k_seconds():
    from numba import njit  # the engine's functions take a pointer

    from fabric.sim.engine.pointer import words

    @njit
    def lose(memory, q):
        cut(words(memory), q)

    @njit
    def acknowledge(memory, q, now):
        grow(words(memory), q, 1, now)

    m, f, q = one_window()
    f[q + WINDOW_NOW], f[q + WINDOW_MOST] = 1_000.0, 5_000.0
    lose(m, q)
    assert f[q + WINDOW_NOW] == pytest.approx(700)
    assert f[q + WINDOW_BEFORE] == 1_000
    # RFC 9438: K = cbrt(W_max (1 - beta) / C) = cbrt(750) = 9.086 s; the curve is
    # W_max + 0.4 (t - K)^3, approached by (target - cwnd) / cwnd for each ACK.
    start = 10**12
    acknowledge(m, q, start)
    k_s = (300 / 0.4) ** (1 / 3)
    for t in (2.0, 6.0, k_s):
        f[q + WINDOW_NOW] = 700.0
        for _ in range(20_000):
            acknowledge(m, q, start + round(t * 1e12))
            if f[q + WINDOW_NOW] >= 1_000 + 0.4 * (t - k_s) ** 3 - 0.01:
                break
        else:
            raise AssertionError("the window stays below the curve")
        assert m[q + TCP_EPOCH] == start
    assert m[q + TCP_RECOVERY] == 0


def test_dctcp_keeps_its_queue_near_the_threshold_and_drops_nothing():
    site = star(3, SMALL_BUFFER)
    states = states_of(site)
    change_all(states, marking(100_000, 100_000), "switch")
    flows = senders(site, 2, "dctcp")
    result = simulate(site, states, flows, SimOptions(60_000, 10_000))
    # Alizadeh et al., SIGCOMM 2010: the queue swings around K, by far less than K.
    assert result.goodput_bps.sum() > 0.99 * TCP_BPS
    assert dropped(result) == 0
    assert 50_000 < result.queues[0].mean_bytes < 150_000
    assert jain(result.goodput_bps) > 0.95
    cubic = simulate(site, states, senders(site, 2), SimOptions(60_000, 10_000))
    assert cubic.queues[0].mean_bytes > 5 * result.queues[0].mean_bytes
    assert total(cubic.counters, "ecn_marked_packets") == 0


def mixed(rdma, tcp, tcp_dscp=TCP, qps=4):
    """Senders of both kinds to one host, with the two-level flow control of the intent."""
    site = star(1 + rdma + tcp, SMALL_BUFFER)
    ends = site.topology.endpoints
    flows = [Flow(ends[1 + i], ends[0], ROCE, qps=qps) for i in range(rdma)]
    flows += [
        Flow(ends[1 + rdma + i], ends[0], tcp_dscp, 8948 * 16, qps=qps, transport="tcp")
        for i in range(tcp)
    ]
    result = simulate(site, states_of(site), flows, SimOptions(60_000, 20_000, sample_us=100))
    return result, result.goodput_bps[:rdma].sum(), result.goodput_bps[rdma:].sum()


@pytest.mark.parametrize(("rdma", "tcp"), [(1, 6), (6, 1), (3, 3)])
def test_two_levels_of_flow_control_keep_each_class_its_share(rdma, tcp):
    result, rdma_bps, tcp_bps = mixed(rdma, tcp)
    assert rdma_bps == pytest.approx(12.25e9, rel=0.05)
    assert tcp_bps == pytest.approx(12.37e9, rel=0.05)
    # TCP is held by losses in its own queue, RDMA by pauses and CNPs in its own.
    assert total(result.counters, "queue_drops") == dropped(result) > 0
    lost = {c.priority for c in result.counters if c.name in ("queue_drops", "rx_prio_discards")}
    assert lost == {0}
    paused = {c.priority for c in result.counters if c.name == "rx_pause_frames"}
    assert paused <= {3}
    assert total(result.counters, "out_of_sequence") == 0


def test_tcp_in_the_lossless_queue_takes_rdmas_share_and_pauses_it():
    apart, rdma_apart, _ = mixed(1, 6)
    together, rdma_together, tcp_together = mixed(1, 6, tcp_dscp=ROCE)
    assert rdma_together < 0.3 * rdma_apart
    assert tcp_together > 2 * rdma_together
    assert dropped(together) == 0
    assert total(together.counters, "rx_pause_us") > 5 * total(apart.counters, "rx_pause_us")


def test_tcp_leaves_the_latency_of_rdma_alone_in_its_own_class_only():
    site = star(6)
    ends = site.topology.endpoints
    states = states_of(site)
    change_all(states, without_dcqcn, "host")
    change_all(states, without_ecn, "switch")
    ping = Flow(ends[5], ends[0], ROCE, message_bytes=64, kind="ping", gap_us=50)

    def median_us(flows):
        result = simulate(site, states, [ping, *flows], SimOptions(20_000, 5_000))
        return float(np.median(result.messages_us[0]))

    alone = median_us([])
    beside = median_us(senders(site, 4))
    mixed_in = median_us(senders(site, 4, dscp=ROCE))
    assert beside < alone + 2 * (9000 + 38) * 8 / 25e3  # behind a segment each way at most
    assert mixed_in > 10 * beside


def test_a_tcp_ping_is_refused():
    site = star(2)
    flow = dataclasses.replace(senders(site, 1)[0], kind="ping")
    with pytest.raises(InputError, match="a ping is RDMA"):
        simulate(site, states_of(site), [flow], SimOptions(100))
