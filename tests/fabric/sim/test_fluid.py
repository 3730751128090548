"""DCQCN against the fluid model of its paper (R1-R5, R11 of the shared reference).

A fluid has no packets: marks are spread evenly, so that each one counts. Real marks
come in bursts within one CNP interval, so that a packet simulation needs more of
them and keeps a longer queue. Each tolerance says by how much.
"""

import dataclasses

import numpy as np
import pytest

from fabric.qos import Ecn
from fabric.sim.api import Flow, SimOptions
from fabric.sim.engine.heap import push
from fabric.sim.engine.layout import (
    EVENT_RATE_TIMER,
    PS_PER_US,
    RATE_ALPHA,
    RATE_NOW,
    RATE_TARGET,
    RP_ACTIVE,
    RP_TIMER_AT,
    RP_TIMER_SET,
)
from fabric.sim.run import jain, prepare, simulate
from fabric.topology import ClosShape
from tests.fabric.sim.scenario import ROCE, change_all, incast, site_of, states_of, total

KMIN, KMAX = 5_000, 200_000
TIMER_US = 55


def paper(senders):
    """The paper's set at 40 Gbit/s: packets of 1024, deep static buffers, so that PFC is idle."""
    shape = ClosShape(hosts=senders + 1, leaves=1, spines=0, host_speed_bps=40 * 10**9)
    site = site_of(shape, ("    25G:  {", "    40G:  {"))
    states = states_of(site)

    def switch(port):
        queues = tuple(
            dataclasses.replace(queue, ecn=Ecn(KMIN, KMAX, 1) if queue.ecn else None)
            for queue in port.queues
        )
        buffers = tuple(
            dataclasses.replace(b, xoff_bytes=1_500_000, xon_bytes=1_490_000, size_bytes=1_600_000)
            for b in port.ingress_buffers
        )
        return dataclasses.replace(port, queues=queues, ingress_buffers=buffers)

    def host(port):
        dcqcn = dataclasses.replace(
            port.nic.dcqcn,
            min_time_between_cnps_us=50,
            rate_reduce_interval_us=50,
            alpha_update_interval_us=55,
            time_reset_us=TIMER_US,
            byte_reset=10_000_000,
            fast_recovery_stages=5,
            ai_rate_mbps=40,
            hai_rate_mbps=40,
            min_rate_mbps=10,
            g_of_1024=1020,
        )
        return dataclasses.replace(
            port, mtu_bytes=1500, nic=dataclasses.replace(port.nic, dcqcn=dcqcn)
        )

    change_all(states, switch, "switch")
    change_all(states, host, "host")
    return site, states


@pytest.mark.parametrize(("senders", "fluid_kb"), [(2, 20.2), (4, 41.8), (10, 122.6)])
def test_queue_is_near_the_fluids_fixed_point(senders, fluid_kb):
    # R1-R3. Bursts of marks: up to half above the fluid, never below.
    site, states = paper(senders)
    result = simulate(site, states, incast(site), SimOptions(200_000, 60_000))
    queue_kb = result.queues[0].mean_bytes / 1e3
    assert fluid_kb < queue_kb < 1.5 * fluid_kb
    assert jain(result.goodput_bps) > 0.99
    assert result.goodput_bps.sum() > 0.99 * 40e9 * 1024 / (1024 + 82 + 0.25)
    assert total(result.counters, "rx_pause_frames") == 0


def test_without_a_linear_fixed_point_the_queue_stays_at_kmax():
    # R4: 16 senders would need more than Pmax.
    site, states = paper(16)
    result = simulate(site, states, incast(site), SimOptions(200_000, 60_000))
    assert result.queues[0].p50_bytes == pytest.approx(KMAX, rel=0.06)
    assert result.queues[0].mean_bytes == pytest.approx(KMAX, rel=0.08)


def test_two_flows_from_35_and_5_gbps_are_fair_after_the_fluids_time():
    # R5: within 10 % of fair after 31.6 ms. Single runs scatter; their mean does not.
    site, states = paper(2)
    shares = []
    for seed in range(1, 7):
        simulation = prepare(
            site, states, incast(site), SimOptions(70_000, sample_us=1_000, seed=seed)
        )
        m, rows = simulation.arena.m, simulation.arena.qp_table()
        for number, rate in enumerate((35e9, 5e9)):
            q = simulation.arena.qp(number)
            rows[number, RP_ACTIVE] = rows[number, RP_TIMER_SET] = 1
            rows[number, RP_TIMER_AT] = TIMER_US * PS_PER_US
            row = rows[number].view(np.float64)
            row[RATE_NOW] = row[RATE_TARGET] = rate
            row[RATE_ALPHA] = 1 / 16
            push.py_func(m, TIMER_US * PS_PER_US, EVENT_RATE_TIMER, q)
        simulation.advance(70_000)
        series = simulation.result().goodput_series_bps
        shares.append(series[0] / series.sum(axis=0))
    mean = np.mean(shares, axis=0)
    assert mean[1] > 0.8
    smooth = np.convolve(mean, np.ones(5) / 5, "valid")
    fair_ms = 2 + int(np.argmax(smooth < 0.55))
    assert fair_ms == pytest.approx(31.6, rel=0.35)
    assert abs(mean[50:].mean() - 0.5) < 0.04


def test_bursts_throttle_a_victim_that_shares_no_bottleneck_for_long_after():
    # R11, an ordering: F1 crosses a queue that bursts to another host fill for 1 ms, is
    # marked there, and leaves its own way half empty for many milliseconds.
    site = site_of()
    ends = site.topology.endpoints
    states = states_of(site)

    def ecn(port):
        queues = tuple(
            dataclasses.replace(queue, ecn=Ecn(5_000, 100_000, 1) if queue.ecn else None)
            for queue in port.queues
        )
        return dataclasses.replace(port, queues=queues)

    change_all(states, ecn, "switch")
    victim = Flow(ends[15], ends[1], ROCE)
    bursts = [
        Flow(end, ends[0], ROCE, 4096, 2, qps=64, start_us=3_000, gap_us=1) for end in ends[4:15]
    ]
    options = SimOptions(20_000, sample_us=100)
    series = simulate(site, states, [victim, *bursts], options).goodput_series_bps
    end = int(np.flatnonzero(series[1:].sum(axis=0))[-1])
    before = series[0, 5:29].mean()
    after = series[0, end + 1 : end + 41].mean()
    late = series[0, -20:].mean()
    alone = simulate(site, states, [victim], options).goodput_series_bps[0, -20:].mean()
    assert before == pytest.approx(alone, rel=0.01)
    assert after < 0.8 * before
    assert after < late
