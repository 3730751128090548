"""A three-level Clos of any size, set as ``paisoar init`` sets one, without its file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fabric.devices.registry import expected_qos
from fabric.errors import InputError
from fabric.intent import Intent
from fabric.qos import DeviceQos, PortQos
from fabric.sim.flowlevel.network import FlowNetwork
from fabric.site import Site, load_site
from fabric.starter import starter_yaml
from fabric.topology import PortRef, ThreeLevelShape, build_three_level_clos

HOSTS_PER_LEAF = 32
LEAVES_PER_POD = 16
_LEAST_HOSTS = 16


def shape_for(hosts: int) -> ThreeLevelShape:
    """A non-blocking three-level Clos of exactly this many hosts at 25G.

    Leaves hold up to 32 hosts, pods up to 16 leaves. InputError where the number is
    no multiple of 16.
    """
    if hosts < _LEAST_HOSTS or hosts % _LEAST_HOSTS:
        raise InputError(
            f"--clos {hosts}: a three-level Clos has a multiple of {_LEAST_HOSTS} hosts",
            advice=f"Try {max(_LEAST_HOSTS, hosts // _LEAST_HOSTS * _LEAST_HOSTS)}.",
        )
    per_leaf = 4 if hosts < 4 * HOSTS_PER_LEAF else _divisor(hosts, HOSTS_PER_LEAF)
    leaves = hosts // per_leaf
    per_pod = max(1, min(LEAVES_PER_POD, leaves // 2))
    while leaves % per_pod:
        per_pod -= 1
    return ThreeLevelShape(
        pods=leaves // per_pod,
        leaves_per_pod=per_pod,
        hosts_per_leaf=per_leaf,
        spines_per_pod=-(-per_leaf // 4),
        cores_per_plane=per_pod,
    )


def _divisor(number: int, most: int) -> int:
    return next(d for d in range(most, 0, -1) if number % d == 0)


def links_of(shape: ThreeLevelShape) -> int:
    """How many cables :func:`fabric.topology.build_three_level_clos` lays."""
    leaves = shape.pods * shape.leaves_per_pod
    up = leaves * shape.spines_per_pod * shape.leaf_cables
    return (
        leaves * shape.hosts_per_leaf
        + up
        + shape.pods * shape.spines_per_pod * shape.cores_per_plane
    )


def site_of(shape: ThreeLevelShape) -> Site:
    """The site that ``paisoar init`` would write for this shape; it has no file to keep."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fabric.yaml"
        path.write_text(starter_yaml(shape, site="clos", environment="twin"), encoding="utf-8")
        return load_site(path)


def network_of_shape(
    shape: ThreeLevelShape, make: Callable[[ThreeLevelShape], Site] = site_of
) -> tuple[FlowNetwork, Intent]:
    """Such a site's network and intent. Ports of one role share what a small Clos's do.

    ``make`` makes the small one.
    """
    small = make(
        ThreeLevelShape(
            pods=1,
            leaves_per_pod=1,
            hosts_per_leaf=1,
            spines_per_pod=1,
            cores_per_plane=1,
            host_speed_bps=shape.host_speed_bps,
            uplink_speed_bps=shape.uplink_speed_bps,
            host_cable_m=shape.host_cable_m,
            uplink_cable_m=shape.uplink_cable_m,
            core_cable_m=shape.core_cable_m,
        )
    )
    states = {name: expected_qos(small, name) for name in small.devices}
    topology = build_three_level_clos(shape)
    ports: list[PortRef] = []
    qos: list[PortQos] = []
    role_of = {"h": "host1", "l": "leaf1", "s": "spine1", "c": "core1"}
    for device in (*topology.hosts, *topology.switches):
        roles = _by_peer(small, states[role_of[device[0]]])
        for port in topology.ports_of[device]:
            ports.append(port)
            qos.append(roles[topology.peer(port).device[0]])
    buffer = small.switch("leaf1").buffer
    pools = [0 if port.device[0] == "h" else buffer for port in ports]
    network = FlowNetwork("clos", topology, tuple(ports), tuple(qos), np.array(pools, np.float64))
    return network, small.intent


def _by_peer(site: Site, state: DeviceQos) -> dict[str, PortQos]:
    """What a device's ports do, by the first letter of the role at the other end."""
    found = {}
    for port in state.ports:
        found[site.topology.peer(PortRef(state.device, port.name)).device[0]] = port
    return found
