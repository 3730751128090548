"""Probes carry a suite's traffic: on the twin a simulator, on real hosts real verbs."""

from __future__ import annotations

from collections.abc import Mapping

from fabric.errors import InputError
from fabric.qos import DeviceQos
from fabric.site import Site
from validation.probes.hosts.ends import planned_commands, planned_us
from validation.probes.hosts.options import Options
from validation.probes.hosts.probe import HostsProbe
from validation.probes.sim import SimProbe
from validation.traffic import Probe, TrafficPlan


def probe_for(site: Site, states: Mapping[str, DeviceQos], options: Options | None = None) -> Probe:
    """The probe of this site's environment; nothing simulated stands in for real hosts."""
    if site.environment == "twin":
        return SimProbe(site, states)
    return HostsProbe(site, options)


def commands_for(
    site: Site, plan: TrafficPlan, options: Options | None = None
) -> list[dict[str, str]]:
    """Every command that a suite runs on real hosts; none on a twin. Asks nobody."""
    if site.environment == "twin":
        return []
    return planned_commands(site, plan, Options.of(site, options))


def traffic_us(site: Site, plan: TrafficPlan, options: Options | None = None) -> float:
    """For how long a suite's traffic flows in this environment."""
    if site.environment == "twin":
        return plan.traffic_us
    return planned_us(plan, Options.of(site, options))


def check_options(site: Site, options: Options | None) -> None:
    """InputError where it is chosen how to measure and the traffic is simulated."""
    if options is not None and site.environment == "twin":
        raise InputError(
            "a twin's traffic is simulated: it cannot be chosen what measures it",
            file=site.path,
            key="environment",
            advice="Leave out --probe, --latency-verb, --bandwidth-verb, --rdma-cm and --seconds.",
        )
