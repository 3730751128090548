"""From what sources tell to the text of ``fabric.yaml``, and what is missing in it.

What no source tells is left out, with a comment in its place, and is a gap with its
line: ``paisoar check`` would stop at the first of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fabric.bringin.head import head_yaml, starter_intent
from fabric.bringin.sources import Source, SourceDevice, SourceNic
from fabric.devices.registry import NICS, known
from fabric.intent import Intent, PortProfile
from fabric.products import NICS as NIC_PRODUCTS
from fabric.products import SWITCHES as SWITCH_PRODUCTS
from fabric.saved.infer import profile_of_speed
from fabric.saved.systems import known_systems
from fabric.saved.tables import CableRow
from fabric.saved.wiring import HOST_CABLE_M, UPLINK_CABLE_M
from fabric.topology import PortRef
from fabric.units import format_speed

_NAMED = 10  # of devices that nothing is told of

# A word, or a size, that YAML reads as this string.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*|\d+(?:[KMG]i?)?B")

# Shared packet buffers by the beginning of the model, from the vendors' data sheets.
_BUFFERS = {
    "N9K-C93180YC": "40MB", "N9K-C9336C": "40MB", "N9K-C9364C": "40MB", "N9K-C9332D": "120MB",
    "DCS-7050": "32MB", "DCS-7060X4": "64MB", "DCS-7060X5": "114MB",
    "QFX5120": "32MB", "QFX5130": "132MB", "QFX5220": "64MB",
    "MSN2": "16MB", "MSN3": "42MB", "MSN4": "64MB", "SN5": "160MB",
    "Accton-AS7": "32MB",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Gap:
    """One thing that is missing: its line (from 1), its key, and what belongs there."""

    line: int
    key: str
    what: str


@dataclass(frozen=True)
class Written:
    """The text, its gaps, and what was assumed because nobody told it."""

    text: str
    gaps: tuple[Gap, ...]
    assumed: tuple[str, ...]


def site_yaml(
    source: Source,
    *,
    site: str,
    environment: str = "site",
    switch_os: Sequence[str] = (),
    nic_family: str = "",
) -> Written:
    """The text of a ``fabric.yaml`` for these devices and cables.

    ``switch_os`` (that of leaves and of spines, where there are two) and ``nic_family``
    are those of every switch and NIC of which no source tells it; each is then said to
    be assumed.
    """
    return _Writer(source, switch_os, nic_family).write(site, environment)


class _Writer:
    def __init__(self, source: Source, switch_os: Sequence[str], nic_family: str) -> None:
        self._source = source
        self._switch_os = switch_os
        self._nic_family = nic_family
        self._lines: list[str] = []
        self._gaps: list[Gap] = []
        self._assumed = list(source.assumed)
        self._speed_of: dict[PortRef, int] = {}

    def write(self, site: str, environment: str) -> Written:
        """The whole file."""
        cables = [self._completed(row) for row in self._source.cables]
        speeds = sorted({row.speed_bps for row in cables if row.speed_bps})
        self._add(self._head(site, environment, speeds))
        hosts = {name for name, device in self._source.devices.items() if device.kind == "host"}
        at_hosts = {
            end.device
            for row in cables
            for end, other in ((row.a, row.b), (row.b, row.a))
            if other.device in hosts
        }
        self._add("devices:")
        for device in self._source.devices.values():
            if device.kind == "host":
                self._host(device, cables)
            else:
                self._switch(device, is_leaf=device.name in at_hosts)
        if not self._source.devices:
            named = list(dict.fromkeys(end.device for row in cables for end in (row.a, row.b)))
            more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
            some = f"{', '.join(named[:_NAMED])}{more}: no source tells what they are"
            self._gap("  # missing: every device", "devices", some if named else "every device")
        self._add("")
        self._add("# One line a cable: both ends, speed, length in metres.")
        self._add("cables:" if cables else "cables: []")
        absent: dict[str, list[tuple[int, CableRow]]] = {}
        for row in cables:
            speed = format_speed(row.speed_bps or 0)
            ends = f"a: {_quoted(str(row.a))}, b: {_quoted(str(row.b))}"
            self._add(f"  - {{{ends}, speed: {speed}, length_m: {row.length_m:g}}}")
            for name in {row.a.device, row.b.device}.difference(self._source.devices):
                absent.setdefault(name, []).append((len(self._lines), row))
        if self._source.devices:
            self._gaps += [_absent(name, told) for name, told in absent.items()]
        if not cables:
            self._gap(
                "# missing: the cables",
                "cables",
                "the cables: --from cables.csv, or saved outputs whose LLDP shows them",
            )
        return Written("\n".join(self._lines) + "\n", tuple(self._gaps), tuple(self._assumed))

    def _head(self, site: str, environment: str, speeds: Sequence[int]) -> str:
        intent = self._source.intent
        origin = "Devices, cables and intent as the saved outputs of an existing site show them."
        if intent is None:
            self._assumed.append("intent: no source has one; it is what paisoar init writes")
            origin = "Devices and cables of an existing site; the intent is the starter's."
            intent = starter_intent()
        return head_yaml(
            intent,
            _profiles(intent, speeds),
            site=site,
            environment=environment,
            max_oversubscription=self._oversubscription(),
            origin=origin,
        )

    def _oversubscription(self) -> float:
        """As much as the leaves have: an existing fabric is as it is."""
        down: dict[str, int] = {}
        up: dict[str, int] = {}
        devices = self._source.devices
        for row in self._source.cables:
            speed = self._speed_of.get(row.a, 0)
            for end, other in ((row.a, row.b), (row.b, row.a)):
                if end.device in devices and devices[end.device].kind != "host":
                    peer = devices.get(other.device)
                    side = down if peer is not None and peer.kind == "host" else up
                    side[end.device] = side.get(end.device, 0) + speed
        ratios = [down[name] / up[name] for name in down if up.get(name)]
        worst = max(ratios, default=1.0)
        if worst > 1:
            self._assumed.append(f"max_oversubscription: {worst:g}, as it is cabled")
        return max(1.0, worst)

    def _completed(self, row: CableRow) -> CableRow:
        """The cable with a speed and a length, whatever its source told."""
        devices = self._source.devices
        nics = {
            PortRef(device.name, nic.name): nic.speed_bps
            for end in (row.a, row.b)
            if (device := devices.get(end.device)) is not None
            for nic in device.nics
        }
        to_host = any(end in nics for end in (row.a, row.b)) or any(
            (device := devices.get(end.device)) is not None and device.kind == "host"
            for end in (row.a, row.b)
        )
        speed = row.speed_bps or nics.get(row.a) or nics.get(row.b)
        if not speed:
            speed = 25 * 10**9 if to_host else 100 * 10**9
            self._assumed.append(f"{row.a} - {row.b}: speed {format_speed(speed)}")
        length = row.length_m
        if length is None:
            length = HOST_CABLE_M if to_host else UPLINK_CABLE_M
            self._assumed.append(f"{row.a} - {row.b}: length {length:g} m")
        self._speed_of[row.a] = self._speed_of[row.b] = speed
        return replace(row, speed_bps=speed, length_m=length)

    def _add(self, text: str) -> None:
        self._lines += text.split("\n")

    def _gap(self, line: str, key: str, what: str) -> None:
        self._add(line)
        self._gaps.append(Gap(len(self._lines), key, what))

    def _switch(self, device: SourceDevice, *, is_leaf: bool) -> None:
        at = f"devices.{device.name}"
        self._add(f"  {_quoted(device.name)}:")
        if device.kind != "switch":
            what = "switch or host; remove the device where it is neither"
            self._gap("    # missing: kind", f"{at}.kind", what)
            self._management(device)
            return
        self._add("    kind: switch")
        role = device.role or ("leaf" if is_leaf else "spine")
        self._add(f"    role: {_quoted(role)}")
        asked = (*self._switch_os, "")[0] if role == "leaf" else ("", *self._switch_os)[-1]
        os_name = device.os or asked
        unknown = f"; {device.unknown_os!r} is none that is known" if device.unknown_os else ""
        if os_name:
            self._add(f"    os: {os_name}")
            if not device.os:
                self._assumed.append(f"{at}.os: {os_name}, by --switch-os{unknown}")
        else:
            what = f"its system, one of {', '.join(known_systems())}{unknown}"
            self._gap("    # missing: os", f"{at}.os", what)
        model = device.model
        if model:
            self._add(f"    model: {_quoted(model)}")
        else:
            product = SWITCH_PRODUCTS.get(os_name) or SWITCH_PRODUCTS["nxos"]
            what = f"its model, e.g. {product.leaf_model}"
            self._gap("    # missing: model", f"{at}.model", what)
        buffer = device.buffer or _buffer(device)
        if buffer:
            self._add(f"    buffer: {_quoted(buffer)}")
        else:
            what = f"the shared packet buffer of {model or 'its model'}, e.g. 40MB"
            self._gap("    # missing: buffer", f"{at}.buffer", what)
        self._management(device)

    def _host(self, device: SourceDevice, cables: Iterable[CableRow]) -> None:
        at = f"devices.{device.name}"
        self._add(f"  {_quoted(device.name)}:")
        self._add("    kind: host")
        self._management(device)
        told = {nic.name: nic for nic in device.nics}
        both = ((end, row) for row in cables for end in (row.a, row.b))
        ends = {end.port: row for end, row in both if end.device == device.name}
        for name in ends:
            told.setdefault(name, SourceNic(name))
        if not told:
            self._gap("    # missing: nics", f"{at}.nics", "its RDMA interfaces")
            return
        self._add("    nics:")
        for index, nic in enumerate(told.values()):
            self._nic(at, nic, index, ends.get(nic.name))

    def _nic(self, at: str, nic: SourceNic, index: int, cable: CableRow | None) -> None:
        where = f"{at}.nics.{nic.name}"
        self._add(f"      {_quoted(nic.name)}:")
        family = nic.family or self._nic_family
        if family in known(NICS):
            self._add(f"        family: {family}")
            if not nic.family:
                self._assumed.append(f"{where}.family: {family}, by --nic")
        else:
            unknown = f"; {family!r} is none that is known" if family else ""
            what = f"one of {', '.join(known(NICS))}{unknown}"
            self._gap("        # missing: family", f"{where}.family", what)
        product = NIC_PRODUCTS.get(family)
        rdma = nic.rdma or (product.rdma(index) if product else "")
        if rdma:
            self._add(f"        rdma: {_quoted(rdma)}")
            if not nic.rdma:
                self._assumed.append(f"{where}.rdma: {rdma}")
        else:
            self._gap("        # missing: rdma", f"{where}.rdma", "its RDMA device, e.g. mlx5_0")
        speed = (cable.speed_bps if cable else None) or nic.speed_bps
        if speed and nic.speed_bps and speed != nic.speed_bps:
            told = format_speed(nic.speed_bps)
            self._assumed.append(f"{where}.speed: {format_speed(speed)} of its cable, not {told}")
        if speed:
            self._add(f"        speed: {format_speed(speed)}")
        else:
            self._gap("        # missing: speed", f"{where}.speed", "its speed, e.g. 25G")
        if nic.address:
            self._add(f"        address: {_quoted(nic.address)}")
        if cable is None:
            self._gap("        # has no cable", where, "the cable that it is in")

    def _management(self, device: SourceDevice) -> None:
        parts = []
        if device.address and device.address != device.name:
            parts.append(f"address: {_quoted(device.address)}")
        if device.port is not None:
            parts.append(f"port: {device.port}")
        if device.user:
            parts.append(f"user: {_quoted(device.user)}")
        if parts:
            self._add(f"    mgmt: {{{', '.join(parts)}}}")


def _absent(device: str, told: Sequence[tuple[int, CableRow]]) -> Gap:
    """That no source has the device at which these cables, by their lines, end."""
    first_line, first = told[0]
    ends = f"{len(told)} cables end" if len(told) > 1 else "a cable ends"
    where = f" ({first.origin})" if first.origin else ""
    what = f"no source has this device, and {ends} at it, first {first.a} - {first.b}{where}"
    return Gap(first_line, f"devices.{device}", what)


def _quoted(text: str) -> str:
    """The text as a YAML value that is read back as it: JSON's strings are YAML's, too."""
    if _PLAIN.fullmatch(text) and text.lower() not in ("true", "false", "null"):
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _buffer(device: SourceDevice) -> str:
    product = SWITCH_PRODUCTS.get(device.os)
    for model, buffer in (
        ((product.leaf_model, product.leaf_buffer), (product.spine_model, product.spine_buffer))
        if product
        else ()
    ):
        if device.model == model:
            return buffer
    return next((size for start, size in _BUFFERS.items() if device.model.startswith(start)), "")


def _profiles(intent: Intent, speeds: Sequence[int]) -> dict[str, PortProfile]:
    """Thresholds for each speed there is: the intent's, or the starter's by speed."""
    profiles = dict(intent.profiles) if not speeds else {}
    for speed in speeds:
        try:
            profiles[format_speed(speed)] = intent.profile(speed)
        except ValueError:
            kmin, kmax, pmax, xoff, xon = profile_of_speed(speed)
            profiles[format_speed(speed)] = PortProfile.model_construct(
                kmin=kmin, kmax=kmax, pmax_percent=pmax, xoff=xoff, xon=xon
            )
    return profiles
