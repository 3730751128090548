"""JSON answers and the table of ``show priority-flow-control``.

EOS prints most answers as JSON for ``| json``. Keys: ``show version`` and ``show
lldp neighbors``, public captures in many tools (napalm, ntc); ``show interfaces``
with ``error-correction``, public captures of EOS 4.26; ``show priority-flow-control``,
a listing of EOS 4.36 in a public configuration guide.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any, Literal

from fabric.devices.base import ReadError
from fabric.devices.eos.lines import interface_name, is_physical
from fabric.qos import Neighbor, PortFacts

_PFC_ROW = re.compile(
    r"(?P<port>E\w*\d\S*)\s+(?P<enabled>Yes|No)\s+(?P<priorities>(?:\d[\s,]*)*?)\s*"
    r"(?P<active>Yes|No)\b.*",
    re.IGNORECASE,
)
_STATUS = re.compile(r"[EDAW]+|-")
_FEC: dict[str, Literal["none", "fc", "rs"]] = {
    "disabled": "none",
    "fireCode": "fc",
    "reedSolomon": "rs",
    "reedSolomon544": "rs",
}


def parse_json(command: str, text: str) -> dict[str, Any]:
    """The object that a command printed, whatever stands before and behind it.

    Raises ReadError where there is none.
    """
    begin, end = text.find("{"), text.rfind("}")
    try:
        data = json.loads(text[begin : end + 1])
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise ReadError(f"{command}: no JSON object in {_first_line(text)!r}")
    return data


def members(data: object, *keys: str) -> Iterator[tuple[str, Any]]:
    """Name and value of each member of the object below these keys; none where it lacks."""
    for key in keys:
        data = data.get(key, {}) if isinstance(data, Mapping) else {}
    if isinstance(data, Mapping):
        yield from data.items()


def count(value: object) -> int | None:
    """A counter's value; None for ``-``, ``N/A`` and what is missing."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return int(value)
    digits = str(value).strip().replace(",", "")
    return int(digits) if digits.isdecimal() else None


def parse_neighbors(command: str, text: str) -> tuple[Neighbor, ...]:
    """Rows of ``show lldp neighbors | json``; incomplete ones are left out."""
    rows = parse_json(command, text).get("lldpNeighbors", [])
    return tuple(
        Neighbor(
            interface_name(str(row["port"])),
            str(row["neighborDevice"]),
            interface_name(str(row["neighborPort"])),
        )
        for row in rows
        if isinstance(row, Mapping)
        and all(row.get(key) for key in ("port", "neighborDevice", "neighborPort"))
        and interface_name(str(row["port"])).startswith("Ethernet")
    )


def parse_links(interfaces: object, error_correction: object) -> tuple[PortFacts, ...]:
    """State, speed, FEC and address of each physical port.

    A speed is that of a link that is up.
    """
    fec = {
        interface_name(port): _FEC.get(str(dict(members(facts)).get("errCorrEncodingStatus")))
        for port, facts in members(error_correction, "interfaceErrCorrStatuses")
    }
    found = []
    for name, facts in members(interfaces, "interfaces"):
        port, shown = interface_name(name), dict(members(facts))
        if is_physical(port):
            state = shown.get("lineProtocolStatus")
            up = state == "up" if state else None
            found.append(
                PortFacts(
                    port,
                    up=up,
                    admin_up=shown["interfaceStatus"] != "disabled"
                    if "interfaceStatus" in shown
                    else None,
                    speed_bps=(count(shown.get("bandwidth")) or None) if up else None,
                    fec=fec.get(port),
                    mac=re.sub(r"[^0-9a-f]", "", str(shown.get("physicalAddress", "")).lower())
                    or None,
                )
            )
    return tuple(found)


def parse_pfc(command: str, text: str) -> dict[str, tuple[int, ...]]:
    """Port -> priorities that it pauses now; none where PFC is not active.

    Releases print two tables: ``Port Enabled Priorities Active Note``, and ``Port Status
    Priorities Action Timeout ...``, whose status is letters (E enabled, D disabled, A
    active, W watchdog). Unverified: how the cells of the second are laid out; they are
    read word by word.
    Raises ReadError where the table's head is missing.
    """
    head = re.search(r"^\s*Port\s+(Enabled|Status)\s+Priorities.*$", text, re.MULTILINE)
    if head is None:
        raise ReadError(f"{command}: no table in {_first_line(text)!r}")
    of_row = _enabled_row if head[1] == "Enabled" else _status_row
    rows = (of_row(line.strip()) for line in text[head.end() :].splitlines())
    return dict(row for row in rows if row is not None)


def _enabled_row(line: str) -> tuple[str, tuple[int, ...]] | None:
    row = _PFC_ROW.fullmatch(line)
    if row is None:
        return None
    works = row["enabled"].lower() == row["active"].lower() == "yes"
    return interface_name(row["port"]), _digits(row["priorities"]) if works else ()


def _status_row(line: str) -> tuple[str, tuple[int, ...]] | None:
    port, *words = line.split() or [""]
    letters = list(takewhile(_STATUS.fullmatch, words))
    if not re.fullmatch(r"E\w*\d\S*", port) or not letters or letters[0] == "-":
        return None
    priorities = takewhile(lambda word: re.fullmatch(r"[0-7,]+", word), words[len(letters) :])
    works = {"E", "A"} <= set("".join(letters))
    return interface_name(port), _digits(" ".join(priorities)) if works else ()


def _digits(text: str) -> tuple[int, ...]:
    return tuple(sorted(set(map(int, re.findall(r"\d", text)))))


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "an empty answer")
