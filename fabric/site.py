"""``fabric.yaml``: the intent, the devices, the cables and the criteria of one site.

``load_site`` reads and checks it; every complaint names file, line and key.
What runs leave behind lies under ``.paisoar/`` beside the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from fabric.errors import InputError
from fabric.headroom import (
    headroom_bytes,
    mlx5_cable_m,
    mlx5_headroom_bytes,
    mlx5_min_buffer_bytes,
)
from fabric.intent import Certify, Intent, SizeBytes, SpeedBps, StrictModel
from fabric.topology import Link, PortRef, Topology, unreachable_pairs
from fabric.units import format_size, format_speed, parse_speed_bps
from fabric.yamlfile import YamlFile, load_yaml

SCHEMA = "paisoar/fabric/v1"
STATE_FOLDER = ".paisoar"
_TEMPLATES = ("{{", "{%", "{#")

Environment = Literal["twin", "lab", "site"]
EvidenceClass = Literal["simulated", "soft-roce", "hardware"]
EVIDENCE_CLASS: dict[Environment, EvidenceClass] = {
    "twin": "simulated",
    "lab": "soft-roce",
    "site": "hardware",
}

DeviceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=63)]
# Names reach shell commands and file names: nothing in them may need quoting.
InterfaceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9/._-]*$", max_length=63)]


class Management(StrictModel):
    """How a device is reached over SSH. ``address`` defaults to the device's name.

    Passwords have no place here: see ``fabric.access``.
    """

    # What they hold becomes words of commands and of Ansible's inventory: nothing else passes.
    address: Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._:-]*)?$")] = ""
    port: Annotated[int, Field(ge=1, le=65535)] = 22
    user: Annotated[str, Field(pattern=r"^([A-Za-z_][A-Za-z0-9._@\\-]*)?$")] = ""


class SwitchSpec(StrictModel):
    """One switch. ``buffer`` is its shared packet buffer."""

    kind: Literal["switch"]
    role: Literal["leaf", "spine"]
    os: str
    model: str
    buffer: SizeBytes
    mgmt: Management = Management()


class NicSpec(StrictModel):
    """One NIC port of a host. ``rdma`` is the verbs device, e.g. ``mlx5_0``."""

    family: str
    rdma: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
    speed: SpeedBps
    address: str = ""


class HostSpec(StrictModel):
    """One host; its NICs by interface name."""

    kind: Literal["host"]
    nics: Annotated[dict[InterfaceName, NicSpec], Field(min_length=1)]
    mgmt: Management = Management()


DeviceSpec = Annotated[SwitchSpec | HostSpec, Field(discriminator="kind")]


class Cable(StrictModel):
    """One cable between two ports, each written ``DEVICE:PORT``."""

    a: str
    b: str
    speed: SpeedBps
    length_m: Annotated[float, Field(gt=0, le=10_000, strict=False)] = 3.0


class FabricFile(StrictModel):
    """The whole of ``fabric.yaml``."""

    schema_: Annotated[Literal["paisoar/fabric/v1"], Field(alias="schema")]
    site: DeviceName
    environment: Environment = "twin"
    max_oversubscription: Annotated[float, Field(gt=0, strict=False)] = 1.0
    intent: Intent
    certify: Certify = Certify()
    devices: Annotated[dict[DeviceName, DeviceSpec], Field(min_length=1)]
    cables: list[Cable]


@dataclass(frozen=True)
class Site:
    """A checked site. ``topology`` holds what ``document`` says about cables."""

    path: Path
    document: FabricFile
    topology: Topology

    @property
    def name(self) -> str:
        """The site's name, part of every certificate's scope."""
        return self.document.site

    @property
    def intent(self) -> Intent:
        """What the network must do."""
        return self.document.intent

    @property
    def environment(self) -> Environment:
        """Where devices and traffic come from."""
        return self.document.environment

    @property
    def evidence_class(self) -> EvidenceClass:
        """What results of this environment may be called."""
        return EVIDENCE_CLASS[self.environment]

    @cached_property
    def state_dir(self) -> Path:
        """``.paisoar/`` beside the file; not created here."""
        return state_dir_of(self.path)

    @cached_property
    def devices(self) -> dict[str, SwitchSpec | HostSpec]:
        """Every device, hosts and switches, in the file's order."""
        return dict(self.document.devices)

    def switch(self, name: str) -> SwitchSpec:
        """The switch of this name; KeyError where it is none."""
        device = self.devices[name]
        if not isinstance(device, SwitchSpec):
            raise KeyError(name)
        return device

    def host(self, name: str) -> HostSpec:
        """The host of this name; KeyError where it is none."""
        device = self.devices[name]
        if not isinstance(device, HostSpec):
            raise KeyError(name)
        return device

    def select(self, names: list[str] | None) -> tuple[str, ...]:
        """These devices, or all of them; InputError names an unknown one."""
        if not names:
            return tuple(self.devices)
        for name in names:
            if name not in self.devices:
                raise InputError(
                    f"no device is called {name!r}",
                    file=self.path,
                    key="devices",
                    advice=f"There are: {', '.join(self.devices)}.",
                )
        return tuple(names)

    @cached_property
    def sha256(self) -> str:
        """Hash of what the file says, whatever its layout and comments."""
        text = json.dumps(self.document.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def state_dir_of(file: Path) -> Path:
    """``.paisoar/`` beside this ``fabric.yaml``, valid or not."""
    return file.resolve().parent / STATE_FOLDER


def load_site(path: Path) -> Site:
    """Read and check ``fabric.yaml``. Raises InputError with file, line and key."""
    whole = str(path.resolve())
    if any(mark in whole for mark in _TEMPLATES):
        raise InputError(
            "Ansible would run what stands in this path between braces",
            file=path,
            advice="Move the site to a folder without {{, {% or {# in its path.",
        )
    file = load_yaml(path)
    document = file.validate(FabricFile)
    topology = _topology(file, document)
    site = Site(path, document, topology)
    check_devices(site, file)
    return site


def check_devices(site: Site, file: YamlFile) -> None:
    """InputError for the first fault of devices and cables together; ``file`` has its line."""
    for fault in _faults(site):
        raise file.error(fault[0], fault[1])


def _topology(file: YamlFile, document: FabricFile) -> Topology:
    links: list[Link] = []
    cabled: dict[PortRef, int] = {}
    for index, cable in enumerate(document.cables):
        ends = []
        for side, text in (("a", cable.a), ("b", cable.b)):
            at = ("cables", index, side)
            try:
                end = PortRef.parse(text)
            except ValueError as error:
                raise file.error(at, str(error)) from None
            device = document.devices.get(end.device)
            if device is None:
                raise file.error(at, f"no device is called {end.device!r}")
            if isinstance(device, HostSpec):
                nic = device.nics.get(end.port)
                if nic is None:
                    raise file.error(at, f"{end.device} has no NIC {end.port!r}")
                if nic.speed != cable.speed:
                    raise file.error(
                        at,
                        f"the cable runs at {format_speed(cable.speed)}, "
                        f"{end} at {format_speed(nic.speed)}",
                    )
            if end in cabled:
                first = file.line(("cables", cabled[end]))
                raise file.error(at, f"{end} is cabled twice, first in line {first}")
            cabled[end] = index
            ends.append(end)
        if ends[0].device == ends[1].device:
            raise file.error(("cables", index), "the cable ends on the device it starts from")
        links.append(Link(ends[0], ends[1], cable.speed, cable.length_m))
    kinds = {name: device.kind for name, device in document.devices.items()}
    return Topology(
        hosts=tuple(name for name, kind in kinds.items() if kind == "host"),
        switches=tuple(name for name, kind in kinds.items() if kind == "switch"),
        links=tuple(links),
    )


def _faults(site: Site) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """What is wrong about devices and cables together: location and message."""
    document, topology = site.document, site.topology
    for index, cable in enumerate(document.cables):
        kinds = {site.devices[PortRef.parse(end).device].kind for end in (cable.a, cable.b)}
        if kinds == {"host"}:
            yield ("cables", index), "the cable joins two hosts; a site needs a switch between"
        if not any(parse_speed_bps(text) == cable.speed for text in document.intent.profiles):
            yield (
                ("cables", index, "speed"),
                f"intent.profiles has no thresholds for {format_speed(cable.speed)} ports",
            )
    for name, device in site.devices.items():
        if isinstance(device, HostSpec):
            for nic in device.nics:
                if PortRef(name, nic) not in topology.link_of:
                    yield ("devices", name, "nics", nic), f"{name}:{nic} has no cable"
            yield from _receive_buffer_faults(site, name)
        else:
            yield from _switch_faults(site, name, device)
    for source, target in unreachable_pairs(topology, limit=1):
        yield ("devices", source.device), f"no path leads from {source} to {target}"


def _switch_faults(
    site: Site, name: str, switch: SwitchSpec
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    at = ("devices", name)
    topology = site.topology
    if not topology.ports_of[name]:
        yield at, f"switch {name} has no cable"
    ratio = topology.oversubscription(name)
    if len(topology.switches) > 1 and ratio > site.document.max_oversubscription + 1e-9:
        yield (
            at,
            f"{name} is oversubscribed {ratio:g}:1, "
            f"max_oversubscription allows {site.document.max_oversubscription:g}:1",
        )
    lossless = sum(cls.lossless for cls in site.intent.classes.values())
    needed = 0
    for port in topology.ports_of[name]:
        link = topology.link_of[port]
        profile = site.intent.profile(link.speed_bps)
        headroom = headroom_bytes(link.speed_bps, link.length_m, site.intent.mtu.switch_port)
        needed += lossless * (profile.xoff + headroom)
    if needed > switch.buffer:
        yield (
            (*at, "buffer"),
            f"{name}'s lossless buffers need {format_size(needed)}, "
            f"it has {format_size(switch.buffer)}",
        )


def _receive_buffer_faults(site: Site, name: str) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for port in site.topology.ports_of[name]:
        link = site.topology.link_of[port]
        headroom = mlx5_headroom_bytes(
            link.speed_bps, mlx5_cable_m(link.length_m), site.intent.mtu.host
        )
        needed = mlx5_min_buffer_bytes(headroom)
        if needed > site.intent.host.receive_buffer:
            yield (
                ("intent", "host", "receive_buffer"),
                f"{port} needs {format_size(needed)}, {format_size(headroom)} of it headroom",
            )
