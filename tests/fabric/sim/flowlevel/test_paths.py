"""Paths laid in numbers are those that the packet level takes."""

import itertools

import pytest

from fabric.errors import InputError
from fabric.sim.ecmp import Router
from fabric.sim.flowlevel.paths import Graph
from fabric.topology import (
    ClosShape,
    Link,
    PortRef,
    ThreeLevelShape,
    Topology,
    build_clos,
    build_three_level_clos,
)

SHAPES = {
    "star": build_clos(ClosShape(4, 1, 0)),
    "clos": build_clos(ClosShape(12, 3, 2)),
    "dual-homed": build_clos(ClosShape(6, 4, 2, nics_per_host=2)),
    "three levels": build_three_level_clos(ThreeLevelShape(2, 2, 2, 2, 2, leaf_cables=2)),
}


def ports_of(topology):
    devices = (*topology.hosts, *topology.switches)
    return [port for device in devices for port in topology.ports_of[device]]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", [1, 7])
def test_every_pair_takes_the_packet_levels_path(shape, seed):
    topology = SHAPES[shape]
    graph = Graph(topology, ports_of(topology))
    router = Router(topology, seed)
    rail = topology.rails()[0]
    pairs = [(a, b, qp) for a, b in itertools.permutations(rail, 2) for qp in (0, 3)]
    paths = graph.lay(pairs, seed)
    for number, (source, target, qp) in enumerate(pairs):
        ours = tuple(graph.ports[hop] for hop in paths.of(number))
        assert ours == (source, *router.path(source, target, qp))


def test_a_pair_without_a_path_is_named():
    links = [Link(PortRef(f"l{i}", "e1"), PortRef(f"h{i}", "n"), 10**9, 1) for i in (1, 2)]
    topology = Topology(("h1", "h2"), ("l1", "l2"), tuple(links))
    graph = Graph(topology, ports_of(topology))
    with pytest.raises(InputError, match="no path leads from h1:n to h2:n"):
        graph.lay([(PortRef("h1", "n"), PortRef("h2", "n"), 0)], 1)
