"""An incast with PFC loses nothing; take one piece away and it does."""

import dataclasses

import numpy as np
import pytest

from fabric.headroom import headroom_bytes
from fabric.sim.api import Flow, SimOptions
from fabric.sim.engine.layout import INGRESS_MAX
from fabric.sim.run import jain, prepare, simulate
from tests.fabric.sim.scenario import (
    CLOS,
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

ROCE_PACKET = 4096 + 44 + 16


@pytest.mark.parametrize("qps", [1, 4])
def test_incast_of_all_hosts_is_lossless_fair_and_fills_the_wire(qps):
    site = site_of()
    result = simulate(site, states_of(site), incast(site, qps=qps), SimOptions(40_000, 8_000))
    assert dropped(result) == 0
    assert total(result.counters, "out_of_sequence") == 0
    assert 0.9 * PAYLOAD_BPS <= result.goodput_bps.sum() <= 1.0001 * PAYLOAD_BPS
    assert jain(result.goodput_bps) >= 0.9
    assert total(result.counters, "rx_pause_us") > 0
    assert total(result.counters, "np_cnp_sent") > 0


def test_pauses_belong_to_the_start_of_an_incast():
    site = site_of()
    at_start = simulate(site, states_of(site), incast(site), SimOptions(3_000))
    longer = simulate(site, states_of(site), incast(site), SimOptions(20_000))
    assert total(at_start.counters, "rx_pause_us") > 0
    assert total(longer.counters, "rx_pause_us") < 1.1 * total(at_start.counters, "rx_pause_us")


@pytest.mark.parametrize(("sender", "target"), [(1, 0), (3, 0), (5, 4), (13, 12)])
@pytest.mark.parametrize("qps", [1, 4])
def test_one_leaf_port_without_pfc_drops_there_and_only_there(sender, target, qps):
    site = site_of()
    states = states_of(site)
    port = site.topology.peer(site.topology.endpoints[sender])
    change(states, without_pfc, port)
    result = simulate(site, states, incast(site, target, qps=qps), SimOptions(5_000))
    lost = total(result.counters, "rx_discards", port)
    assert lost > 0
    assert dropped(result) == lost
    assert total(result.counters, "rx_prio_discards", port) == lost
    assert total(result.counters, "packet_seq_err", site.topology.endpoints[sender]) > 0


def test_port_without_pfc_also_drops_towards_other_leaves():
    site = site_of()
    states = states_of(site)
    port = site.topology.peer(site.topology.endpoints[1])
    change(states, without_pfc, port)
    result = simulate(site, states, incast(site, 8, qps=4), SimOptions(5_000))
    assert total(result.counters, "rx_discards", port) == dropped(result) > 0


def pfc_only(site):
    states = states_of(site)
    change_all(states, without_ecn, "switch")
    change_all(states, without_dcqcn, "host")
    return states


def with_headroom(headroom):
    def edit(port):
        buffers = tuple(
            dataclasses.replace(buffer, size_bytes=buffer.xoff_bytes + headroom)
            for buffer in port.ingress_buffers
        )
        return dataclasses.replace(port, ingress_buffers=buffers)

    return edit


def most_held(simulation):
    return int(simulation.arena.ingress_table()[..., INGRESS_MAX].max())


def test_computed_headroom_is_enough_and_not_wasteful():
    site = star(8)
    states = pfc_only(site)
    # For the largest packet that is really on these links.
    headroom = headroom_bytes(25 * 10**9, 3, ROCE_PACKET)
    change_all(states, with_headroom(headroom), "switch")
    simulation = prepare(site, states, incast(site), SimOptions(3_000))
    simulation.advance(3_000)
    assert dropped(simulation.result()) == 0
    used = most_held(simulation) - 150_000
    assert 0.5 * headroom < used <= headroom


@pytest.mark.parametrize("headroom", [0, 4_000])
def test_incast_drops_without_enough_headroom(headroom):
    site = star(8)
    states = pfc_only(site)
    change_all(states, with_headroom(headroom), "switch")
    assert dropped(simulate(site, states, incast(site), SimOptions(3_000))) > 0


def test_without_ecn_there_are_no_cnps_and_much_more_pause():
    site = site_of()
    states = states_of(site)
    with_ecn = simulate(site, states, incast(site), SimOptions(10_000, 2_000))
    change_all(states, without_ecn, "switch")
    no_ecn = simulate(site, states, incast(site), SimOptions(10_000, 2_000))
    assert total(no_ecn.counters, "np_cnp_sent") == 0
    assert total(no_ecn.counters, "ecn_marked_packets") == 0
    assert dropped(no_ecn) == 0
    assert total(no_ecn.counters, "rx_pause_us") > 5 * total(with_ecn.counters, "rx_pause_us")


@pytest.mark.parametrize("senders", [2, 8])
def test_pfc_alone_fills_the_wire_and_the_buffers(senders):
    site = star(senders + 1)
    result = simulate(site, pfc_only(site), incast(site), SimOptions(4_000, 1_000))
    assert result.goodput_bps.sum() == pytest.approx(PAYLOAD_BPS, rel=0.01)
    assert jain(result.goodput_bps) > 0.99
    bottleneck = result.queues[0]
    assert bottleneck.port == site.topology.peer(site.topology.endpoints[0])
    # Every sender's ingress hovers between XON (140 KB) and XOFF plus headroom.
    assert 135e3 * senders < bottleneck.mean_bytes < 165e3 * senders


def test_dynamic_thresholds_share_the_buffer_as_their_closed_form_says():
    # N ingresses at alpha * (B - N x) each: x = alpha B / (1 + N alpha).
    site = star(9, ("buffer: 40MB", "buffer: 12MB"))
    states = pfc_only(site)

    def dynamic(port):
        buffers = tuple(dataclasses.replace(buffer, alpha=0.125) for buffer in port.ingress_buffers)
        return dataclasses.replace(port, ingress_buffers=buffers)

    change_all(states, dynamic, "switch")
    simulation = prepare(site, states, incast(site), SimOptions(9_000, 6_000))
    simulation.advance(9_000)
    result = simulation.result()
    pool = 12e6 - 9 * headroom_bytes(25 * 10**9, 3, 9216)
    expected = 8 * 0.125 * pool / (1 + 8 * 0.125)
    assert dropped(result) == 0
    assert result.queues[0].mean_bytes == pytest.approx(expected, rel=0.03)


def test_two_long_flows_share_a_bottleneck():
    site = star(3)
    result = simulate(site, states_of(site), incast(site), SimOptions(40_000, 10_000))
    assert result.goodput_bps.sum() > 0.98 * PAYLOAD_BPS
    assert result.goodput_bps[0] == pytest.approx(result.goodput_bps[1], rel=0.08)


def test_disjoint_pairs_all_run_at_line_rate():
    site = site_of(CLOS)
    ends = site.topology.endpoints
    flows = [Flow(ends[i], ends[15 - i], ROCE) for i in range(8)]
    result = simulate(site, states_of(site), flows, SimOptions(1_000, 200))
    np.testing.assert_allclose(result.goodput_bps, PAYLOAD_BPS, rtol=0.01)
    assert dropped(result) == 0
    assert total(result.counters, "rx_pause_frames") == 0


def test_a_paused_uplink_makes_a_victim():
    # Head-of-line blocking: a flow to an idle host suffers when the incast's
    # pauses reach the spine port that it shares; with ECN it suffers less.
    site = site_of()
    ends = site.topology.endpoints
    flows = [*incast(site, qps=4), Flow(ends[15], ends[1], ROCE)]
    states = states_of(site)
    with_ecn = simulate(site, states, flows, SimOptions(10_000, 4_000)).goodput_bps[-1]
    change_all(states, without_ecn, "switch")
    no_ecn = simulate(site, states, flows, SimOptions(10_000, 4_000)).goodput_bps[-1]
    assert no_ecn < 0.5 * with_ecn
