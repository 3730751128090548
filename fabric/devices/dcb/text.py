"""What ``dcb pfc|ets|app|dcbx show dev IF`` prints, as JSON (``-j``) or as text.

Source of both forms: iproute2 5.11 to 6.12, dcb/dcb_{pfc,ets,app,dcbx}.c and
lib/json_print.c. Symbolic DSCPs (``AF31:3``, without ``-N``): /etc/iproute2/rt_dsfield.

``dcb maxrate`` took the driver's kbit/s for bytes a second before iproute2 6.18, both
ways (netdev mailing list, "dcb: fix tc-maxrate unit conversions", October 2025): its
numbers mean nothing without ``dcb -V``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fabric.devices.base import ReadError
from fabric.qos import DSCP_COUNT, PRIORITY_COUNT

_NAMES = {f"CS{number}": 8 * number for number in range(8)} | {
    f"AF{cls}{drop}": 8 * cls + 2 * drop for cls in range(1, 5) for drop in range(1, 4)
}  # fmt: skip
DSCP_NAMES: Mapping[str, int] = {**_NAMES, "EF": 46, "default": 0}

_VERSION = re.compile(r"iproute2-(\d+)\.(\d+)")
_RATES_IN_BYTES_SINCE = (6, 18)


@dataclass(frozen=True, slots=True)
class Ets:
    """IEEE 802.1Qaz ETS of a port; tuples have an entry a class or priority, 8 each."""

    willing: bool
    tsa: tuple[str, ...]
    percent: tuple[int, ...]
    priority_to_class: tuple[int, ...]


def pfc(command: str, text: str) -> tuple[int, ...]:
    """Priorities with PFC. Raises ReadError where the output is none of ``dcb pfc``."""
    switches = _eight(command, _fields(command, text), "prio_pfc")
    return tuple(priority for priority, on in enumerate(switches) if on in (True, "on"))


def pfc_frames(command: str, text: str) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """PFC frames sent and received by priority, from ``dcb -s``; None where not shown."""
    fields = _fields(command, text)
    if "requests" not in fields or "indications" not in fields:
        return None
    sent, received = (_numbers(command, fields, name) for name in ("requests", "indications"))
    return sent, received


def ets(command: str, text: str) -> Ets:
    """ETS. Raises ReadError where the output is none of ``dcb ets``."""
    fields = _fields(command, text)
    return Ets(
        willing=fields.get("willing") in (True, "on"),
        tsa=tuple(str(kind) for kind in _eight(command, fields, "tc_tsa")),
        percent=_numbers(command, fields, "tc_bw"),
        priority_to_class=_numbers(command, fields, "prio_tc"),
    )


def dscps(command: str, text: str) -> tuple[tuple[int, int], ...]:
    """(DSCP, priority) entries of the APP table in its order; none for an empty table.

    Raises ReadError for an entry that is none.
    """
    found = []
    for key, value in _pairs(command, _fields(command, text).get("dscp_prio", ())):
        dscp = DSCP_NAMES.get(str(key))
        try:
            entry = int(key) if dscp is None else dscp, int(value)
        except (TypeError, ValueError) as error:
            raise ReadError(f"{command}: {key}:{value} maps no DSCP to a priority") from error
        if not (0 <= entry[0] < DSCP_COUNT and 0 <= entry[1] < PRIORITY_COUNT):
            raise ReadError(f"{command}: {key}:{value} maps no DSCP to a priority")
        found.append(entry)
    return tuple(found)


def dcbx(command: str, text: str) -> frozenset[str]:
    """Flags of ``dcb dcbx``: host, lld-managed, cee, ieee, static."""
    if text.lstrip().startswith(("{", "[")):
        names = {name for name, on in _fields(command, text).items() if on}
    else:
        names = set(text.split())
    return frozenset(name.replace("_", "-") for name in names)


def max_rates_bps(version: str, rates: object) -> tuple[int, ...] | None:
    """What each class may send at most, from ``tc_maxrate`` of JSON; 0 for no limit.

    ``version`` is what ``dcb -V`` prints. None where these are no eight rates.
    """
    if not (isinstance(rates, list) and len(rates) == PRIORITY_COUNT):
        return None
    if not all(isinstance(rate, int) for rate in rates):
        return None
    scale = 8 if counts_bytes(version) else 1000
    return tuple(rate * scale for rate in rates)


def max_rates(version: str, text: str) -> tuple[int, ...] | None:
    """The same from the JSON that ``dcb -j maxrate`` prints; None where it shows nothing."""
    if not text.strip():
        return None
    return max_rates_bps(version, _fields("dcb -j maxrate", text).get("tc_maxrate"))


def counts_bytes(version: str) -> bool:
    """Whether this release's ``dcb maxrate`` shows bytes a second, not the driver's kbit/s."""
    match = _VERSION.search(version)
    return match is not None and (int(match[1]), int(match[2])) >= _RATES_IN_BYTES_SINCE


def rate_word(bps: int, version: str) -> str:
    """A rate as this release's ``dcb maxrate set`` has to be told it."""
    return f"{bps if counts_bytes(version) else bps * 8 // 1000}bit"


@lru_cache(maxsize=256)
def _fields(command: str, text: str) -> Mapping[str, Any]:
    """JSON's own names and values; from text the same, values still as words."""
    body = text.strip()
    if body.startswith(("{", "[")):
        try:
            data = json.loads(body)
        except ValueError as error:
            raise ReadError(f"{command}: {body[:60]!r} is no JSON") from error
        if isinstance(data, list):  # iproute2's usual frame, which dcb leaves out
            data = data[0] if data else {}
        if isinstance(data, dict):
            return data
        raise ReadError(f"{command}: expected a JSON object, got {body[:60]!r}")
    fields: dict[str, Any] = {}
    for line in filter(str.strip, body.splitlines()):
        name, *words = line.split()
        if words and ":" in words[0]:
            fields[name.replace("-", "_")] = words
        else:
            pairs = [name, *words]
            for key, value in zip(pairs[::2], pairs[1::2], strict=False):
                fields[key.replace("-", "_")] = value
    return fields


def _pairs(command: str, values: object) -> list[tuple[Any, Any]]:
    """``[[26, 3]]`` of JSON or ``["AF31:3"]`` of text as pairs."""
    pairs = []
    for value in values if isinstance(values, list | tuple) else ():
        two = value.split(":") if isinstance(value, str) else value
        if not isinstance(two, list) or len(two) != len(("DSCP", "priority")):
            raise ReadError(f"{command}: {value!r} maps no DSCP to a priority")
        pairs.append((two[0], two[1]))
    return pairs


def _numbers(command: str, fields: Mapping[str, Any], name: str) -> tuple[int, ...]:
    values = _eight(command, fields, name)
    try:
        return tuple(int(value) for value in values)
    except (TypeError, ValueError) as error:
        raise ReadError(f"{command}: {name} are no numbers: {values}") from error


def _eight(command: str, fields: Mapping[str, Any], name: str) -> list[Any]:
    values = fields.get(name)
    if isinstance(values, list) and len(values) == PRIORITY_COUNT:
        if all(isinstance(value, str) and ":" in value for value in values):
            return [value.partition(":")[2] for value in values]
        return values
    first = ", ".join(fields) or "nothing"
    raise ReadError(f"{command}: no eight values of {name} in what it shows ({first})")
