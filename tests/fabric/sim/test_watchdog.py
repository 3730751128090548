"""PFC storms, what the watchdog does about them, and NICs that pause their switch."""

import dataclasses

import numpy as np
import pytest

from fabric.errors import InputError
from fabric.headroom import MAX_PAUSE_QUANTA, pause_us
from fabric.qos import Watchdog
from fabric.sim.api import Flow, LinkDown, PauseStorm, SimOptions, SlowReceiver
from fabric.sim.run import simulate
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
    without_dcqcn,
    without_ecn,
    without_pfc,
)

DETECT_MS, RESTORE_MS = 5, 8


def watched(site, action="drop", detect_ms=DETECT_MS, restore_ms=RESTORE_MS):
    """States in which every switch port has such a watchdog."""
    states = states_of(site)

    def edit(port):
        return dataclasses.replace(port, watchdog=Watchdog(detect_ms, restore_ms, action))

    change_all(states, edit, "switch")
    return states


def storm(site, start_us=1_000.0, end_us=None, target=0, states=None, flows=None, until_us=40_000):
    """A long flow to a NIC that storms, or other flows."""
    ends = site.topology.endpoints
    faults = (PauseStorm(ends[target], 3, start_us, end_us),)
    options = SimOptions(until_us, sample_us=100, faults=faults)
    return simulate(site, states, flows or [Flow(ends[1], ends[0], ROCE)], options)


def moving(result, flow=0):
    """The samples in which a flow got something."""
    return np.flatnonzero(result.goodput_series_bps[flow] > 0)


def test_a_storm_is_found_after_the_detection_time_and_its_queue_dropped():
    site = star(3)
    result = storm(site, states=watched(site))
    port = site.topology.peer(site.topology.endpoints[0])
    assert total(result.counters, "watchdog_storms", port) == 1
    assert total(result.counters, "queue_drops", port) == dropped(result) > 50
    # While it lasted the sender's own port was paused; nothing since the storm began.
    assert moving(result).max() == 10
    waited = total(result.counters, "rx_pause_us", port)
    assert waited == pytest.approx(DETECT_MS * 1000, rel=0.01)


def test_a_pause_shorter_than_the_detection_time_is_no_storm():
    site = star(3)
    result = storm(site, end_us=1_000 + DETECT_MS * 900, states=watched(site))
    assert total(result.counters, "watchdog_storms") == 0
    assert dropped(result) == 0
    assert moving(result).max() == 399


def test_a_storm_ends_when_no_pause_has_come_for_the_restoration_time():
    site = star(3)
    ends = site.topology.endpoints
    end_us = 20_000
    restored_us = end_us + RESTORE_MS * 1_000
    for start_us, lost in ((restored_us - 1_500, True), (restored_us + 100, False)):
        late = Flow(ends[1], ends[0], ROCE, start_us=start_us, message_bytes=4096, messages=1)
        result = storm(site, end_us=end_us, states=watched(site), flows=[late])
        assert (dropped(result) > 0) == lost
        assert len(result.messages_us[0]) == (not lost)


def test_forwarding_sends_in_spite_of_the_pauses():
    site = star(3)
    result = storm(site, states=watched(site, "forward"))
    assert total(result.counters, "watchdog_storms") == 1
    assert dropped(result) == 0
    quiet = np.setdiff1d(np.arange(400), moving(result))
    assert len(quiet) == pytest.approx(DETECT_MS * 10, abs=2)


def test_shutting_down_takes_the_link_away():
    site = star(3)
    result = storm(site, states=watched(site, "shutdown"))
    port = site.topology.peer(site.topology.endpoints[0])
    assert total(result.counters, "watchdog_storms") == 1
    assert total(result.counters, "link_down_events", port) == 1
    assert dropped(result) > 0
    assert total(result.counters, "rx_pause_frames", port) < 10


def test_a_port_that_sets_no_times_uses_its_vendors():
    site = star(3)
    result = storm(site, states=watched(site, "drop", None, None), until_us=250_000)
    port = site.topology.peer(site.topology.endpoints[0])
    assert total(result.counters, "rx_pause_us", port) == pytest.approx(200_000, rel=0.01)


def test_without_a_watchdog_a_storm_spreads_to_flows_that_never_touch_it():
    site = site_of()
    ends = site.topology.endpoints
    # From leaf4: one to the storming NIC, one beside it to an idle host of leaf1; one
    # queue pair for each path, so that every spine carries both.
    flows = [Flow(ends[12], ends[0], ROCE, qps=8), Flow(ends[13], ends[1], ROCE, qps=8)]
    states = watched(site, detect_ms=100)
    change_all(states, without_dcqcn, "host")
    blocked = storm(site, states=states, flows=flows)
    assert moving(blocked, 1).max() < 30
    states = watched(site)
    change_all(states, without_dcqcn, "host")
    freed = storm(site, states=states, flows=flows)
    assert moving(freed, 1).max() == 399
    assert total(freed.counters, "watchdog_storms") == 1


def test_a_storming_nic_repeats_its_pause_at_half_the_quanta():
    site = star(3)
    result = storm(site, states=watched(site), flows=[], until_us=21_000)
    nic = site.topology.endpoints[0]
    frames = total(result.counters, "tx_pause_frames", nic)
    assert frames == pytest.approx(2 * 20_000 / pause_us(MAX_PAUSE_QUANTA, 25 * 10**9), abs=1.5)
    assert total(result.counters, "tx_pause_us", nic) == 20_000


