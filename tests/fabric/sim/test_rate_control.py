"""DCQCN against its own equations, and against another simulator's order of magnitude."""

import dataclasses

import numpy as np
import pytest

from fabric.sim.api import Flow, SimOptions
from fabric.sim.engine.heap import push
from fabric.sim.engine.layout import (
    CNP,
    EVENT_ARRIVE,
    FREE,
    FREE_COUNT,
    PACKET_AT,
    PACKET_IP,
    PACKET_KIND_SHIFT,
    PACKET_NEXT,
    PACKET_QP,
    PACKET_TOS,
    PS_PER_US,
    RATE_ALPHA,
    RATE_NOW,
    RATE_TARGET,
)
from fabric.sim.run import jain, prepare, simulate
from tests.fabric.sim.scenario import (
    ROCE,
    change,
    change_all,
    incast,
    star,
    states_of,
    total,
)

G = 1 - 1020 / 1024


def one_flow(**dcqcn):
    site = star(2)
    states = states_of(site)
    ends = site.topology.endpoints

    def edit(port):
        changed = dataclasses.replace(port.nic.dcqcn, **dcqcn)
        return dataclasses.replace(port, nic=dataclasses.replace(port.nic, dcqcn=changed))

    change(states, edit, ends[0])
    return prepare(site, states, [Flow(ends[0], ends[1], ROCE)], SimOptions(5_000))


def send_cnp(simulation, at_us):
    """A CNP for the only queue pair reaches its sender at this time."""
    m = simulation.arena.m
    k = int(m[FREE])
    m[FREE] = m[k + PACKET_NEXT]
    m[FREE_COUNT] -= 1
    m[k + PACKET_QP] = simulation.arena.qp(0)
    m[k + PACKET_IP], m[k + PACKET_TOS] = 60, CNP << PACKET_KIND_SHIFT | 48 << 2
    m[k + PACKET_AT] = simulation.arena.port(0)
    push.py_func(m, round(at_us * PS_PER_US), EVENT_ARRIVE, k)


def rates(simulation):
    row = simulation.arena.qp_table()[0].view(np.float64)
    return row[RATE_NOW] / 1e9, row[RATE_TARGET] / 1e9, row[RATE_ALPHA]


def test_first_cnp_halves_the_rate_and_fast_recovery_closes_half_the_gap_each_time():
    simulation = one_flow()
    send_cnp(simulation, 100)
    simulation.advance(99)
    assert rates(simulation)[:2] == (25, 25)
    simulation.advance(101)
    now, target, alpha = rates(simulation)
    assert alpha == 1023 / 1024
    assert now == 25 * (1 - alpha / 2)
    assert target == 25
    for stage in range(1, 6):
        simulation.advance(100 + 55 * stage + 1)
        now = (now + target) / 2
        assert rates(simulation)[0] == pytest.approx(now, rel=1e-12)


def test_alpha_rises_with_a_cnp_and_decays_without():
    simulation = one_flow()
    send_cnp(simulation, 100)
    send_cnp(simulation, 1_000)
    simulation.advance(1_001)
    # 16 intervals of 55 us: one with the first CNP, fifteen without any.
    alpha = ((1 - G) * 1023 / 1024 + G) * (1 - G) ** 15
    assert rates(simulation)[2] == pytest.approx(alpha, rel=1e-12)


def test_second_cut_moves_the_target_to_the_recovered_rate():
    simulation = one_flow()
    send_cnp(simulation, 100)
    send_cnp(simulation, 160)  # after one recovery stage
    simulation.advance(161)
    recovered = (25 * (1 - 1023 / 2048) + 25) / 2
    now, target, alpha = rates(simulation)
    assert target == pytest.approx(recovered)
    assert now == pytest.approx(recovered * (1 - alpha / 2))


def test_cuts_keep_their_distance():
    simulation = one_flow(rate_reduce_interval_us=50, time_reset_us=500)
    for at in (100, 110, 120):
        send_cnp(simulation, at)
    simulation.advance(149)
    once = rates(simulation)[0]
    assert once == pytest.approx(25 * (1 - 1023 / 2048))
    simulation.advance(151)
    assert rates(simulation)[0] == pytest.approx(once / 2, rel=0.01)


def test_additive_increase_follows_fast_recovery():
    simulation = one_flow(ai_rate_mbps=40, hai_rate_mbps=40)
    send_cnp(simulation, 100)
    send_cnp(simulation, 160)
    simulation.advance(161)
    target = rates(simulation)[1]
    # Five stages of fast recovery, then 40 Mbit/s each.
    for stage, raised in ((5, 0), (6, 0.040), (7, 0.080), (8, 0.120)):
        simulation.advance(160 + 55 * stage + 1)
        assert rates(simulation)[1] == pytest.approx(target + raised, rel=1e-9)


