"""Ports that are down carry nothing; routing uses the links that are left."""

import dataclasses

import numpy as np

from fabric.qos import PortFacts
from fabric.sim.api import Flow, PauseStorm, SimOptions
from fabric.sim.run import simulate
from tests.fabric.sim.scenario import PAYLOAD_BPS, ROCE, site_of, states_of, total

SITE = site_of()
TOPOLOGY = SITE.topology
ENDS = TOPOLOGY.endpoints
OPTIONS = SimOptions(300, warmup_us=50)


def with_facts(*facts):
    states = states_of(SITE)
    for device, shown in facts:
        state = states[device]
        states[device] = dataclasses.replace(state, facts=(*state.facts, shown))
    return states


def shut(port):
    return port.device, PortFacts(port.port, up=False, admin_up=False)


def uplinks(leaf, spine):
    return [p for p in TOPOLOGY.ports_of[leaf] if TOPOLOGY.peer(p).device == spine]


def run(states, *flows, **options):
    return simulate(SITE, states, flows, dataclasses.replace(OPTIONS, **options))


def test_paths_avoid_a_leaf_whose_uplinks_to_one_spine_are_shut():
    down = uplinks("leaf1", "spine1")
    flow = Flow(ENDS[0], ENDS[-1], ROCE, qps=16)
    before = run(states_of(SITE), flow)
    after = run(with_facts(*map(shut, down)), flow)
    assert total(before.counters, "tx_packets", down[0]) > 0
    for port in down:
        assert total(after.counters, "tx_packets", port) == 0
        assert total(after.counters, "rx_packets", TOPOLOGY.peer(port)) == 0
    assert after.goodput_bps[0] > 0.9 * PAYLOAD_BPS
    assert not any("nothing passes" in note for note in after.notes)


def test_a_host_whose_only_nic_is_down_sends_and_receives_nothing_and_is_named():
    states = with_facts(shut(ENDS[0]))
    out = Flow(ENDS[0], ENDS[1], ROCE)
    back = Flow(ENDS[5], ENDS[0], ROCE, messages=1, kind="ping")
    fine = Flow(ENDS[2], ENDS[3], ROCE)
    result = run(states, out, back, fine)
    assert list(result.goodput_bps[:2]) == [0, 0]
    assert len(result.messages_us[1]) == 0
    assert result.goodput_bps[2] > 0.9 * PAYLOAD_BPS
    (note,) = (note for note in result.notes if "nothing passes" in note)
    assert note.startswith(f"{ENDS[0]} is shut: nothing passes from {ENDS[0]} to {ENDS[1]}")


def test_a_port_without_carrier_names_the_port_that_sees_none():
    leaf_port = TOPOLOGY.peer(ENDS[0])
    states = with_facts((leaf_port.device, PortFacts(leaf_port.port, up=False, admin_up=True)))
    result = run(states, Flow(ENDS[1], ENDS[0], ROCE))
    assert result.goodput_bps[0] == 0
    assert any(note.startswith(f"{leaf_port} has no link:") for note in result.notes)


def test_a_leaf_without_any_uplink_reaches_its_own_hosts_only():
    own = [end for end in ENDS if TOPOLOGY.peer(end).device == "leaf1"]
    far = next(end for end in ENDS if TOPOLOGY.peer(end).device == "leaf2")
    down = [*uplinks("leaf1", "spine1"), *uplinks("leaf1", "spine2")]
    states = with_facts(*map(shut, down))
    result = run(states, Flow(own[0], own[1], ROCE), Flow(own[2], far, ROCE))
    assert result.goodput_bps[0] > 0.9 * PAYLOAD_BPS
    assert result.goodput_bps[1] == 0
    assert any(str(down[0]) in note for note in result.notes)


def test_a_path_that_is_pinned_over_a_dead_link_carries_nothing():
    way = TOPOLOGY.paths(ENDS[0], ENDS[-1])[0]
    states = with_facts(shut(way[1]))
    flow = Flow(ENDS[0], ENDS[-1], ROCE, path=way)
    assert run(states, flow).goodput_bps[0] == 0


def test_a_storm_does_not_cross_a_link_that_is_down():
    states = with_facts(shut(ENDS[0]))
    result = run(states, Flow(ENDS[1], ENDS[2], ROCE), faults=(PauseStorm(ENDS[0], 3),))
    leaf_port = TOPOLOGY.peer(ENDS[0])
    assert total(result.counters, "rx_pause_frames", leaf_port) == 0


def test_ports_that_are_up_or_not_shown_change_nothing():
    flow = Flow(ENDS[0], ENDS[-1], ROCE, qps=4)
    plain = run(states_of(SITE), flow)
    shown = with_facts(*((e.device, PortFacts(e.port, up=True, admin_up=True)) for e in ENDS))
    assert np.array_equal(run(shown, flow).goodput_bps, plain.goodput_bps)
