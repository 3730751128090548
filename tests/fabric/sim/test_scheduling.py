"""Strict and ETS scheduling between saturated classes."""

import dataclasses

import pytest

from fabric.qos import Scheduler
from fabric.sim.api import Flow, SimOptions
from fabric.sim.engine.layout import PORT_RP_CNP_HANDLED
from fabric.sim.run import prepare, simulate
from tests.fabric.sim.scenario import (
    PAYLOAD_BPS,
    ROCE,
    change,
    change_all,
    incast,
    star,
    states_of,
    with_tos,
    without_dcqcn,
    without_ecn,
)


def two_classes(schedulers):
    """Two senders, one in priority 3 and one in 0, and how the switch shares the wire."""
    site = star(3)
    states = states_of(site)
    change_all(states, without_dcqcn, "host")
    change_all(states, without_ecn, "switch")
    change(states, with_tos(0), site.topology.endpoints[2])

    def schedule(port):
        queues = tuple(
            dataclasses.replace(queue, scheduler=schedulers.get(queue.traffic_class, NOTHING))
            for queue in port.queues
        )
        return dataclasses.replace(port, queues=queues)

    change_all(states, schedule, "switch")
    result = simulate(site, states, incast(site), SimOptions(4_000, 500))
    assert result.goodput_bps.sum() == pytest.approx(PAYLOAD_BPS, rel=0.01)
    return result.goodput_bps / PAYLOAD_BPS


NOTHING = Scheduler("ets", 0)


@pytest.mark.parametrize("percent", [50, 20, 75, 99])
def test_ets_shares_follow_the_percents(percent):
    shares = two_classes({3: Scheduler("ets", percent), 0: Scheduler("ets", 100 - percent)})
    assert shares[0] == pytest.approx(percent / 100, abs=0.01)


def test_a_class_without_a_share_gets_what_is_left():
    assert two_classes({3: Scheduler("ets", 100)})[1] < 0.01


def test_an_uncapped_strict_class_starves_the_others():
    shares = two_classes({3: Scheduler("ets", 100), 0: Scheduler("strict")})
    assert shares[1] > 0.99


def test_unused_shares_go_to_who_can_use_them():
    site = star(3)
    result = simulate(site, states_of(site), incast(site), SimOptions(20_000, 4_000))
    assert result.goodput_bps.sum() > 0.98 * PAYLOAD_BPS


def first_cut_us(cnp_priority):
    """When the first CNP reaches a sender whose own downlink is congested."""
    site = star(9)
    states = states_of(site)

    def cnp_class(port):
        dcqcn = dataclasses.replace(
            port.nic.dcqcn, cnp_priority=cnp_priority, cnp_dscp=48 if cnp_priority == 6 else ROCE
        )
        return dataclasses.replace(port, nic=dataclasses.replace(port.nic, dcqcn=dcqcn))

    change_all(states, cnp_class, "host")
    ends = site.topology.endpoints
    flows = [Flow(ends[i], ends[0], ROCE, start_us=100) for i in (1, 2, 3, 4)]
    flows += [Flow(ends[i], ends[1], ROCE) for i in (5, 6, 7, 8)]
    simulation = prepare(site, states, flows, SimOptions(400))
    sender = simulation.arena.port(simulation.network.index[ends[1]])
    for at_us in range(1, 400):
        simulation.advance(at_us)
        if simulation.arena.m[sender + PORT_RP_CNP_HANDLED]:
            return at_us
    raise AssertionError("no CNP has arrived")


def test_strict_cnps_do_not_wait_behind_data():
    strict, behind_data = first_cut_us(6), first_cut_us(3)
    assert strict < 160
    assert behind_data > strict + 50
