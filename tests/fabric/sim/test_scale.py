"""1,024 hosts in a three-level Clos."""

import random
import tempfile
from pathlib import Path

import pytest

from fabric.intended import intended_qos
from fabric.sim import run
from fabric.sim.api import Flow, SimOptions
from fabric.sim.run import prepare
from fabric.site import load_site
from fabric.starter import starter_yaml
from fabric.topology import ThreeLevelShape
from tests.fabric.sim.scenario import PAYLOAD_BPS, ROCE, dropped


@pytest.fixture(scope="module")
def large():
    """The site and its states; non-blocking, so that only hashing collides."""
    shape = ThreeLevelShape(
        pods=8, leaves_per_pod=8, hosts_per_leaf=16, spines_per_pod=4, cores_per_plane=8
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fabric.yaml"
        path.write_text(starter_yaml(shape, site="large", environment="twin"))
        site = load_site(path)
    return site, {device: intended_qos(site, device) for device in site.devices}


def pairs(site, kind):
    """A ring in the order of the hosts, or a permutation without fixed points."""
    ends = list(site.topology.endpoints)
    if kind == "permutation":
        random.Random(3).shuffle(ends)
    return [Flow(a, b, ROCE) for a, b in zip(ends, (*ends[1:], ends[0]), strict=True)]


@pytest.mark.parametrize(("kind", "least"), [("ring", 0.99), ("permutation", 0.5)])
def test_1024_hosts_run_in_little_memory_with_progress(large, kind, least, monkeypatch):
    monkeypatch.setattr(run, "_SLICE_EVENTS", 100_000)
    site, states = large
    flows = pairs(site, kind)
    assert len(flows) == 1_024
    simulation = prepare(site, states, flows, SimOptions(300, 100))
    seen: list[float] = []
    simulation.advance(300, seen.append)
    result = simulation.result()
    assert len(seen) > 3
    assert seen[-1] == 300
    assert simulation.arena.m.nbytes < 1e9
    assert result.goodput_bps.sum() > least * 1_024 * PAYLOAD_BPS
    assert dropped(result) == 0
    assert result.notes == ()
