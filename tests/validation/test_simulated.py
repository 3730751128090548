"""The suites on the real simulator: a sound fabric passes, physics fails a broken one.

Only SSH is left out: counters of the simulation go straight to the fake's.
"""

from dataclasses import replace

import pytest

from fabric.sim.run import simulate, warm_up
from fabric.topology import PortRef
from tests.validation.fake import FakeFabric
from validation.probes.sim import SimProbe
from validation.run import run_suites
from validation.suites import SUITES

LEAF = PortRef("leaf1", "Ethernet1/1")


class SimulatedFabric(FakeFabric):
    """Traffic by the simulator; devices count what they have a counter for."""

    def carry(self, site, states, flows, options):
        result = simulate(site, states, flows, options)
        for moved in result.counters:
            key = (moved.device, moved.port, moved.name, moved.priority)
            if key in self.values:
                self.values[key] += moved.value
        return result

    def change(self, ref, **values):
        state = self.states[ref.device]
        ports = tuple(replace(p, **values) if p.name == ref.port else p for p in state.ports)
        self.states[ref.device] = replace(state, ports=ports)

    def failures(self, *suites):
        made = run_suites(self.site, suites, readers=self.readers(), probe=self.probe)
        return made, {check.id for check in made.all_checks if check.verdict == "FAIL"}


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    warm_up()


@pytest.fixture
def simulated(site):
    return SimulatedFabric(site)


def test_a_sound_fabric_passes_every_suite(simulated):
    made, bad = simulated.failures()
    assert bad == set()
    assert made.verdict == "PASS"
    worst = min(c.value for c in made.all_checks if c.id == "incast.jain")
    assert worst > 0.95


def test_one_port_without_pfc_loses_packets_and_is_named(simulated):
    simulated.change(LEAF, pfc_priorities=())
    made, bad = simulated.failures("incast")
    assert "incast.loss" in bad
    (loss,) = [c for c in made.failures if c.id == "incast.loss"]
    assert (loss.device, loss.port) == LEAF
    assert "PFC is off there" in loss.reason


def test_a_leaf_without_ecn_leaves_congestion_to_pfc(simulated):
    for ref in simulated.site.topology.ports_of["leaf1"]:
        queues = simulated.states["leaf1"].port(ref.port).queues
        simulated.change(ref, queues=tuple(replace(q, ecn=None) for q in queues))
    made, bad = simulated.failures("incast")
    assert {"incast.ecn", "incast.pause-ratio"} <= bad
    ecn = [c for c in made.failures if c.id == "incast.ecn"]
    assert {c.device for c in ecn} == {"leaf1"}


def test_a_small_mtu_stops_full_packets(simulated):
    simulated.change(LEAF, mtu_bytes=1500, class_mtu_bytes=(1500,) * 8)
    made, bad = simulated.failures("preflight")
    assert {"preflight.mtu", "preflight.reach", "preflight.loss"} <= bad
    assert {c.device for c in made.failures} == {"leaf1"}


def test_a_nic_at_factory_settings_sends_outside_its_class(simulated):
    host = PortRef("host1", "ens1f0")
    nic = simulated.states["host1"].port("ens1f0").nic
    simulated.change(
        host, trust="pcp", pfc_priorities=(), nic=replace(nic, verbs_traffic_class=None)
    )
    made, bad = simulated.failures("preflight")
    assert bad == {"preflight.priority"}
    assert any("trusts pcp" in c.reason for c in made.failures if c.device == "host1")


def test_results_of_a_simulation_are_the_same_every_time(simulated):
    probe = SimProbe(simulated.site, simulated.states, simulated.carry)
    step = SUITES["bandwidth"].plan(simulated.site).steps[0]
    first, second = probe.run(step), probe.run(step)
    assert [f.goodput_bps for f in first.flows] == [f.goodput_bps for f in second.flows]
