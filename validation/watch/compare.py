"""What a reading of the whole fabric says beside the certificate."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from fabric.qos import DeviceQos
from fabric.reach.linkstate import down_ports
from fabric.site import Site
from validation.certificates.certificate import Certificate
from validation.certificates.fingerprint import as_heard, device_sha256, explain
from validation.times import to_text
from validation.watch.reading import DownLink, Reading, SeenDevice

_MAX_CHANGES = 5


def reading_of(
    site: Site,
    found: Certificate | None,
    certified: Mapping[str, DeviceQos],
    states: Mapping[str, DeviceQos],
    failed: Mapping[str, str],
    started_at: datetime,
    interval_s: float,
) -> Reading:
    """The reading that these states are, compared with what was certified.

    ``certified`` are the certified states, as far as they are at hand; ``failed``
    says why a device did not answer.
    """
    down = down_ports(site.topology, states)
    heard = as_heard(certified, states, down)
    before = found.fingerprint.per_device if found is not None else {}
    devices = {}
    for name in site.devices:
        if name not in heard:
            devices[name] = SeenDevice(sha256="", error=failed.get(name, "nothing was read"))
            continue
        digest = device_sha256(site, heard[name])
        changes: tuple[str, ...] = ()
        if before.get(name) not in (None, digest):
            changes = _changes(name, certified, heard)
        devices[name] = SeenDevice(sha256=digest, changes=changes)
    links = tuple(
        DownLink(a=str(link.a), b=str(link.b), why=down[link.a])
        for link in site.topology.links
        if link.a in down
    )
    return Reading(
        site=site.name,
        certificate_id=found.id if found is not None else "",
        started_at=to_text(started_at),
        interval_s=interval_s,
        devices=devices,
        down=links,
    )


def drifted(found: Certificate, reading: Reading) -> dict[str, tuple[str, ...]]:
    """Certified devices that answered and do something else now, each with what."""
    return {
        name: device.changes
        for name, device in reading.devices.items()
        if device.sha256 and found.fingerprint.per_device.get(name) not in (None, device.sha256)
    }


def _changes(
    name: str, certified: Mapping[str, DeviceQos], now: Mapping[str, DeviceQos]
) -> tuple[str, ...]:
    if name not in certified:
        return (f"{name}: (its certified state is not at hand)",)
    lines = explain({name: certified[name]}, {name: now[name]})
    more = len(lines) - _MAX_CHANGES
    return (*lines[:_MAX_CHANGES], *([f"{name}: and {more} more"] if more > 0 else []))
