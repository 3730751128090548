"""Pairs over a port, against every path written out; and large fabrics are quick."""

import time

import pytest

from fabric.audit.paths import Pairs
from fabric.topology import ClosShape, PortRef, ThreeLevelShape, build_clos, build_three_level_clos

SHAPES = {
    "one leaf": build_clos(ClosShape(3, 1, 0)),
    "two levels": build_clos(ClosShape(6, 3, 2)),
    "parallel cables": build_clos(ClosShape(16, 2, 1)),
    "dual-homed": build_clos(ClosShape(4, 4, 2, nics_per_host=2)),
    "three levels": build_three_level_clos(ThreeLevelShape(2, 2, 2, 2, 2)),
}


def brute(topology, places):
    """Pairs with one of these ports, as sender or receiver of a hop, on some path."""
    total = over = 0
    for rail in topology.rails():
        for source in rail:
            for target in rail:
                if source.device == target.device:
                    continue
                paths = topology.paths(source, target)
                total += bool(paths)
                ports = {end for path in paths for hop in path for end in (hop, topology.peer(hop))}
                over += bool(ports & places)
    return total, over


@pytest.mark.parametrize("shape", SHAPES)
def test_pairs_over_every_port_are_those_of_all_shortest_paths(shape):
    topology = SHAPES[shape]
    pairs = Pairs(topology)
    for port in topology.link_of:
        assert (pairs.total, pairs.over([port])) == brute(topology, {port}), port


@pytest.mark.parametrize("shape", SHAPES)
def test_pairs_over_a_device_and_over_several_ports_are_counted_once(shape):
    topology = SHAPES[shape]
    pairs = Pairs(topology)
    for device in (*topology.switches, *topology.hosts[:2]):
        ports = set(topology.ports_of[device])
        assert pairs.over([PortRef(device, "")]) == brute(topology, ports)[1], device
    some = list(topology.link_of)[::5]
    assert pairs.over(some) == brute(topology, set(some))[1]


def test_a_port_without_a_cable_is_on_no_path():
    assert Pairs(SHAPES["two levels"]).over([PortRef("leaf1", "Ethernet1/40")]) == 0


def test_eight_thousand_nics_take_seconds():
    shape = ThreeLevelShape(32, 8, 32, 4, 32, leaf_cables=4)
    topology = build_three_level_clos(shape)
    began = time.process_time()
    pairs = Pairs(topology)
    assert pairs.total == 8192 * 8191
    core = PortRef("core1", "Ethernet1/1")
    # Every pair of another pod may come through this core; so may any core's pairs.
    assert pairs.over([core]) == 2 * 256 * (8192 - 256)
    assert time.process_time() - began < 5
