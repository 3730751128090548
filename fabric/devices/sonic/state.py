"""What ``show`` commands other than the configuration tell.

Formats: ``show version`` and ``show lldp table``, sonic-net/sonic-utilities
doc/Command-Reference.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fabric.devices.base import ReadError
from fabric.devices.sonic.columns import tables
from fabric.devices.sonic.names import is_physical
from fabric.qos import Neighbor


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
    description: where that is a port's name, it counts.
    """
    found = []
    for table in tables(text):
        for row in table:
            port, peer = row.get("LocalPort", ""), row.get("RemoteDevice", "")
            if is_physical(port) and peer:
                described = row.get("RemotePortDescr", "")
                name = described if is_physical(described) else row.get("RemotePortID", "")
                found.append(Neighbor(port, peer, name))
        return tuple(found)
    raise ReadError(f"show lldp table: no table in {_first_line(text)!r}")


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "an empty answer")
