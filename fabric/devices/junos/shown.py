"""What show commands other than the configuration tell.

Formats: fixtures of networktocode/ntc-templates (tests/juniper_junos) and public
captures of QFX and ACX switches (``show interfaces`` with its FEC mode).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from fabric.devices.base import ReadError
from fabric.devices.junos.statements import is_physical
from fabric.qos import Neighbor, PortFacts

_LLDP_ROW = re.compile(
    r"(?P<port>\S+)\s+(?:(?P<parent>-|ae\d+(?:\.\d+)?)\s+)?"
    r"(?P<chassis>[0-9A-Fa-f:]{17}|\d+(?:\.\d+){3}|\S+)\s+(?P<peer_port>\S.*?)\s+(?P<peer>\S+)"
)
_LINK_HEAD = re.compile(
    r"^\s*Physical interface: ([^,\s]+), (.*)Physical link is (\w+)", re.MULTILINE
)
_SPEED = re.compile(r"\bSpeed: (\d+)([mg])bps", re.IGNORECASE)
_ADDRESS = re.compile(r"\bCurrent address: ([0-9a-f:]{17})", re.IGNORECASE)
_FEC = re.compile(r"^\s*Ethernet FEC Mode\s*:\s*(\w+)", re.MULTILINE)
_FEC_MODES: dict[str, Literal["none", "fc", "rs"]] = {"NONE": "none", "FEC74": "fc"}
_FEC_MODES |= dict.fromkeys(("FEC91", "FEC91-RS544", "FEC108", "FEC119"), "rs")


@dataclass(frozen=True, slots=True)
class Version:
    """Identity of a switch; empty where it is not shown."""

    model: str = ""
    firmware: str = ""


def parse_version(text: str) -> Version:
    """Model (``QFX5120-48Y-8C``) and release of ``show version``."""
    model = re.search(r"^\s*Model:\s*(\S+)", text, re.MULTILINE)
    release = re.search(
        r"^\s*Junos:\s*(\S+)|JUNOS .*\[([\w.-]+)\]\s*$", text, re.MULTILINE | re.IGNORECASE
    )
    return Version(model[1].upper() if model else "", (release[1] or release[2]) if release else "")


def parse_serial(text: str) -> str:
    """Serial number of the chassis in ``show chassis hardware``; empty where none is shown."""
    match = re.search(r"^Chassis\s+(?:REV \S+\s+)?(?:\S+\s+)??([A-Z0-9]{6,})\s+\S", text, re.M)
    return match[1] if match else ""


def parse_neighbors(command: str, text: str) -> tuple[Neighbor, ...]:
    """Rows of ``show lldp neighbors``, with and without the column of parents."""
    head = re.search(r"^\s*Local Interface\b.*$", text, re.MULTILINE)
    if head is None:
        if text.strip() and not text.strip().startswith("{"):
            raise ReadError(f"{command}: no table in {_first_line(text)!r}")
        return ()
    rows = (_LLDP_ROW.fullmatch(line.strip()) for line in text[head.end() :].splitlines())
    return tuple(
        Neighbor(row["port"].removesuffix(".0"), row["peer"], row["peer_port"].removesuffix(".0"))
        for row in rows
        if row is not None and is_physical(row["port"].removesuffix(".0"))
    )


def parse_links(text: str) -> dict[str, PortFacts]:
    """State, speed, FEC and address of each physical port of ``show interfaces``.

    A speed is that of a link that is up.
    """
    found: dict[str, PortFacts] = {}
    parts = _LINK_HEAD.split(text)
    groups = (parts[start::4] for start in range(1, 5))
    for port, admin, state, rest in zip(*groups, strict=True):
        if is_physical(port):
            block = rest.partition("Logical interface ")[0]
            speed, address = _SPEED.search(block), _ADDRESS.search(block)
            fec = _FEC.search(block)
            up = state == "Up"
            units = {"m": 10**6, "g": 10**9}
            found[port] = PortFacts(
                port,
                up=up,
                admin_up="Administratively down" not in admin,
                speed_bps=int(speed[1]) * units[speed[2].lower()] if up and speed else None,
                fec=_FEC_MODES.get(fec[1].upper()) if fec else None,
                mac=address[1].replace(":", "").lower() if address else None,
            )
    return found


def confirmed(text: str) -> bool | None:
    """Whether the last commit stays, by ``show system commit``; None where it shows none.

    A commit that waits to be confirmed says when it will be rolled back, before
    any comment.
    """
    first = re.search(r"^\s*0\s+\d{4}-\d\d-\d\d.*", text, re.MULTILINE)
    return None if first is None else "rollback in" not in first[0]


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "an empty answer")
