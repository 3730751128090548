"""Starts and ends of flows, size, memory, and what the flow level refuses."""

import dataclasses
import time

import numpy as np
import psutil
import pytest

from fabric.devices.registry import expected_qos
from fabric.errors import InputError
from fabric.sim.api import Flow
from fabric.sim.flowlevel import memory
from fabric.sim.flowlevel.clos import links_of, network_of_shape, shape_for, site_of
from fabric.sim.flowlevel.memory import check_memory, needed_bytes
from fabric.sim.flowlevel.network import network_of_site
from fabric.sim.flowlevel.run import prepare_flows
from fabric.sim.scenarios import SCENARIOS, flow_count, flows_between
from tests.fabric.sim.scenario import (
    PAYLOAD_BPS,
    ROCE,
    change,
    change_all,
    star,
    states_of,
    with_tos,
    without_dcqcn,
    without_ecn,
    without_pfc,
)


def run(site, states, flows, duration_us, warmup_us=0.0):
    simulation = prepare_flows(network_of_site(site, states), flows, duration_us, warmup_us)
    simulation.advance()
    return simulation.result()


def test_a_flow_that_ends_leaves_its_share_to_the_other():
    site = star(3)
    ends = site.topology.endpoints
    small, large = 1 << 20, 3 << 20
    flows = [Flow(ends[i], ends[0], ROCE, size, 1) for i, size in ((1, small), (2, large))]
    result = run(site, states_of(site), flows, 10_000)
    both_us = 2 * small * 8e6 / PAYLOAD_BPS
    rest_us = (large - small) * 8e6 / PAYLOAD_BPS
    np.testing.assert_allclose(result.completion_us, [both_us, both_us + rest_us], rtol=0.02)
    assert result.solves == 2
    assert not result.partial


def test_a_flow_that_starts_later_counts_from_then_and_goodput_from_warm_up():
    site = star(3)
    ends = site.topology.endpoints
    flows = [Flow(ends[1], ends[0], ROCE), Flow(ends[2], ends[0], ROCE, start_us=500)]
    result = run(site, states_of(site), flows, 1_000, 250)
    np.testing.assert_allclose(
        result.goodput_bps, np.array([2 / 3, 1 / 3]) * PAYLOAD_BPS, rtol=0.02
    )
    assert np.isnan(result.completion_us).all()


def test_a_burst_completes_in_the_time_of_its_bytes():
    site = star(5)
    flows = flows_between(site.topology.rails()[0], ROCE, "burst", 8_000, 1)
    result = run(site, states_of(site), flows, 8_000)
    assert len(result.completion_us) == 8
    np.testing.assert_allclose(result.completion_us, 4e6 * 8e6 / PAYLOAD_BPS, rtol=0.01)


@pytest.mark.parametrize("kind", ["ring", "permutation"])
def test_16384_hosts_take_less_than_half_a_minute_and_what_was_foreseen(kind):
    before = psutil.Process().memory_info().rss
    started = time.process_time()
    shape = shape_for(16_384)
    network, intent = network_of_shape(shape)
    ends = network.topology.rails()[0]
    flows = flows_between(ends, intent.roce.dscp[0], kind, 0, 3)
    told = []
    simulation = prepare_flows(network, flows, 10_000, progress=lambda *step: told.append(step))
    simulation.advance(lambda *step: told.append(step))
    result = simulation.result()
    assert time.process_time() - started < 30
    assert len(ends) == len(result.goodput_bps) == 16_384
    assert not result.notes
    assert {step[0] == "paths" for step in told} == {True, False}
    assert max(load.load for load in result.ports) < 1.003
    if kind == "ring":
        np.testing.assert_allclose(result.goodput_bps, 25e9 * 2**20 / (2**20 + 256 * 82 + 16))
    assert psutil.Process().memory_info().rss - before < needed_bytes(links_of(shape), len(flows))


def test_a_clos_without_a_file_is_the_one_that_init_would_write():
    shape = shape_for(32)
    site = site_of(shape)
    states = {name: expected_qos(site, name) for name in site.devices}
    written = network_of_site(site, states)
    network, intent = network_of_shape(shape)
    assert network.ports == written.ports
    assert intent == site.intent
    for mine, theirs in zip(network.qos, written.qos, strict=True):
        nameless = [dataclasses.replace(qos, name="") for qos in (mine, theirs)]
        assert nameless[0] == nameless[1]
    np.testing.assert_array_equal(network.pool_bytes, written.pool_bytes)


@pytest.mark.parametrize("hosts", [16, 48, 1_024, 4_096, 16_384, 65_536])
def test_a_clos_has_the_hosts_that_were_asked_for(hosts):
    shape = shape_for(hosts)
    assert shape.pods * shape.leaves_per_pod * shape.hosts_per_leaf == hosts
    assert shape.spines_per_pod * 100 >= shape.hosts_per_leaf * 25
    if hosts <= 1_024:
        assert links_of(shape) == len(network_of_shape(shape)[0].topology.links)


def test_a_clos_of_an_odd_size_is_refused():
    with pytest.raises(InputError, match="--clos 1000: a three-level Clos has a multiple of 16"):
        shape_for(1_000)


def test_too_large_is_said_before_anything_is_built(monkeypatch):
    class Free:
        available = 4 << 30

    monkeypatch.setattr(memory.psutil, "virtual_memory", Free)
    check_memory(25_000, 16_384)
    flows = flow_count("alltoall", 16_384, 1_000)
    with pytest.raises(InputError, match=r"268,419,072 flows .* need 5\d\d.\d GiB .* 4.0 GiB"):
        check_memory(25_000, flows)


@pytest.mark.parametrize("name", SCENARIOS)
def test_flows_are_counted_before_they_are_made(name):
    ends = star(5).topology.rails()[0]
    made = flows_between(ends, ROCE, name, 9_000, 1)
    assert flow_count(name, 5, 9_000) in (len(made), len(made) + 1)


def refused(site, states, flows, words):
    with pytest.raises(InputError, match=words):
        run(site, states, flows, 1_000)


def test_what_only_packets_show_is_refused():
    site = star(4)
    ends = site.topology.endpoints
    states = states_of(site)
    flow = Flow(ends[1], ends[0], ROCE)
    refused(site, states, [dataclasses.replace(flow, transport="tcp")], "RDMA streams without gaps")
    refused(site, states, [dataclasses.replace(flow, gap_us=5)], "flow 0 .* without gaps")
    refused(site, states, [flow, Flow(ends[2], ends[2], ROCE)], "flow 1 .* ends where it starts")
    odd = dict(states)
    change(odd, with_tos(0), ends[2])
    refused(site, odd, [flow, Flow(ends[2], ends[0], ROCE)], "one class only")
    odd = dict(states)
    change(odd, without_dcqcn, ends[2])
    refused(site, odd, [flow, Flow(ends[2], ends[0], ROCE)], "DCQCN acts on some flows")
    odd = dict(states)
    change(odd, without_ecn, site.topology.peer(ends[0]))
    refused(site, odd, [flow, Flow(ends[1], ends[3], ROCE)], "does not mark and other ports do")


def test_without_dcqcn_and_pfc_packets_would_be_lost_and_that_is_refused():
    site = star(3)
    ends = site.topology.endpoints
    states = states_of(site)
    change_all(states, without_ecn, "switch")
    change_all(states, without_pfc, "switch")
    refused(site, states, [Flow(ends[1], ends[0], ROCE)], "packets would be lost")
