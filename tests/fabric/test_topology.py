"""Three-level Clos networks."""

from collections import Counter

import pytest

from fabric.topology import PortRef, ThreeLevelShape, build_three_level_clos, unreachable_pairs

SHAPE = ThreeLevelShape(
    pods=3, leaves_per_pod=2, hosts_per_leaf=8, spines_per_pod=2, cores_per_plane=2
)


def test_every_level_has_its_switches_and_cables():
    topology = build_three_level_clos(SHAPE)
    assert len(topology.hosts) == 48
    kinds = Counter(name.rstrip("0123456789") for name in topology.switches)
    assert kinds == {"leaf": 6, "spine": 6, "core": 4}
    assert {len(topology.ports_of[f"core{i}"]) for i in (1, 2, 3, 4)} == {3}
    assert {len(topology.ports_of[f"spine{i + 1}"]) for i in range(6)} == {4}
    assert not list(unreachable_pairs(topology))


def test_a_non_blocking_shape_is_not_oversubscribed():
    topology = build_three_level_clos(SHAPE)
    assert {topology.oversubscription(f"leaf{i + 1}") for i in range(6)} == {1.0}
    # A spine has as much towards the cores as towards its leaves.
    ups = [port for port in topology.ports_of["spine1"] if "core" in topology.peer(port).device]
    assert len(ups) == 2


def test_paths_go_as_high_as_they_must_and_use_every_plane():
    topology = build_three_level_clos(SHAPE)
    ends = topology.endpoints

    def through(source, target):
        return [tuple(p.device for p in path[1:]) for path in topology.paths(source, target)]

    assert through(ends[0], ends[1]) == [("leaf1",)]
    assert len(through(ends[0], ends[8])) == 2
    far = through(ends[0], ends[47])
    assert len(far) == 4
    assert {path[2] for path in far} == {"core1", "core2", "core3", "core4"}
    assert all(path[0] == "leaf1" and path[-1] == "leaf6" for path in far)


def test_several_cables_join_a_leaf_and_a_spine():
    shape = ThreeLevelShape(2, 2, 8, 1, 4, leaf_cables=2)
    topology = build_three_level_clos(shape)
    up = [port for port in topology.ports_of["leaf1"] if topology.peer(port).device == "spine1"]
    assert up == [PortRef("leaf1", "Ethernet1/49"), PortRef("leaf1", "Ethernet1/50")]


def test_a_shape_without_something_is_refused():
    with pytest.raises(ValueError, match="at least one of everything"):
        build_three_level_clos(ThreeLevelShape(2, 2, 8, 0, 2))
