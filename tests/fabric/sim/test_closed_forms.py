"""Results that have a formula: marking, shares, pause quanta, rings, latency.

Numbers like R8 are those of the shared reference on simulation.
"""

import dataclasses

import numpy as np
import pytest

from fabric.headroom import MAX_PAUSE_QUANTA, headroom_bytes, pause_us
from fabric.qos import Ecn, IngressBuffer, Scheduler
from fabric.sim.api import Flow, SimOptions
from fabric.sim.engine.heap import push
from fabric.sim.engine.layout import EVENT_XOFF, INGRESS_WORDS, PORT_INGRESSES, PS_PER_US
from fabric.sim.run import prepare, simulate
from fabric.topology import ClosShape
from tests.fabric.sim.scenario import (
    ROCE,
    change,
    change_all,
    dropped,
    incast,
    site_of,
    star,
    states_of,
    total,
    with_tos,
    without_dcqcn,
)


def count(result, name, port, priority):
    """One counter of one class."""
    return sum(
        c.value
        for c in result.counters
        if (c.device, c.port, c.name, c.priority) == (*port, name, priority)
    )


@pytest.mark.parametrize(
    ("kmin", "kmax", "pmax"),
    [(100_000, 2_100_000, 5), (100_000, 1_100_000, 5), (0, 1_000_000, 50), (500_000, 700_000, 20)],
)
def test_marked_fraction_follows_the_linear_law(kmin, kmax, pmax):
    # R8: (q - Kmin) / (Kmax - Kmin) Pmax, with a queue that PFC alone holds at 580 KB.
    site = star(5)
    states = states_of(site)
    change_all(states, without_dcqcn, "host")

    def ecn(port):
        queues = tuple(
            dataclasses.replace(queue, ecn=Ecn(kmin, kmax, pmax) if queue.ecn else None)
            for queue in port.queues
        )
        return dataclasses.replace(port, queues=queues)

    change_all(states, ecn, "switch")
    result = simulate(site, states, incast(site), SimOptions(100_000, sample_us=1))
    port = result.queues[0].port
    assert port == site.topology.peer(site.topology.endpoints[0])
    law = np.clip((result.queue_series_bytes[0] - kmin) / (kmax - kmin), 0, 1) * pmax / 100
    packets = count(result, "tx_queue_packets", port, 3)
    marked = count(result, "ecn_marked_packets", port, 3)
    expected = float(law.mean())
    # Four standard deviations of that many draws, and what the ramp-up differs.
    tolerance = 4 * (expected * (1 - expected) / packets) ** 0.5 + 0.01 * expected
    assert marked / packets == pytest.approx(expected, abs=tolerance)
    assert marked > 200


def test_two_lossless_and_two_lossy_classes_get_a_quarter_each_under_overload():
    # R12, SONiC's oversubscription plan: DWRR 25 % each, lossless without loss.
    site = star(5)
    states = states_of(site)
    change_all(states, without_dcqcn, "host")
    classes = {26: 3, 34: 4, 0: 0, 8: 1}

    def edit(port):
        mapped = list(port.dscp_to_priority)
        for dscp, priority in classes.items():
            mapped[dscp] = priority
        by_class = {queue.traffic_class: queue for queue in port.queues}
        share = Scheduler("ets", 25)
        queues = [queue for tc, queue in by_class.items() if tc not in classes.values()]
        queues += [
            dataclasses.replace(by_class[tc], scheduler=share, ecn=None) for tc in classes.values()
        ]
        (buffer,) = port.ingress_buffers
        return dataclasses.replace(
            port,
            dscp_to_priority=tuple(mapped),
            pfc_priorities=(3, 4),
            queues=tuple(queues),
            ingress_buffers=(buffer, dataclasses.replace(buffer, priority=4)),
        )

    change_all(states, edit, "switch")
    change_all(states, edit, "host")
    ends = site.topology.endpoints
    change(states, with_tos(34 << 2 | 2), ends[2])
    flows = [Flow(ends[1], ends[0], 26), Flow(ends[2], ends[0], 34)]
    flows += [Flow(ends[3], ends[0], 0, transport="tcp", qps=4)]
    flows += [Flow(ends[4], ends[0], 8, transport="tcp", qps=4)]
    # TCP needs some time to fill its queues: the second half is measured.
    whole, half = (
        simulate(site, states, flows, SimOptions(until, sample_us=100))
        for until in (80_000, 40_000)
    )
    port = site.topology.peer(ends[0])
    sent = {
        priority: count(whole, "tx_queue_bytes", port, priority)
        - count(half, "tx_queue_bytes", port, priority)
        for priority in classes.values()
    }
    for priority in classes.values():
        assert sent[priority] / sum(sent.values()) == pytest.approx(0.25, abs=0.005)
    lost = {c.priority for c in whole.counters if c.name in ("queue_drops", "rx_prio_discards")}
    assert lost <= {0, 1}
    assert lost
    assert total(whole.counters, "out_of_sequence") == 0


