"""Traffic on the twin: simulated from what its devices hold, counted on them.

This closes the loop. The simulator sees the devices' own state, and what it saw
moves the counters that ``show`` and ``ethtool -S`` print afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fabric.qos import DeviceQos
from fabric.sim.api import Flow, SimOptions, SimResult
from fabric.sim.run import simulate
from fabric.site import Site
from fabric.twin.control import ask, post_counters


def carry(
    site: Site, states: Mapping[str, DeviceQos], flows: Sequence[Flow], options: SimOptions
) -> SimResult:
    """Send these flows through the twin's fabric and count them on its devices.

    ``states`` holds what each device does now (``fabric.reach.collect``). Raises
    ToolError, before anything is simulated, where the twin is not up.
    """
    ask(site, "status")
    result = simulate(site, states, flows, options)
    post_counters(site, result.counters)
    return result
