"""The Clos that a prediction runs on where there is no site: built from a few numbers.

Leaves of 32 hosts, as the article's access switches have, set as ``paisoar init`` sets
a site; thresholds of other port speeds in proportion to those of 25G.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

from fabric.errors import InputError
from fabric.intent import Intent
from fabric.sim.flowlevel.clos import network_of_shape
from fabric.sim.flowlevel.network import FlowNetwork
from fabric.site import Site, load_site
from fabric.starter import starter_yaml
from fabric.topology import ThreeLevelShape
from fabric.units import format_speed

HOSTS_PER_LEAF = 32
UPLINK_BPS = 100 * 10**9
# Above this IEEE 802.3 gives no reaction time to a pause, so there is no headroom.
MAX_NIC_BPS = 400 * 10**9
_KNOWN = {25 * 10**9, 100 * 10**9}


def shape_of(hosts: int, nic_bps: int, oversubscription: float) -> ThreeLevelShape:
    """Two levels for so many hosts; one cable from every leaf to every spine.

    InputError where the speed or the ratio makes no sense.
    """
    if not 10**9 <= nic_bps <= MAX_NIC_BPS:
        raise InputError(
            f"--nic {format_speed(nic_bps)}: NICs have 1G to {format_speed(MAX_NIC_BPS)}"
        )
    if not 1 <= oversubscription < math.inf:
        raise InputError(
            f"--oversubscription {oversubscription:g}: 1 is non-blocking, 4 has a quarter of that"
        )
    per_leaf = min(HOSTS_PER_LEAF, hosts)
    uplink_bps = max(UPLINK_BPS, nic_bps)
    spines = max(1, round(per_leaf * nic_bps / (uplink_bps * oversubscription)))
    return ThreeLevelShape(
        pods=1,
        leaves_per_pod=-(-hosts // per_leaf),
        hosts_per_leaf=per_leaf,
        spines_per_pod=spines,
        cores_per_plane=1,
        host_speed_bps=nic_bps,
        uplink_speed_bps=uplink_bps,
    )


def clos_network(shape: ThreeLevelShape) -> tuple[FlowNetwork, Intent]:
    """Its ports and what each does."""
    return network_of_shape(shape, _small_site)


def _small_site(shape: ThreeLevelShape) -> Site:
    text = starter_yaml(shape, site="clos", environment="twin")
    head = "  profiles:\n"
    for speed_bps in {shape.host_speed_bps, shape.uplink_speed_bps} - _KNOWN:
        text = text.replace(head, f"{head}    {_profile(speed_bps)}\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fabric.yaml"
        path.write_text(text, encoding="utf-8")
        return load_site(path)


def _profile(speed_bps: int) -> str:
    """Thresholds at this speed: the time that a port of 25G needs for its own."""
    times = speed_bps / (25 * 10**9)
    sizes = {"kmin": 100, "kmax": 400, "xoff": 150, "xon": 140}
    parts = ", ".join(f"{name}: {round(kb * times * 1000)}B" for name, kb in sizes.items())
    return f"{format_speed(speed_bps)}: {{{parts}, pmax_percent: 20}}"
