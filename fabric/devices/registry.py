"""Finding the module of a device, and describing the device to it."""

from __future__ import annotations

from typing import cast

from fabric.devices.base import DeviceModule, Target, TargetPort
from fabric.devices.entries import HOSTS, NICS, SWITCHES, known, load, preload
from fabric.intended import intended_qos
from fabric.qos import DeviceQos
from fabric.site import HostSpec, Site, SwitchSpec

__all__ = [
    "NICS",
    "SWITCHES",
    "expected_qos",
    "known",
    "load",
    "module_of",
    "preload",
    "target_of",
]


def module_of(site: Site, device: str) -> DeviceModule:
    """The module that speaks this device's language."""
    spec = site.devices[device]
    name = spec.os if isinstance(spec, SwitchSpec) else HOSTS
    return cast(DeviceModule, load(SWITCHES, name))


def target_of(site: Site, device: str) -> Target:
    """What a module needs to know of a device: its cabled ports."""
    spec = site.devices[device]
    ports = []
    for end in site.topology.ports_of[device]:
        link = site.topology.link_of[end]
        family = rdma_device = ""
        if isinstance(spec, HostSpec):
            family = spec.nics[end.port].family
            rdma_device = spec.nics[end.port].rdma
        ports.append(TargetPort(end.port, link.speed_bps, link.length_m, family, rdma_device))
    if isinstance(spec, HostSpec):
        return Target(device, "linux", "", tuple(ports))
    return Target(device, spec.os, spec.model, tuple(ports))


def expected_qos(site: Site, device: str) -> DeviceQos:
    """What this device should do, as far as its system can express the intent.

    A module that cannot express all of it says so by a ``normalise`` of its own,
    which maps an intended state to the nearest one that it can read back, or by
    ``fit``, which is also told of the model and of its ports' cables.
    """
    intended = intended_qos(site, device)
    module = module_of(site, device)
    if (fit := getattr(module, "fit", None)) is not None:
        return cast(DeviceQos, fit(target_of(site, device), intended))
    normalise = getattr(module, "normalise", None)
    return intended if normalise is None else cast(DeviceQos, normalise(intended))
