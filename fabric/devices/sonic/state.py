"""What ``show`` commands other than the configuration tell.

Formats: ``show version``, ``show lldp table`` and ``show interfaces status``,
sonic-net/sonic-utilities doc/Command-Reference.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from fabric.devices.base import ReadError
from fabric.devices.sonic.columns import tables
from fabric.devices.sonic.names import is_physical
from fabric.qos import Neighbor, PortFacts

_MAC = re.compile(r"(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}")

Fec = Literal["none", "fc", "rs", "auto"]
_FEC: dict[str, Fec] = {"none": "none", "fc": "fc", "rs": "rs", "auto": "auto"}


@dataclass(frozen=True, slots=True)
class Version:
    """Identity of a switch; empty where it is not shown."""

    model: str = ""
    firmware: str = ""
    serial: str = ""


def parse_version(text: str) -> Version:
    """HwSKU, software version and serial number; ``N/A`` counts as not shown."""

    def of(label: str) -> str:
        match = re.search(rf"^\s*{label}:[ \t]*(\S+)", text, re.MULTILINE)
        return match[1] if match and match[1] != "N/A" else ""

    return Version(of("HwSKU"), of("SONiC Software Version"), of("Serial Number"))


def parse_neighbors(text: str) -> tuple[Neighbor, ...]:
    """Rows of ``show lldp table`` for front ports that name a device.

    A SONiC peer gives its port's alias as port id (``etp1``) and its name as the
    description, a host a MAC address and its interface's name: then the description
    counts.
    """
    found = []
    for table in tables(text):
        for row in table:
            port, peer = row.get("LocalPort", ""), row.get("RemoteDevice", "")
            if is_physical(port) and peer:
                described = row.get("RemotePortDescr", "")
                name = row.get("RemotePortID", "")
                if is_physical(described) or (described and _MAC.fullmatch(name)):
                    name = described
                found.append(Neighbor(port, peer, name))
        return tuple(found)
    raise ReadError(f"show lldp table: no table in {_first_line(text)!r}")


_UP = {"up": True, "down": False}


def parse_links(text: str, paused: set[str]) -> tuple[PortFacts, ...]:
    """Rows of ``show interfaces status`` for front ports; empty where there is no table.

    ``paused`` are the ports that have PFC. A port that is down has no speed.
    """
    found = []
    for table in tables(text):
        for row in table:
            name, up = row.get("Interface", ""), row.get("Oper") == "up"
            speed = re.fullmatch(r"(\d+(?:\.\d+)?)G", row.get("Speed", ""))
            if not is_physical(name):
                continue
            found.append(
                PortFacts(
                    name,
                    up=up,
                    admin_up=_UP.get(row.get("Admin", "")),
                    speed_bps=round(float(speed[1]) * 1e9) if speed and up else None,
                    fec=_FEC.get(row.get("FEC", "").lower()),
                    pfc_mode="on" if name in paused else "off",
                )
            )
    return tuple(found)


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "an empty answer")
