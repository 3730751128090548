"""A cyclic buffer dependency deadlocks, is named, and can be broken; a tree cannot."""

import dataclasses

import pytest

from fabric.errors import InputError
from fabric.qos import Watchdog
from fabric.sim.api import Flow, SimOptions
from fabric.sim.run import simulate
from fabric.topology import ClosShape, Link, PortRef, Topology
from tests.fabric.sim.scenario import (
    ROCE,
    change_all,
    dropped,
    incast,
    site_of,
    star,
    states_of,
    total,
    without_dcqcn,
    without_ecn,
)


def ring_of_three(hosts=4):
    """Three switches in a circle, and flows that each pass through two of its links."""
    base = site_of(ClosShape(hosts=3 * hosts, leaves=3, spines=2))
    clos = base.topology
    names = ("leaf1", "leaf2", "leaf3")
    up = {
        name: [port for port in clos.ports_of[name] if clos.peer(port).device.startswith("spine")]
        for name in names
    }
    circle = tuple(
        Link(up[here][0], up[there][1], 100 * 10**9, 30.0)
        for here, there in zip(names, (*names[1:], names[0]), strict=True)
    )
    edge = tuple(link for link in clos.links if link.a.device in names and link.b.device[0] == "h")
    topology = Topology(clos.hosts, names, (*edge, *circle))
    site = dataclasses.replace(base, topology=topology)
    at = [[end for end in clos.endpoints if clos.peer(end).device == name] for name in names]
    flows = []
    for number, name in enumerate(names):
        middle, last = names[(number + 1) % 3], (number + 2) % 3
        for source, target in zip(at[number], at[last], strict=True):
            path = (source, up[name][0], up[middle][0], clos.peer(target))
            flows.append(Flow(source, target, ROCE, path=path))
    states = states_of(base)
    change_all(states, without_dcqcn, "host")
    change_all(states, without_ecn, "switch")
    return site, states, flows


def test_a_circle_of_pauses_is_found_and_its_ports_are_named():
    site, states, flows = ring_of_three()
    result = simulate(site, states, flows, SimOptions(5_000, 1_000))
    assert result.goodput_bps.sum() == 0
    assert dropped(result) == 0
    (note,) = result.notes
    assert note.startswith("PFC deadlock in priority 3 since ")
    circle = note.split(": ", 1)[1].split(" waits for ")
    assert circle[0] == circle[3]
    assert sorted(circle[:3]) == [f"leaf{i}:Ethernet1/49" for i in (1, 2, 3)]
    assert 0 < float(note.split("since ")[1].split(" us")[0]) < 1_000


def test_a_deadlock_stays_when_its_traffic_ends():
    site, states, flows = ring_of_three()
    finite = [dataclasses.replace(flow, message_bytes=1_000_000, messages=2) for flow in flows]
    early = simulate(site, states, finite, SimOptions(5_000))
    late = simulate(site, states, finite, SimOptions(60_000))
    assert early.notes == late.notes != ()
    # Paused ports never let go: the quanta are refreshed for ever.
    assert total(late.counters, "rx_pause_us") > 3 * 58_000


@pytest.mark.parametrize("action", ["drop", "forward"])
def test_a_watchdog_breaks_a_deadlock(action):
    site, states, flows = ring_of_three()

    def edit(port):
        return dataclasses.replace(port, watchdog=Watchdog(5, 5, action))

    change_all(states, edit, "switch")
    finite = [dataclasses.replace(flow, message_bytes=500_000, messages=4) for flow in flows]
    result = simulate(site, states, finite, SimOptions(1_000_000, sample_us=1_000))
    assert result.notes == ()
    assert total(result.counters, "watchdog_storms") >= 3
    assert [len(times) for times in result.messages_us] == [4] * len(flows)


def test_rate_control_that_keeps_queues_short_avoids_it():
    site, states, flows = ring_of_three()
    states = {**states_of(site_of(ClosShape(hosts=12, leaves=3, spines=2)))}
    slow = [dataclasses.replace(flow, start_us=0, gap_us=40) for flow in flows]
    result = simulate(site, states, slow, SimOptions(10_000, 2_000))
    assert result.notes == ()
    assert result.goodput_bps.min() > 0


@pytest.mark.parametrize("qps", [1, 4])
def test_paused_ports_of_a_clos_are_no_deadlock(qps):
    site = site_of()
    states = states_of(site)
    change_all(states, without_dcqcn, "host")
    change_all(states, without_ecn, "switch")
    for until in (500, 1_000, 3_000):
        result = simulate(site, states, incast(site, qps=qps), SimOptions(until))
        assert total(result.counters, "rx_pause_us") > 0
        assert result.notes == ()


def test_a_pinned_path_is_taken_both_ways():
    site = site_of()
    topology = site.topology
    source, target = topology.endpoints[0], topology.endpoints[15]
    for path in topology.paths(source, target):
        flow = Flow(source, target, ROCE, qps=4, path=path)
        result = simulate(site, states_of(site), [flow], SimOptions(500))
        used = {PortRef(c.device, c.port) for c in result.counters if c.name == "tx_packets"}
        back = {topology.peer(port) for port in path}
        assert used == {*path, *back}


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda path: path[1:], "must start with host1:ens1f0"),
        (lambda path: path[:-1], "ends at leaf4"),
        (lambda path: (*path[:1], *path[2:]), "leads to leaf1"),
        (lambda path: (*path[:2], PortRef("spine1", "Ethernet1/99")), "Ethernet1/99"),
        (lambda _: (), "must start"),
    ],
)
def test_a_path_that_does_not_lead_there_is_refused(edit, message):
    site = site_of()
    ends = site.topology.endpoints
    path = next(p for p in site.topology.paths(ends[0], ends[15]) if p[2].device == "spine1")
    with pytest.raises(InputError, match=message) as caught:
        simulate(
            site, states_of(site), [Flow(ends[0], ends[15], ROCE, path=edit(path))], SimOptions(50)
        )
    assert "flow 0" in str(caught.value)


def test_a_path_in_a_circle_is_refused():
    site = site_of()
    topology = site.topology
    ends = topology.endpoints
    up = next(path[1] for path in topology.paths(ends[0], ends[15]))
    path = (ends[0], up, topology.peer(up), topology.peer(ends[1]))
    with pytest.raises(InputError, match="cannot pass through leaf1"):
        simulate(site, states_of(site), [Flow(ends[0], ends[1], ROCE, path=path)], SimOptions(50))


def test_a_star_needs_no_path():
    site = star(2)
    ends = site.topology.endpoints
    path = (ends[0], site.topology.peer(ends[1]))
    result = simulate(
        site, states_of(site), [Flow(ends[0], ends[1], ROCE, path=path)], SimOptions(200)
    )
    assert result.goodput_bps[0] > 20e9
