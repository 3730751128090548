"""Probes carry a suite's traffic: on the twin a simulator, on real hosts real verbs."""

from __future__ import annotations

from collections.abc import Mapping

from fabric.errors import InputError
from fabric.qos import DeviceQos
from fabric.site import Site
from validation.probes.sim import SimProbe
from validation.traffic import Probe

PROBES = {"twin": "sim"}


def require_probe(site: Site) -> None:
    """InputError where no probe can carry traffic on this site: nothing may stand in for it."""
    if site.environment in PROBES:
        return
    known = ", ".join(f"{probe} (environment: {name})" for name, probe in PROBES.items())
    raise InputError(
        f"no probe can carry traffic in the environment {site.environment!r}",
        file=site.path,
        key="environment",
        advice=f"There are: {known}. perftest on real hosts comes with a later release; "
        "simulated traffic is never used in its place.",
    )


def probe_for(site: Site, states: Mapping[str, DeviceQos]) -> Probe:
    """The probe of this site's environment. Raises InputError where there is none."""
    require_probe(site)
    return SimProbe(site, states)
