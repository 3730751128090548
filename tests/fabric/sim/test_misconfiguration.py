"""Wrong settings of one device have their physical consequence."""

import dataclasses

import pytest

from fabric.sim.api import Flow, SimOptions
from fabric.sim.run import jain, simulate
from tests.fabric.sim.scenario import (
    ROCE,
    change,
    change_all,
    dropped,
    incast,
    reset_nic,
    site_of,
    star,
    states_of,
    total,
    with_tos,
    without_dcqcn,
    without_ecn,
)


def test_wrong_dscp_map_at_a_nic_makes_it_ignore_pauses_and_lose_packets():
    site = star(8)
    states = states_of(site)
    sender = site.topology.endpoints[3]
    wrong = list(states[sender.device].ports[0].dscp_to_priority)
    wrong[ROCE] = 0
    change(states, lambda port: dataclasses.replace(port, dscp_to_priority=tuple(wrong)), sender)
    result = simulate(site, states, incast(site), SimOptions(3_000))
    port = site.topology.peer(sender)
    assert total(result.counters, "rx_discards", port) == dropped(result) > 0
    # The switch asks, the NIC hears it, and goes on: it sends in priority 0.
    assert total(result.counters, "rx_pause_frames", sender) > 0
    assert sum(c.value for c in result.counters if sent(c, sender, 0)) > 100
    # Its reaction point is not enabled in that priority.
    assert total(result.counters, "rp_cnp_ignored", sender) > 0
    assert total(result.counters, "rp_cnp_handled", sender) == 0


def sent(counter, port, priority):
    return (counter.device, counter.port, counter.name, counter.priority) == (
        *port,
        "tx_prio_packets",
        priority,
    )


def test_reset_nic_sends_unmarked_in_priority_0_and_takes_more_than_its_share():
    site = star(8)
    states = states_of(site)
    sender = site.topology.endpoints[3]
    change(states, reset_nic, sender)
    result = simulate(site, states, incast(site), SimOptions(10_000, 2_000))
    flow = next(i for i, flow in enumerate(result.flows) if flow.source == sender)
    assert result.goodput_bps[flow] > 2.5 * result.goodput_bps.mean()
    assert jain(result.goodput_bps) < 0.9
    assert total(result.counters, "np_ecn_marked_packets") > 0
    port = site.topology.peer(sender)
    received = {c.priority for c in result.counters if (c.device, c.port) == tuple(port)
                if c.name == "rx_prio_packets"}  # fmt: skip
    assert received == {0}
    assert any(str(sender) in note and "DSCP 0" in note for note in result.notes)


def test_small_switch_mtu_drops_every_full_packet():
    site = site_of()
    states = states_of(site)
    ends = site.topology.endpoints
    port = site.topology.peer(ends[0])
    change(states, lambda p: dataclasses.replace(p, mtu_bytes=1500), port)
    result = simulate(site, states, [Flow(ends[0], ends[1], ROCE)], SimOptions(1_000))
    assert result.goodput_bps[0] == 0
    lost = total(result.counters, "rx_mtu_drops", port)
    assert lost == total(result.counters, "rx_discards", port) > 100
    assert total(result.counters, "tx_packets", ends[0]) - lost in (0, 1)  # one on the wire


def test_small_class_mtu_drops_that_class_only():
    site = site_of()
    states = states_of(site)
    ends = site.topology.endpoints
    port = site.topology.peer(ends[0])
    small = (9216, 9216, 9216, 2000, 9216, 9216, 9216, 9216)
    change(states, lambda p: dataclasses.replace(p, class_mtu_bytes=small), port)
    flow = Flow(ends[0], ends[1], ROCE)
    result = simulate(site, states, [flow], SimOptions(1_000))
    assert result.goodput_bps[0] == 0
    change(states, with_tos(0), ends[0])
    assert simulate(site, states, [flow], SimOptions(1_000)).goodput_bps[0] > 20e9


def test_a_small_host_mtu_shrinks_the_packets_of_both_ends():
    site = site_of()
    states = states_of(site)
    ends = site.topology.endpoints
    change(states, lambda p: dataclasses.replace(p, mtu_bytes=1500), ends[1])
    result = simulate(site, states, [Flow(ends[0], ends[1], ROCE)], SimOptions(1_000, 200))
    # 1024 bytes of payload: more of the wire is headers.
    assert result.goodput_bps[0] == pytest.approx(25e9 * 1024 / (1024 + 82 + 0.25), rel=0.005)
    assert dropped(result) == 0


@pytest.mark.parametrize("side", ["nic", "switch"])
def test_link_pause_does_not_understand_pfc(side):
    site = star(8)
    states = states_of(site)
    sender = site.topology.endpoints[3]
    port = site.topology.peer(sender)
    # Without DCQCN, so that nothing but pause frames holds the sender back.
    change_all(states, without_dcqcn, "host")
    faulty = sender if side == "nic" else port
    change(states, lambda p: dataclasses.replace(p, link_pause=True), faulty)
    result = simulate(site, states, incast(site), SimOptions(3_000))
    assert total(result.counters, "rx_pause_us", sender) == 0
    assert total(result.counters, "rx_discards", port) == dropped(result) > 0


def test_notification_point_off_means_no_cnp():
    site = star(8)
    states = states_of(site)
    target = site.topology.endpoints[0]

    def np_off(port):
        dcqcn = dataclasses.replace(port.nic.dcqcn, np_priorities=())
        return dataclasses.replace(port, nic=dataclasses.replace(port.nic, dcqcn=dcqcn))

    change(states, np_off, target)
    result = simulate(site, states, incast(site), SimOptions(5_000))
    assert total(result.counters, "np_ecn_marked_packets", target) > 100
    assert total(result.counters, "np_cnp_sent") == 0
    assert dropped(result) == 0


def test_unmarked_traffic_is_never_marked():
    site = star(8)
    states = states_of(site)
    change_all(states, with_tos(ROCE << 2), "host")
    result = simulate(site, states, incast(site), SimOptions(3_000))
    assert total(result.counters, "ecn_marked_packets") == 0
    assert total(result.counters, "np_cnp_sent") == 0


def test_lossy_class_drops_beyond_the_free_buffer():
    # Choudhury & Hahne with alpha 1: one queue may take half of the pool.
    site = star(8, ("buffer: 40MB", "buffer: 4MB"))
    states = states_of(site)
    change_all(states, with_tos(0), "host")
    change_all(states, without_ecn, "switch")
    result = simulate(site, states, incast(site), SimOptions(3_000))
    assert total(result.counters, "queue_drops") == dropped(result) > 0
    pool = 4e6 - sum(
        buffer.size_bytes for port in states["leaf1"].ports for buffer in port.ingress_buffers
    )
    assert result.queues[0].max_bytes == pytest.approx(pool / 2, rel=0.01)
    assert total(result.counters, "rx_pause_frames") == 0