def test_hyper_increase_needs_timer_and_byte_counter():
    simulation = one_flow(fast_recovery_stages=1, byte_reset=50_000, hai_rate_mbps=200)
    for at in (100, 160, 215):
        send_cnp(simulation, at)
    simulation.advance(216)
    before = rates(simulation)[1]
    simulation.advance(216 + 300)
    assert rates(simulation)[1] - before > 5 * 0.2


def test_first_cnp_may_set_a_rate():
    simulation = one_flow(rate_to_set_on_first_cnp_mbps=3_000)
    send_cnp(simulation, 100)
    simulation.advance(101)
    assert rates(simulation)[0] == 3


def test_rate_never_falls_below_the_minimum():
    simulation = one_flow(min_rate_mbps=1_000, time_reset_us=10_000)
    for number in range(20):
        send_cnp(simulation, 100 + 50 * number)
    simulation.advance(1_200)
    assert rates(simulation)[0] == 1


def test_pacing_follows_the_rate():
    simulation = one_flow(time_reset_us=4_000)
    send_cnp(simulation, 1_000)
    simulation.advance(5_000)
    result = simulation.result()
    before = result.goodput_series_bps[0, 10:90].mean()
    after = result.goodput_series_bps[0, 110:490].mean()
    assert after / before == pytest.approx(1 - 1023 / 2048, rel=0.01)


def test_np_interval_bounds_the_cnps_of_each_queue_pair():
    site = star(3)
    result = simulate(site, states_of(site), incast(site, qps=2), SimOptions(5_000))
    assert 0 < total(result.counters, "np_cnp_sent") <= 4 * (5_000 / 50 + 1)
    handled = total(result.counters, "rp_cnp_handled")
    assert handled == pytest.approx(total(result.counters, "np_cnp_sent"), abs=2)


# shared reference: ns-3 (HPCC), star of 25G with 1 us links, K1, 100 ms; rows
# a2-K1-P1, a2-K1-P2, a8-K1-P1 of results.csv: goodput as a fraction of what the
# wire carries there (23.881 Gbit/s), Jain index, mean queue in KB.
PEER = {
    (2, "P1"): (0.974, 0.999, 65.6),
    (2, "P2"): (0.987, 0.988, 72.9),
    (8, "P1"): (0.961, 0.998, 134.0),
    (8, "P2"): (0.995, 0.965, 218.1),
}
SETS = {
    "P1": {
        "alpha_update_interval_us": 1,
        "rate_reduce_interval_us": 4,
        "min_time_between_cnps_us": 4,
        "time_reset_us": 300,
        "fast_recovery_stages": 1,
        "ai_rate_mbps": 5,
        "hai_rate_mbps": 50,
    },
    "P2": {},
}


@pytest.mark.parametrize(("senders", "dcqcn"), PEER)
def test_incast_is_near_the_peers_results(senders, dcqcn):
    site = star(senders + 1, ("length_m: 3", "length_m: 200"))
    states = states_of(site)

    def edit(port):
        changed = dataclasses.replace(port.nic.dcqcn, byte_reset=0, **SETS[dcqcn])
        return dataclasses.replace(
            port, mtu_bytes=1500, nic=dataclasses.replace(port.nic, dcqcn=changed)
        )

    change_all(states, edit, "host")
    result = simulate(site, states, incast(site), SimOptions(60_000, 10_000, sample_us=20))
    goodput, fairness, queue_kb = PEER[senders, dcqcn]
    print(senders, dcqcn, result.goodput_bps.sum(), jain(result.goodput_bps), result.queues[0])
    wire = 25e9 * 1024 / (1024 + 82 + 0.25)
    assert result.goodput_bps.sum() / wire == pytest.approx(goodput, abs=0.05)
    assert jain(result.goodput_bps) == pytest.approx(fairness, abs=0.05)
    assert result.queues[0].mean_bytes / 1e3 == pytest.approx(queue_kb, rel=0.5)


@pytest.mark.parametrize(("gd_log2", "least"), [(11, 0.5), (10, 0.0), (10, 0.5)])
def test_gd_and_the_least_rest_say_how_deep_a_cut_is(gd_log2, least):
    simulation = one_flow(gd_log2=gd_log2, min_decrease_percent=round(100 * least))
    send_cnp(simulation, 100)
    simulation.advance(101)
    taken = 1023 / 1024 * 2 ** (10 - gd_log2)
    assert rates(simulation)[0] == pytest.approx(max(25 * max(1 - taken, least), 0.1), rel=1e-9)


@pytest.mark.parametrize(
    ("clamps", "follows"),
    [((0, 1), True), ((0, 0), False), ((1, 0), True)],
    ids=["after time", "never", "always"],
)
def test_clamps_say_whether_the_target_follows_a_cut(clamps, follows):
    always, after_time = clamps
    simulation = one_flow(clamp_target=always, clamp_target_after_time=after_time)
    send_cnp(simulation, 100)
    send_cnp(simulation, 160)  # after one stage of the timer
    simulation.advance(161)
    assert bool(rates(simulation)[1] < 25) is follows
