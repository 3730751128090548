"""What ``show`` commands other than the running configuration tell.

Formats: ``show version`` and ``show lldp neighbors``, fixtures of
networktocode/ntc-templates (tests/cisco_nxos); ``show interface
priority-flow-control``, opentelemetry-collector-contrib (ciscoosreceiver).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from fabric.devices.base import ReadError
from fabric.devices.nxos.names import interface_name
from fabric.qos import Neighbor

_PFC_ROW = re.compile(
    r"(?P<port>\S*Eth\S*\d)\s+(?P<mode>Auto|On|Off)\s+(?P<oper>On|Off|N/A|-)"
    r"\s*(?:\(\s*(?P<bmap>[^)\s]*)\s*\))?\s+(?P<rx>[\d,]+|N/A|-)\s+(?P<tx>[\d,]+|N/A|-)\s*",
    re.IGNORECASE,
)
_LLDP_ROW = re.compile(
    r"(?P<id>.*?)\s*(?<!\w)(?P<port>(?:Eth|mgmt)\d+\S*)\s+\d+\s+"
    r"(?:(?P<cap>[RBTCWPSO]+)\s+)?(?P<peer>\S.*)"
)

_MODE: dict[str, Literal["on", "off", "auto"]] = {"on": "on", "off": "off", "auto": "auto"}
_LINK_HEAD = re.compile(r"^(?P<port>[A-Za-z][\w./-]*) is (?P<state>up|down)\b", re.MULTILINE)
_LINK_FACT = re.compile(
    r"address: (?P<mac>[0-9a-f.]{14})|, BW (?P<kbit>\d+) Kbit"
    r"|admin state is (?P<admin>up|down)"
    r"|FEC mode is (?P<mode>\S+)|oper fec state is (?P<oper>\S+)"
)
_FEC: dict[str, Literal["none", "fc", "rs", "auto"]] = {
    "off": "none",
    "none": "none",
    "fc-fec": "fc",
    "rs-fec": "rs",
    "rs-cons16": "rs",
    "rs-ieee": "rs",
    "kp-fec": "rs",
    "auto": "auto",
}


@dataclass(frozen=True, slots=True)
class Version:
    """Identity of a switch; empty where it is not shown."""

    model: str = ""
    firmware: str = ""
    serial: str = ""


@dataclass(frozen=True, slots=True)
class PfcState:
    """One row of ``show interface priority-flow-control``.

    ``priorities`` are the ones that the port pauses now; None where the row has
    no bit map although PFC operates. Counts are None where it shows none.
    """

    port: str
    mode: Literal["on", "off", "auto"]
    priorities: tuple[int, ...] | None
    rx_frames: int | None
    tx_frames: int | None


def parse_version(text: str) -> Version:
    """Model as a product id (``N9K-C93180YC-FX``), release and serial number."""
    model = re.search(r"cisco Nexus\s?(\d)\d+\s+(C\S+)", text)
    release = re.search(r"^\s*(?:NXOS|system):\s+version\s+(\S+)", text, re.MULTILINE)
    serial = re.search(r"Processor Board ID\s+(\S+)", text)
    return Version(
        f"N{model[1]}K-{model[2]}" if model else "",
        release[1] if release else "",
        serial[1] if serial else "",
    )


@dataclass(frozen=True, slots=True)
class LinkState:
    """One interface of ``show interface``; None where it does not say."""

    up: bool
    admin_up: bool | None
    speed_bps: int | None
    fec: Literal["none", "fc", "rs", "auto"] | None
    mac: str | None


def parse_links(text: str) -> dict[str, LinkState]:
    """State, speed, FEC and address of every interface of ``show interface``, by name.

    The operational FEC goes before the configured one. A speed is that of a link
    that is up. FEC lines: recorded sessions of Nexus 9000 switches (9.3 and 10.2).
    """
    links: dict[str, LinkState] = {}
    heads = list(_LINK_HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    for head, end in zip(heads, ends, strict=False):
        block = text[head.end() : end]
        up = head["state"] == "up"
        found: dict[str, str] = {}
        for match in _LINK_FACT.finditer(block):
            found |= {name: value for name, value in match.groupdict().items() if value}
        fec = found.get("oper") or found.get("mode") or ""
        links[interface_name(head["port"])] = LinkState(
            up,
            found["admin"] == "up" if "admin" in found else None,
            int(found["kbit"]) * 1000 if up and "kbit" in found else None,
            _FEC.get(fec.lower().rstrip(",")),
            found["mac"].replace(".", "") if "mac" in found else None,
        )
    return links


def parse_neighbors(text: str) -> tuple[Neighbor, ...]:
    """Rows of ``show lldp neighbors``; a long device id stands on a line of its own."""
    if "Device ID" not in text:
        raise ReadError(f"show lldp neighbors: no table in {_first_line(text)!r}")
    neighbors = []
    waiting = ""
    for line in text.partition("Device ID")[2].splitlines()[1:]:
        if line.startswith("Total entries"):
            break
        match = _LLDP_ROW.fullmatch(line.rstrip())
        if match is None:
            waiting = line.strip()
            continue
        peer = match["id"].strip() or waiting
        waiting = ""
        if match["port"].startswith("Eth"):
            neighbors.append(
                Neighbor(interface_name(match["port"]), peer, interface_name(match["peer"]))
            )
    return tuple(neighbors)


def parse_pfc(text: str) -> dict[str, PfcState]:
    """Rows of ``show interface priority-flow-control`` by port."""
    if "RxPPP" not in text:
        raise ReadError(f"show interface priority-flow-control: no table in {_first_line(text)!r}")
    states = {}
    for line in text.partition("RxPPP")[2].splitlines()[1:]:
        match = _PFC_ROW.fullmatch(line.strip())
        if match is None:
            continue
        port = interface_name(match["port"])
        states[port] = PfcState(
            port,
            _MODE[match["mode"].lower()],
            _paused(match["oper"], match["bmap"]),
            number(match["rx"]),
            number(match["tx"]),
        )
    return states


def _paused(oper: str, bmap: str | None) -> tuple[int, ...] | None:
    """Priorities of a bit map, which is hexadecimal: 8 is priority 3, 20 priority 5."""
    if oper.lower() != "on":
        return ()
    if bmap is None or not re.fullmatch(r"(?:0x)?[0-9a-fA-F]{1,2}", bmap):
        return None
    bits = int(bmap, 16)
    return tuple(priority for priority in range(8) if bits >> priority & 1)


def number(text: str) -> int | None:
    """A count with or without thousands separators; None for ``N/A`` and ``-``."""
    digits = text.strip().replace(",", "")
    return int(digits) if digits.isdecimal() else None


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "an empty answer")
