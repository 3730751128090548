"""Senders that are capped: a traffic class, a queue pair, a switch's queue."""

import dataclasses

import pytest

from fabric.sim.api import Flow, SimOptions
from fabric.sim.run import simulate
from tests.fabric.sim.scenario import PAYLOAD_BPS, ROCE, change, star, states_of

SITE = star(3)
HERE, THERE, THIRD = SITE.topology.endpoints
OPTIONS = SimOptions(10_000, warmup_us=1_000)


def capped(traffic_class, bps):
    def edit(port):
        return dataclasses.replace(
            port,
            queues=tuple(
                dataclasses.replace(queue, max_rate_bps=bps)
                if queue.traffic_class == traffic_class
                else queue
                for queue in port.queues
            ),
        )

    return edit


def with_dcqcn(**parameters):
    def edit(port):
        dcqcn = dataclasses.replace(port.nic.dcqcn, **parameters)
        return dataclasses.replace(port, nic=dataclasses.replace(port.nic, dcqcn=dcqcn))

    return edit


def goodput(edit, *flows, ports=(HERE,)):
    states = states_of(SITE)
    change(states, edit, *ports)
    return simulate(SITE, states, flows, OPTIONS).goodput_bps


@pytest.mark.parametrize("gbps", [1, 5, 20])
def test_a_capped_class_of_a_nic_sends_no_faster(gbps):
    (got,) = goodput(capped(3, gbps * 10**9), Flow(HERE, THERE, ROCE, qps=4))
    wire = gbps / 25 * PAYLOAD_BPS
    assert 0.97 * wire < got < 1.005 * wire


def test_a_cap_of_another_class_does_not_slow_rdma():
    (got,) = goodput(capped(0, 10**9), Flow(HERE, THERE, ROCE, qps=4))
    assert got > 0.95 * PAYLOAD_BPS


def test_a_capped_class_leaves_the_wire_to_the_others():
    rdma, tcp = goodput(
        capped(3, 2 * 10**9),
        Flow(HERE, THERE, ROCE, qps=4),
        Flow(HERE, THIRD, 0, transport="tcp"),
    )
    assert rdma < 2e9
    assert tcp > 15e9


def test_a_capped_queue_of_a_switch_sends_no_faster():
    (last_hop,) = (SITE.topology.peer(THERE),)
    (got,) = goodput(capped(3, 4 * 10**9), Flow(HERE, THERE, ROCE), ports=(last_hop,))
    assert 0.8 * 4e9 < got < 4e9


@pytest.mark.parametrize("qps", [1, 4])
def test_rpg_max_rate_caps_each_queue_pair_without_any_congestion(qps):
    (got,) = goodput(with_dcqcn(max_rate_mbps=1000), Flow(HERE, THERE, ROCE, qps=qps))
    wire = qps / 25 * PAYLOAD_BPS
    assert 0.97 * wire < got < 1.005 * wire


def test_a_max_rate_of_0_or_above_the_wire_is_no_cap():
    for mbps in (0, 100_000):
        (got,) = goodput(with_dcqcn(max_rate_mbps=mbps), Flow(HERE, THERE, ROCE, qps=4))
        assert got > 0.99 * PAYLOAD_BPS
