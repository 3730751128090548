"""What a topology can carry of some traffic at best: max-min fair shares, ideal ECMP.

Progressive filling (Bertsekas & Gallager, Data Networks, 6.5.2) over the wires of NICs and
the uplinks of every leaf, which count as one pipe each way. What lies above leaves is taken
to be no narrower, as in a Clos.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fabric.site import Site
from validation.criteria import payload_bps
from validation.traffic import Pair


def fair_shares_bps(site: Site, pairs: Sequence[Pair]) -> NDArray[np.float64]:
    """RoCE payload in bit/s that each pair gets where all send at once, and no more."""
    topology = site.topology
    pipes: dict[tuple[str, str], int] = {}
    speeds: list[float] = []
    uplinks = _uplinks_bps(site)

    def pipe(name: str, way: str, speed_bps: float) -> int:
        if (name, way) not in pipes:
            pipes[name, way] = len(speeds)
            speeds.append(payload_bps(speed_bps, site.intent.mtu.roce))
        return pipes[name, way]

    rows, columns = [], []
    for number, (source, target) in enumerate(pairs):
        over = [
            pipe(str(source), "out", topology.link_of[source].speed_bps),
            pipe(str(target), "in", topology.link_of[target].speed_bps),
        ]
        leaves = topology.peer(source).device, topology.peer(target).device
        if leaves[0] != leaves[1]:
            over.append(pipe(leaves[0], "up", uplinks[leaves[0]]))
            over.append(pipe(leaves[1], "down", uplinks[leaves[1]]))
        rows += [number] * len(over)
        columns += over
    return _fill(len(pairs), np.array(rows), np.array(columns), np.array(speeds))


def _uplinks_bps(site: Site) -> dict[str, int]:
    topology, hosts = site.topology, frozenset(site.topology.hosts)
    return {
        switch: sum(
            topology.link_of[port].speed_bps
            for port in topology.ports_of[switch]
            if topology.peer(port).device not in hosts
        )
        for switch in topology.switches
    }


def _fill(
    flows: int, rows: NDArray[np.intp], columns: NDArray[np.intp], speeds: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Raise all flows alike; those of a pipe that is full stay where they are."""
    shares = np.zeros(flows)
    rising = np.ones(flows, dtype=bool)
    left = speeds.astype(np.float64)
    while rising.any():
        users = np.bincount(columns[rising[rows]], minlength=len(left))
        used = users > 0
        step = float(np.min(left[used] / users[used]))
        shares[rising] += step
        left -= step * users
        full = used & (left <= speeds * 1e-9)
        rising[rows[full[columns]]] = False
    return shares
