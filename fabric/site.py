"""``fabric.yaml``: the intent, the devices, the cables and the criteria of one site.

``load_site`` reads and checks it; every complaint names file, line and key.
What runs leave behind lies under ``.paisoar/`` beside the file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from fabric.devices.ports import kernel_name
from fabric.errors import InputError, all_of
from fabric.intent import Certify, Intent, Place, SizeBytes, SpeedBps, StrictModel
from fabric.siterules import cable_faults, device_faults, fabric_faults
from fabric.topology import Link, PortRef, Topology
from fabric.yamlfile import YamlFile, load_yaml

SCHEMA = "paisoar/fabric/v1"
STATE_FOLDER = ".paisoar"
MAX_CABLE_M = 10_000
_TEMPLATES = ("{{", "{%", "{#")

Environment = Literal["twin", "lab", "site"]
EvidenceClass = Literal["simulated", "soft-roce", "hardware"]
EVIDENCE_CLASS: dict[Environment, EvidenceClass] = {
    "twin": "simulated",
    "lab": "soft-roce",
    "site": "hardware",
}

# Names reach shell commands and file names: nothing in them may need quoting.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def device_name(text: str) -> str:
    """The text, if a device or site can be called so; ValueError otherwise."""
    if not _NAME.fullmatch(text):
        raise ValueError("a name is up to 63 letters, digits, points, underscores and dashes")
    return text


DeviceName = Annotated[str, AfterValidator(device_name)]
InterfaceName = Annotated[str, AfterValidator(kernel_name)]


class Management(StrictModel):
    """How a device is reached over SSH. ``address`` defaults to the device's name.

    Passwords have no place here: see ``fabric.reach.access``.
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
    length_m: Annotated[float, Field(gt=0, le=MAX_CABLE_M, strict=False)] = 3.0


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


_Part = TypeVar("_Part")
_DEVICE: TypeAdapter[SwitchSpec | HostSpec] = TypeAdapter(DeviceSpec)
_CABLE = TypeAdapter(Cable)
_INTENT = TypeAdapter(Intent)


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
        """These devices, or all of them; InputError names an unknown one.

        One word may name several, with commas between them.
        """
        if not names:
            return tuple(self.devices)
        named = device_names(names)
        for name in named:
            if name not in self.devices:
                raise InputError(
                    f"no device is called {name!r}",
                    file=self.path,
                    key="devices",
                    advice=f"There are: {', '.join(self.devices)}.",
                )
        return named

    @cached_property
    def sha256(self) -> str:
        """Hash of what the file says, whatever its layout and comments."""
        text = json.dumps(self.document.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def device_names(words: Sequence[str]) -> tuple[str, ...]:
    """The names in these words, each of which may hold several with commas between them."""
    return tuple(dict.fromkeys(part.strip() for word in words for part in word.split(",")))


def state_dir_of(file: Path) -> Path:
    """``.paisoar/`` beside this ``fabric.yaml``, valid or not."""
    return file.resolve().parent / STATE_FOLDER


def load_site(path: Path) -> Site:
    """Read and check ``fabric.yaml``. InputError holds all that is wrong, with lines and keys."""
    whole = str(path.resolve())
    if any(mark in whole for mark in _TEMPLATES):
        raise InputError(
            "Ansible would run what stands in this path between braces",
            file=path,
            advice="Move the site to a folder without {{, {% or {# in its path.",
        )
    file = load_yaml(path)
    try:
        document = FabricFile.model_validate(file.data)
    except ValidationError as error:
        raise all_of([*file.faults(error), *_known_faults(file)]) from error
    _refuse(file, _placed_faults(file, document))
    return Site(path, document, _topology(document))


def check_devices(site: Site, file: YamlFile) -> None:
    """InputError for the faults of devices and cables together; ``file`` has their lines."""
    _refuse(file, _placed_faults(file, site.document))


def _refuse(file: YamlFile, places: Iterable[Place]) -> None:
    if faults := [file.error(*place) for place in places]:
        raise all_of(faults)


def _placed_faults(file: YamlFile, document: FabricFile) -> list[Place]:
    faults = list(cable_faults(document.devices, document.cables, document.intent, file.line))
    if not faults:
        faults += fabric_faults(document, _topology(document))
    return [*device_faults(document.devices), *faults]


def _known_faults(file: YamlFile) -> list[InputError]:
    """What can be said of devices and cables of a file that has faults of other kinds."""
    devices, cables, intent = _valid_parts(file.data)
    faults = [*device_faults(devices), *cable_faults(devices, cables, intent, file.line)]
    return [file.error(*fault) for fault in faults]


def _valid_parts(
    data: Any,  # noqa: ANN401 - whatever the file holds
) -> tuple[dict[str, SwitchSpec | HostSpec | None], list[Cable | None], Intent | None]:
    """Devices, cables and intent of a file with faults; None for each that has one."""
    devices, cables = data.get("devices"), data.get("cables")
    named = devices.items() if isinstance(devices, dict) else ()
    listed = cables if isinstance(cables, list) else ()
    return (
        {str(name): _part(_DEVICE, spec) for name, spec in named},
        [_part(_CABLE, cable) for cable in listed],
        _part(_INTENT, data.get("intent")),
    )


def _part(adapter: TypeAdapter[_Part], value: object) -> _Part | None:
    try:
        return adapter.validate_python(value)
    except ValidationError:
        return None


def _topology(document: FabricFile) -> Topology:
    kinds = {name: device.kind for name, device in document.devices.items()}
    return Topology(
        hosts=tuple(name for name, kind in kinds.items() if kind == "host"),
        switches=tuple(name for name, kind in kinds.items() if kind == "switch"),
        links=tuple(
            Link(PortRef.parse(cable.a), PortRef.parse(cable.b), cable.speed, cable.length_m)
            for cable in document.cables
        ),
    )
