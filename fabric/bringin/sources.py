"""What any source can tell of a site: devices with their NICs, and cables.

Nothing in it is required. What no source tells is a gap, and is said with its line
when ``fabric.yaml`` is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from fabric.devices.registry import SWITCHES, known
from fabric.intent import Intent
from fabric.saved.layout import CableRow

# Names of systems in Ansible (the last word of a collection's platform) and NetBox.
_SYSTEMS = {
    "nxos": "nxos", "nx-os": "nxos", "nexus": "nxos",
    "eos": "eos", "arista": "eos",
    "sonic": "sonic", "enterprise_sonic": "sonic",
    "junos": "junos", "qfx": "junos",
    "nvue": "nvue", "cumulus": "nvue", "cumulus-linux": "nvue",
    "os10": "os10", "ce": "huawei", "cloudengine": "huawei", "huawei": "huawei",
    "comware": "comware", "h3c": "comware",
    "linux": "linux", "ubuntu": "linux", "debian": "linux", "rhel": "linux", "rocky": "linux",
}  # fmt: skip
_SWITCH_WORDS = re.compile(r"leaf|leaves|spine|core|tor\b|tors\b|switch|fabric|agg", re.IGNORECASE)
_LEAF_WORDS = re.compile(r"leaf|leaves|tor\b|tors\b|access|edge", re.IGNORECASE)
_SPINE_WORDS = re.compile(r"spine|core|agg", re.IGNORECASE)
_HOST_WORDS = re.compile(r"host|server|gpu|compute|node|worker|dgx|trainer", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SourceNic:
    """One NIC port of a host; what is not told is empty or None."""

    name: str
    family: str = ""
    rdma: str = ""
    speed_bps: int | None = None
    address: str = ""


@dataclass(frozen=True, slots=True)
class SourceDevice:
    """One device; what is not told is empty or None."""

    name: str
    kind: str = ""
    os: str = ""
    model: str = ""
    role: str = ""
    buffer: str = ""
    address: str = ""
    port: int | None = None
    user: str = ""
    nics: tuple[SourceNic, ...] = ()


@dataclass(frozen=True)
class Source:
    """One source, or several merged. ``notes`` say what about it was odd."""

    devices: Mapping[str, SourceDevice] = field(default_factory=dict)
    cables: Sequence[CableRow] = ()
    intent: Intent | None = None
    notes: tuple[str, ...] = ()


def system(text: str) -> str:
    """Our name of a system: ``cisco.nxos.nxos`` is ``nxos``; empty for an unknown one."""
    for word in (text.lower(), text.lower().rpartition(".")[2]):
        if word in known(SWITCHES):
            return word
        if word in _SYSTEMS:
            return _SYSTEMS[word]
    return ""


def kind_of(os_name: str, words: Sequence[str]) -> str:
    """``switch`` or ``host``, by its system, its groups or role, and its name; or empty."""
    if os_name:
        return "host" if os_name == "linux" else "switch"
    text = " ".join(words)
    if _SWITCH_WORDS.search(text):
        return "switch"
    return "host" if _HOST_WORDS.search(text) else ""


def role_of(words: Sequence[str]) -> str:
    """``leaf`` or ``spine`` by groups, role and name; empty where these do not say."""
    text = " ".join(words)
    if _LEAF_WORDS.search(text):
        return "leaf"
    return "spine" if _SPINE_WORDS.search(text) else ""


def merged(sources: Sequence[Source]) -> Source:
    """All of them in one: what an earlier one does not tell, a later one may.

    Cables are those of the first source that has any.
    """
    devices: dict[str, SourceDevice] = {}
    for source in sources:
        for name, device in source.devices.items():
            devices[name] = _filled(devices[name], device) if name in devices else device
    return Source(
        devices,
        next((source.cables for source in sources if source.cables), ()),
        next((source.intent for source in sources if source.intent is not None), None),
        tuple(note for source in sources for note in source.notes),
    )


def _filled(first: SourceDevice, second: SourceDevice) -> SourceDevice:
    nics = {nic.name: nic for nic in first.nics}
    for nic in second.nics:
        nics[nic.name] = replace(nic, **_told(nics[nic.name])) if nic.name in nics else nic
    return replace(second, **(_told(first) | {"nics": tuple(nics.values())}))


def _told(value: Any) -> dict[str, Any]:  # noqa: ANN401 - either dataclass of this module
    return {
        one.name: getattr(value, one.name)
        for one in fields(value)
        if getattr(value, one.name) not in ("", None, ())
    }
