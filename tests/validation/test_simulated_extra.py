"""mixed, burst, collective and soak on the real simulator: what breaks each, and who is named."""

from dataclasses import replace

import pytest

from fabric.qos import Scheduler
from fabric.sim.run import warm_up
from fabric.topology import ClosShape, PortRef
from tests.sites import make_site
from tests.validation.judgement.test_judgement import site_with
from tests.validation.test_simulated import LEAF, SimulatedFabric

EXTRA = ("mixed", "burst", "collective", "soak")


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    warm_up()


@pytest.fixture
def simulated(tmp_path):
    return SimulatedFabric(site_with(tmp_path, soak_cycles=12))


def test_a_sound_fabric_passes(simulated):
    made, bad = simulated.failures(*EXTRA)
    assert bad == set()
    assert made.verdict == "PASS"
    shares = [c.value for c in made.all_checks if c.id == "mixed.share"]
    assert min(shares) > 0.95  # each class, in both directions of pressure
    lossy = [c for c in made.all_checks if c.id == "mixed.lossy"]
    assert {c.verdict for c in lossy} == {"PASS"}  # TCP lost packets, RDMA none


def test_one_port_without_pfc_loses_rdma_beside_tcp_and_in_bursts(simulated):
    simulated.change(LEAF, pfc_priorities=())
    made, bad = simulated.failures("mixed", "burst")
    assert {"mixed.loss", "burst.loss"} <= bad
    for loss in [c for c in made.failures if c.id.endswith(".loss")]:
        assert (loss.device, loss.port) == LEAF
        assert "PFC is off there" in loss.reason


@pytest.mark.parametrize("place", [0, 5, 19])
def test_bursts_press_every_port_of_a_leaf_that_faces_a_host(tmp_path, place):
    """Most of 32 hosts are no receiver of all those steps that grow."""
    simulated = SimulatedFabric(make_site(tmp_path, ClosShape(32, 4, 2)))
    port = simulated.site.topology.peer(simulated.site.topology.endpoints[place])
    simulated.change(port, pfc_priorities=())
    made, _bad = simulated.failures("burst")
    lost = {(c.device, c.port) for c in made.failures if c.id == "burst.loss"}
    assert lost == {port}


def test_a_port_that_gives_rdma_a_tenth_starves_it_and_is_named(simulated):
    weights = {3: 10, 0: 90}
    queues = tuple(
        replace(q, scheduler=Scheduler("ets", weights[q.traffic_class]))
        if q.traffic_class in weights
        else q
        for q in simulated.states["leaf1"].port(LEAF.port).queues
    )
    simulated.change(LEAF, queues=queues)
    made, bad = simulated.failures("mixed")
    assert bad == {"mixed.share"}
    assert {(c.device, c.port) for c in made.failures} == {LEAF}
    assert all("RDMA" in c.subject for c in made.failures)
    assert "serves queue 3 by ets with 10 %" in made.failures[0].reason


def test_a_nic_that_puts_tcp_among_rdma_is_found(simulated):
    """A host's TCP in the lossless class takes what RDMA is guaranteed."""
    for host in simulated.site.topology.hosts:
        port = simulated.states[host].port("ens1f0")
        simulated.change(
            PortRef(host, "ens1f0"),
            dscp_to_priority=tuple(3 if p == 0 else p for p in port.dscp_to_priority),
        )
    for ref in [end for end in simulated.site.topology.link_of if end.device.startswith("l")]:
        port = simulated.states[ref.device].port(ref.port)
        simulated.change(
            ref, dscp_to_priority=tuple(3 if p == 0 else p for p in port.dscp_to_priority)
        )
    _made, bad = simulated.failures("mixed")
    assert {"mixed.share", "mixed.class"} <= bad


def test_a_small_mtu_stops_rings_and_every_cycle_of_a_soak(simulated):
    simulated.change(LEAF, mtu_bytes=1500, class_mtu_bytes=(1500,) * 8)
    made, bad = simulated.failures("collective", "soak")
    assert {"collective.busbw", "soak.loss", "soak.ratio", "soak.host"} <= bad
    idle = {c.subject for c in made.failures if c.id == "soak.host"}
    assert idle == {"host1:ens1f0"}  # nobody else sends into that port
    slow = next(c for c in made.failures if c.id == "collective.busbw")
    assert "passes packets of 1,500 bytes only" in slow.reason
    assert slow.device == "leaf1"
