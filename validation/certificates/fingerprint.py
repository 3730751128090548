"""The fingerprint of a fabric: what every device does, how they are cabled, what is wanted.

A certificate is bound to it, device by device, so that the gate can say *which*
device changed, and, with the states that were certified, *what* changed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from fabric.compare import differences
from fabric.qos import DeviceQos, canonical_sha256
from fabric.reach.linkstate import shut_ports
from fabric.site import HostSpec, Site
from fabric.topology import PortRef


@dataclass(frozen=True)
class Fingerprint:
    """Hashes in hexadecimal; ``sha256`` is over all the others."""

    per_device: Mapping[str, str]
    intent_sha256: str
    cabling_sha256: str

    @property
    def sha256(self) -> str:
        """The fabric's own digest."""
        return _hash(
            {
                "devices": dict(self.per_device),
                "intent": self.intent_sha256,
                "cabling": self.cabling_sha256,
            }
        )

    def changed(self, now: Fingerprint, devices: Iterable[str] | None = None) -> tuple[str, ...]:
        """Devices that are not what they were; of ``devices`` only, where given.

        A device that only one of the two knows counts as changed.
        """
        names = set(devices) if devices is not None else {*self.per_device, *now.per_device}
        return tuple(sorted(n for n in names if self.per_device.get(n) != now.per_device.get(n)))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "sha256": self.sha256,
            "per_device": dict(sorted(self.per_device.items())),
            "intent_sha256": self.intent_sha256,
            "cabling_sha256": self.cabling_sha256,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_json`; ValueError where the total does not fit."""
        made = cls(
            dict(data["per_device"]), str(data["intent_sha256"]), str(data["cabling_sha256"])
        )
        if made.sha256 != data["sha256"]:
            raise ValueError("the fingerprint's total does not match its parts")
        return made


def fingerprint(site: Site, states: Mapping[str, DeviceQos]) -> Fingerprint:
    """Fingerprint of these devices' states within this site."""
    return Fingerprint(
        per_device={name: device_sha256(site, states[name]) for name in sorted(states)},
        intent_sha256=intent_sha256(site),
        cabling_sha256=cabling_sha256(site),
    )


def device_sha256(site: Site, state: DeviceQos) -> str:
    """What a device does, is and runs, whom its cabled ports see by LLDP, which are shut.

    A link that is down although nobody shut it is no part of it: it may pass, and the
    gate looks at links by itself.
    """
    ports = {port.port for port in site.topology.ports_of.get(state.device, ())}
    seen = sorted((n.port, n.peer, n.peer_port) for n in state.neighbors or () if n.port in ports)
    shut = shut_ports(site.topology, state)
    return _hash({"state": canonical_sha256((state,)), "neighbors": seen, "shut": shut})


def as_heard(
    before: Mapping[str, DeviceQos], live: Mapping[str, DeviceQos], down: Mapping[PortRef, str]
) -> dict[str, DeviceQos]:
    """States, with the neighbours that ports had before their links went down."""
    heard = {}
    for name, state in live.items():
        certified = before[name].neighbors if name in before else None
        # A neighbour may still be listed for a while after its link went down.
        listed = {neighbor.port for neighbor in state.neighbors or ()}
        silent = [
            n for n in certified or () if PortRef(name, n.port) in down and n.port not in listed
        ]
        seen = (*(state.neighbors or ()), *silent)
        heard[name] = dataclasses.replace(state, neighbors=seen) if silent else state
    return heard


def intent_sha256(site: Site) -> str:
    """What the network must do, as ``fabric.yaml`` says."""
    return _hash(site.intent.model_dump(mode="json"))


def cabling_sha256(site: Site) -> str:
    """Devices with their ports, and cables, as ``fabric.yaml`` says."""
    devices = {
        name: {
            "kind": spec.kind,
            "nics": {
                port: [nic.family, nic.rdma, nic.speed, nic.address]
                for port, nic in spec.nics.items()
            }
            if isinstance(spec, HostSpec)
            else {},
        }
        for name, spec in site.devices.items()
    }
    cables = sorted(
        [*sorted(map(str, (link.a, link.b))), link.speed_bps, link.length_m]
        for link in site.topology.links
    )
    return _hash({"devices": devices, "cables": cables})


def explain(before: Mapping[str, DeviceQos], after: Mapping[str, DeviceQos]) -> list[str]:
    """What differs, as ``DEVICE: PORT: FIELD: OLD -> NEW``; devices in both only, sorted."""
    lines = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            lines.append(f"{name}: {'appeared' if old is None else 'is no longer there'}")
            continue
        lines += [f"{name}: {line}" for line in differences(old, new)]
        lines += [f"{name}: {line}" for line in _neighbor_changes(old, new)]
        lines += [f"{name}: {line}" for line in _shut_changes(old, new)]
    return lines


def _shut_changes(old: DeviceQos, new: DeviceQos) -> list[str]:
    was, now = ({f.port for f in s.facts if f.admin_up is False} for s in (old, new))
    lines = [f"{port}: in service -> shut" for port in sorted(now - was)]
    return lines + [f"{port}: shut -> in service" for port in sorted(was - now)]


def _neighbor_changes(old: DeviceQos, new: DeviceQos) -> list[str]:
    was = {n.port: f"{n.peer}:{n.peer_port}" for n in old.neighbors or ()}
    now = {n.port: f"{n.peer}:{n.peer_port}" for n in new.neighbors or ()}
    return [
        f"{port}: LLDP neighbour: {was.get(port, 'none')} -> {now.get(port, 'none')}"
        for port in sorted({*was, *now})
        if was.get(port) != now.get(port)
    ]


def _hash(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
