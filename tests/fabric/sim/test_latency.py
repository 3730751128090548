"""Unloaded latency equals the sum of its parts."""

import pytest

from fabric.sim.api import Flow, SimOptions
from fabric.sim.run import simulate
from tests.fabric.sim.scenario import ROCE, site_of, states_of

WIRE = 44 + 38  # headers of a SEND and Ethernet, bytes
ACK_NS = (48 + 38) * 8 / 25


def one_way_ns(size: int, uplinks: bool) -> float:
    nic, cable, bits = 500, 2 * 15, 2 * (size + WIRE) * 8 / 25
    if uplinks:
        return nic + 3 * 500 + cable + 2 * 150 + bits + 2 * (size + WIRE) * 8 / 100
    return nic + 500 + cable + bits


@pytest.mark.parametrize(("target", "uplinks"), [(1, False), (15, True)])
@pytest.mark.parametrize("size", [4, 64, 4096])
def test_ping_takes_serialisation_cable_and_device_latency(target, uplinks, size):
    site = site_of()
    ends = site.topology.endpoints
    flow = Flow(ends[0], ends[target], ROCE, message_bytes=size, messages=5, kind="ping")
    times = simulate(site, states_of(site), [flow], SimOptions(100)).messages_us[0]
    # Each message waits for the ACK of the message that it answers.
    expected = one_way_ns(size, uplinks) + ACK_NS
    assert len(times) == 5
    assert times[1:] == pytest.approx([expected / 1000] * 4, abs=2e-6)
    assert times[0] == pytest.approx((expected - ACK_NS / 2) / 1000, abs=2e-6)


def test_two_tiers_are_near_the_published_measurement():
    # openfabric-systems/simllm #189: 2.081 us for a small flow over two tiers.
    assert one_way_ns(4, uplinks=True) == pytest.approx(2081, rel=0.2)


def test_gap_separates_pings():
    site = site_of()
    ends = site.topology.endpoints
    flow = Flow(ends[0], ends[1], ROCE, message_bytes=64, kind="ping", gap_us=10)
    times = simulate(site, states_of(site), [flow], SimOptions(1000)).messages_us[0]
    assert len(times) == pytest.approx(1000 / (10 + 2 * times.mean()), abs=1)


def test_finite_stream_reports_each_message():
    site = site_of()
    ends = site.topology.endpoints
    flow = Flow(ends[0], ends[1], ROCE, message_bytes=100_000, messages=7, gap_us=5, qps=2)
    result = simulate(site, states_of(site), [flow], SimOptions(2000))
    wire_us = (100_000 + 25 * (44 + 38) + 16) * 8 / 25e3
    assert len(result.messages_us[0]) == 14
    # Two queue pairs share the wire, so that each message takes twice as long.
    assert result.messages_us[0].mean() == pytest.approx(2 * wire_us, rel=0.1)