@pytest.mark.parametrize(("speed", "held_us"), [(40, 838.84), (100, 335.54)])
def test_the_longest_pause_lasts_65535_quanta(speed, held_us):
    # R9, and its 100 Gbit/s neighbour.
    shape = ClosShape(hosts=2, leaves=1, spines=0, host_speed_bps=speed * 10**9)
    site = site_of(shape) if speed == 100 else site_of(shape, ("    25G:  {", "    40G:  {"))
    ends = site.topology.endpoints
    simulation = prepare(site, states_of(site), [Flow(ends[0], ends[1], ROCE)], SimOptions(2_000))
    ingress = simulation.arena.port(0) + PORT_INGRESSES + 3 * INGRESS_WORDS
    push.py_func(simulation.arena.m, 500 * PS_PER_US, EVENT_XOFF, ingress)
    simulation.advance(2_000)
    assert pause_us(MAX_PAUSE_QUANTA, speed * 10**9) == pytest.approx(held_us, abs=0.01)
    assert total(simulation.result().counters, "rx_pause_us", ends[0]) == int(held_us)


@pytest.mark.parametrize("cable_m", [3, 100, 1_000])
@pytest.mark.parametrize("enough", [True, False])
def test_headroom_is_enough_at_every_cable_length_and_not_much_too_much(cable_m, enough):
    # R10. The largest packet on these links: 4096 with its headers.
    site = star(8, ("length_m: 3", f"length_m: {cable_m}"))
    states = states_of(site)
    change_all(states, without_dcqcn, "host")
    headroom = headroom_bytes(25 * 10**9, cable_m, 4096 + 44 + 16)
    if not enough:
        headroom = headroom // 2

    def edit(port):
        buffer = IngressBuffer(3, 150_000 + headroom, 150_000, 140_000)
        return dataclasses.replace(port, ingress_buffers=(buffer,))

    change_all(states, edit, "switch")
    result = simulate(site, states, incast(site), SimOptions(4_000))
    assert (dropped(result) == 0) == enough


def test_a_ring_allreduce_takes_at_least_its_lower_bound_and_little_more():
    # R13: t >= 2 (n - 1) / n * S / B. Every host sends 2 (n - 1) chunks, one by one.
    site = site_of()
    ends = site.topology.endpoints
    n, size = len(ends), 16_000_000
    flows = [
        Flow(ends[i], ends[(i + 1) % n], ROCE, size // n, 2 * (n - 1), gap_us=1e-6)
        for i in range(n)
    ]
    result = simulate(site, states_of(site), flows, SimOptions(20_000))
    took_s = max(times.sum() for times in result.messages_us) / 1e6
    bound_s = 2 * (n - 1) / n * size / (25e9 / 8)
    assert [len(times) for times in result.messages_us] == [2 * (n - 1)] * n
    assert bound_s < took_s < 1.06 * bound_s
    assert dropped(result) == 0


def test_a_small_message_over_two_tiers_of_100g_takes_2081_ns():
    # R14: 2 bytes, four pipes of 515 ns.
    shape = ClosShape(hosts=4, leaves=2, spines=1, host_speed_bps=100 * 10**9, uplink_cable_m=3)
    site = site_of(shape)
    ends = site.topology.endpoints
    flow = Flow(ends[0], ends[3], ROCE, message_bytes=2, messages=1, kind="ping")
    times = simulate(site, states_of(site), [flow], SimOptions(50)).messages_us[0]
    assert times[0] == pytest.approx(2.081, abs=0.02)


def test_a_single_flow_at_100g_has_its_published_goodput():
    # R14: 97.75 Gbit/s; ours differs by the reference's own framing.
    shape = ClosShape(hosts=2, leaves=1, spines=0, host_speed_bps=100 * 10**9)
    site = site_of(shape)
    ends = site.topology.endpoints
    result = simulate(site, states_of(site), [Flow(ends[0], ends[1], ROCE)], SimOptions(2_000, 500))
    assert result.goodput_bps[0] == pytest.approx(97.75e9, rel=0.005)