@pytest.mark.parametrize(
    ("lasts_ms", "warnings", "errors"), [(6_700, 0, 0), (6_900, 1, 0), (9_000, 1, 1)]
)
def test_stall_prevention_warns_and_then_stops_a_storming_nic(lasts_ms, warnings, errors):
    site = star(2)
    nic = site.topology.endpoints[0]
    options = SimOptions(10e6, sample_us=1e5, faults=(PauseStorm(nic, 3, 0, lasts_ms * 1e3),))
    result = simulate(site, states_of(site), [], options)
    assert total(result.counters, "tx_pause_storm_warnings", nic) == warnings
    assert total(result.counters, "tx_pause_storm_errors", nic) == errors
    assert total(result.counters, "tx_pause_us", nic) / 1e3 == pytest.approx(
        min(lasts_ms, 8_000), rel=1e-3
    )


def test_a_slow_receiver_pauses_its_switch_and_loses_nothing():
    site = star(2)
    ends = site.topology.endpoints
    states = states_of(site)
    change_all(states, without_ecn, "switch")
    slow = (SlowReceiver(ends[0], 10e9),)
    flow = Flow(ends[1], ends[0], ROCE)
    result = simulate(site, states, [flow], SimOptions(20_000, 5_000, faults=slow))
    # 10 Gbit/s of frames: 4096 of 4158.25 bytes are payload.
    assert result.goodput_bps[0] == pytest.approx(10e9 * 4096 / (4096 + 62 + 1), rel=0.01)
    assert dropped(result) == 0
    assert total(result.counters, "tx_pause_frames", ends[0]) > 100
    # The pauses reach the sender: PFC spreads congestion hop by hop.
    assert total(result.counters, "rx_pause_us", ends[1]) > 5_000


def test_a_slow_receiver_without_pfc_drops_in_its_own_buffer():
    site = star(2)
    ends = site.topology.endpoints
    states = states_of(site)
    change(states, without_pfc, ends[0])
    options = SimOptions(5_000, faults=(SlowReceiver(ends[0], 10e9),))
    result = simulate(site, states, [Flow(ends[1], ends[0], ROCE)], options)
    assert total(result.counters, "rx_discards", ends[0]) == dropped(result) > 0
    assert total(result.counters, "tx_pause_frames", ends[0]) == 0


def test_a_slow_receiver_slows_its_neighbours_down_when_ecn_cannot_see_it():
    # The queue before a paused port grows and is marked, but a victim on the same
    # uplink is held back by pauses that are none of its business.
    site = site_of()
    ends = site.topology.endpoints
    flows = [Flow(ends[4 + i], ends[0], ROCE, qps=4) for i in range(8)]
    flows.append(Flow(ends[15], ends[1], ROCE, qps=4))
    states = states_of(site)
    change_all(states, without_dcqcn, "host")
    slow = SimOptions(8_000, 4_000, faults=(SlowReceiver(ends[0], 2e9),))
    alone = simulate(site, states, flows[-1:], SimOptions(8_000, 4_000)).goodput_bps[-1]
    victim = simulate(site, states, flows, slow).goodput_bps[-1]
    assert victim < 0.2 * alone


@pytest.mark.parametrize(
    ("down_us", "up_us"), [(1_000, 3_000), (1_000, None)], ids=["flap", "for good"]
)
def test_a_link_that_flaps_loses_packets_and_everything_arrives_once_it_is_back(down_us, up_us):
    site = star(3)
    ends = site.topology.endpoints
    flow = Flow(ends[1], ends[0], ROCE, message_bytes=1_000_000, messages=20)
    cable = LinkDown(site.topology.peer(ends[0]), down_us, up_us)
    options = SimOptions(200_000, sample_us=100, faults=(cable,))
    result = simulate(site, states_of(site), [flow], options)
    assert total(result.counters, "link_down_events", ends[0]) == 1
    assert total(result.counters, "link_down_events", site.topology.peer(ends[0])) == 1
    assert dropped(result) > 0
    assert len(result.messages_us[0]) == (20 if up_us else 3)
    quiet = (result.goodput_series_bps[0, 11:29] == 0).all()
    assert quiet


def test_a_link_that_comes_back_is_paused_again_where_it_must_be():
    site = star(8)
    states = states_of(site)
    change_all(states, without_dcqcn, "host")
    change_all(states, without_ecn, "switch")
    ends = site.topology.endpoints
    flows = incast(site)
    cable = LinkDown(ends[3], 2_000, 2_100)
    result = simulate(site, states, flows, SimOptions(6_000, faults=(cable,)))
    # What is lost was on its way when the cable went: nothing overflows afterwards.
    assert total(result.counters, "rx_discards") == 0
    assert total(result.counters, "queue_drops") < 5
    assert total(result.counters, "link_down_events", ends[3]) == 1


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (PauseStorm(("leaf1", "Ethernet1/1"), 3), "only a host's NIC"),
        (PauseStorm(("host1", "ens1f0"), 8), "priority 8"),
        (PauseStorm(("host1", "ens1f0"), 3, 5.0, 5.0), "end after that"),
        (PauseStorm(("host1", "ens9"), 3), "no cabled port"),
        (SlowReceiver(("host1", "ens1f0"), 0), "rate_bps"),
        (LinkDown(("host1", "ens1f0"), -1.0), "0 us or later"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused_by_name(fault, message):
    site = star(2)
    ends = {tuple(port): port for port in (*site.topology.endpoints, *site.topology.link_of)}
    fault = dataclasses.replace(fault, port=ends.get(fault.port, fault.port))
    with pytest.raises(InputError, match=message):
        simulate(site, states_of(site), [], SimOptions(100, faults=(fault,)))
