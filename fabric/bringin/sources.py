"""What any source can tell of a site: devices with their NICs, and cables.

Nothing in it is required. What no source tells is a gap, and is said with its line
when ``fabric.yaml`` is written. What a source holds besides is left out, and is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from fabric.intent import Intent
from fabric.saved.tables import CableRow, Origin, united
from fabric.topology import PortRef

_SWITCH_WORDS = re.compile(r"leaf|leaves|spine|core|tor\b|tors\b|switch|fabric|agg", re.IGNORECASE)
_LEAF_WORDS = re.compile(r"leaf|leaves|tor\b|tors\b|access|edge", re.IGNORECASE)
_SPINE_WORDS = re.compile(r"spine|core|agg", re.IGNORECASE)
_HOST_WORDS = re.compile(r"host|server|gpu|compute|node|worker|dgx|trainer", re.IGNORECASE)
# What stands in the same racks and is no part of an RDMA fabric; the second, where nothing
# says that it is a leaf or a spine.
_BESIDE = re.compile(
    r"pdu|ups\b|power|bastion|jump|monitor|console|terminal|kvm|patch|panel|oob|out-of-band|m(?:gmt|anagement)\b|bmc"
    r"|camera|sensor|chassis",
    re.IGNORECASE,
)
_OUTSIDE = re.compile(
    r"router|firewall|gateway|load-?balancer|wan\b|internet|wireless|access-?point", re.IGNORECASE
)
_FABRIC_WORDS = re.compile(r"leaf|leaves|spine|tor(?![a-z])|torrouter", re.IGNORECASE)

# What is assumed of a cable, as saved outputs say it.
_OF_CABLE = re.compile(r"(.+ - .+): (speed|length) ")


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
    """One device; what is not told is empty or None.

    ``unknown_os`` is what its source calls its system, where that is none that we know.
    """

    name: str
    kind: str = ""
    os: str = ""
    unknown_os: str = ""
    model: str = ""
    role: str = ""
    buffer: str = ""
    address: str = ""
    port: int | None = None
    user: str = ""
    nics: tuple[SourceNic, ...] = ()
    origin: Origin | None = None


@dataclass(frozen=True)
class Source:
    """One source, or several merged.

    ``notes`` say what about it was odd, ``assumed`` what it takes to be so untold.
    """

    devices: Mapping[str, SourceDevice] = field(default_factory=dict)
    cables: Sequence[CableRow] = ()
    intent: Intent | None = None
    notes: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


def beside_fabric(words: Sequence[str]) -> bool:
    """Whether these words tell of a PDU, a console server, a router or the like."""
    text = " ".join(words)
    if _BESIDE.search(text):
        return True
    return bool(_OUTSIDE.search(text)) and not _FABRIC_WORDS.search(text)


def kind_of(os_name: str, words: Sequence[str]) -> str:
    """``switch`` or ``host``, by its system, its groups or role, and its name; or empty."""
    if os_name:
        return "host" if os_name == "linux" else "switch"
    text = " ".join(words)
    if _SWITCH_WORDS.search(text):
        return "switch"
    return "host" if _HOST_WORDS.search(text) else ""


def left_out(reasons: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """A note for each reason, with the names of what was left out for it."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons:
        names.setdefault(reason, []).append(name)
    return tuple(f"left out, {reason}: {', '.join(found)}" for reason, found in names.items())


def role_of(words: Sequence[str]) -> str:
    """``leaf`` or ``spine`` by groups, role and name; empty where these do not say."""
    text = " ".join(words)
    if _LEAF_WORDS.search(text):
        return "leaf"
    return "spine" if _SPINE_WORDS.search(text) else ""


def merged(sources: Sequence[Source]) -> Source:
    """All of them in one: what an earlier one does not tell, a later one may.

    Cables are those of the first source that has any; with a table, those of every
    table. InputError where two tables contradict each other.
    """
    devices: dict[str, SourceDevice] = {}
    for source in sources:
        for name, device in source.devices.items():
            devices[name] = _filled(devices[name], device) if name in devices else device
    cables, notes = _merged_cables([source.cables for source in sources if source.cables])
    return Source(
        devices,
        cables,
        next((source.intent for source in sources if source.intent is not None), None),
        (*(note for source in sources for note in source.notes), *notes),
        _assumed(sources),
    )


def _assumed(sources: Sequence[Source]) -> tuple[str, ...]:
    """What the sources assumed, but for cables of which an earlier one tells, or has others."""
    told: dict[frozenset[PortRef], CableRow] = {}
    settled: set[tuple[str, str]] = set()
    for source in sources:
        for row in source.cables if told else ():
            known = told.get(frozenset((row.a, row.b)))
            where = f"{row.a} - {row.b}"
            if known is None or known.speed_bps is not None:
                settled.add((where, "speed"))
            if known is None or known.length_m is not None:
                settled.add((where, "length"))
        if not told:
            told = {frozenset((row.a, row.b)): row for row in source.cables}
    lines = [line for source in sources for line in source.assumed]
    about = [_OF_CABLE.match(line) for line in lines]
    return tuple(
        line
        for line, cable in zip(lines, about, strict=True)
        if cable is None or (cable[1], cable[2]) not in settled
    )


def _merged_cables(
    told: Sequence[Sequence[CableRow]],
) -> tuple[tuple[CableRow, ...], tuple[str, ...]]:
    """Cables of the first source and, where it is a table, of the other tables, too.

    Speeds and lengths that they do not tell are those of a later source.
    """
    if not told:
        return (), ()
    first, *others = told
    tables = [rows for rows in others if _is_table(rows)]
    notes = []
    if _is_table(first):
        first = united(row for rows in (first, *tables) for row in rows)
    else:
        files = dict.fromkeys(row.origin.file for rows in tables for row in rows if row.origin)
        notes = [f"no cable is taken from {file}: an earlier source has some" for file in files]
    later = {frozenset((row.a, row.b)): row for rows in reversed(others) for row in rows}
    return tuple(_completed(row, later) for row in first), tuple(notes)


def _completed(row: CableRow, later: Mapping[frozenset[PortRef], CableRow]) -> CableRow:
    same = later.get(frozenset((row.a, row.b)), row)
    speed, length = row.speed_bps or same.speed_bps, row.length_m or same.length_m
    return replace(row, speed_bps=speed, length_m=length)


def _is_table(rows: Sequence[CableRow]) -> bool:
    return all(row.origin is not None and row.origin.line is not None for row in rows)


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
