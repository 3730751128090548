"""What ``tc``, ``dcb``, ``ip`` and ``devlink`` print.

Sources: recorded output of iproute2 6.1 on Linux 6.1 (``tc``, ``ip``, an empty
``devlink``); iproute2 ``dcb/*.c`` and ``devlink/devlink.c`` for what only hardware
shows. ``tc class`` knows no JSON in 6.1 and prints text even with ``-j``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fabric.devices.base import ReadError

_START = re.compile(r"^\s*[\[{]", re.MULTILINE)
_CLASS = re.compile(
    r"^class ets [0-9a-f]+:([0-9a-f]+) .*\n\s*Sent (\d+) bytes (\d+) pkts? "
    r"\(dropped (\d+)",
    re.MULTILINE,
)
_FULL_DSCP_MASK = 0xFC


@dataclass(frozen=True, slots=True)
class Filter:
    """One ingress filter. ``dscp`` and ``priority`` are None where it does anything else."""

    pref: int
    protocol: str
    dscp: int | None
    priority: int | None

    @property
    def plain(self) -> bool:
        """Whether it puts one DSCP into one priority and nothing more."""
        return self.dscp is not None and self.priority is not None


def parse_json(command: str, text: str) -> Any:  # noqa: ANN401 - as JSON is
    """The JSON value in an answer, whatever stands before and behind; None for none.

    Raises ReadError for JSON that is cut off.
    """
    start = _START.search(text)
    if start is None:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text[start.end() - 1 :])
    except ValueError as error:
        line = text[start.end() - 1 :].splitlines()[0][:60]
        raise ReadError(f"'{command}' printed no complete JSON: {line}") from error
    return value


def rows(command: str, text: str) -> list[dict[str, Any]]:
    """The objects of a JSON list; none where the answer holds no list."""
    value = parse_json(command, text)
    return (
        [row for row in value if isinstance(row, dict) and row] if isinstance(value, list) else []
    )


def record(command: str, text: str) -> dict[str, Any]:
    """A JSON object; empty where the answer holds none."""
    value = parse_json(command, text)
    return value if isinstance(value, dict) else {}


def filters(listed: Iterable[Mapping[str, Any]]) -> Iterator[Filter]:
    """``tc -j filter show dev X ingress``: each filter, in the order that it is asked."""
    for row in listed:
        options = row.get("options")
        if not isinstance(options, Mapping) or "ht_divisor" in options:
            continue  # the head of a chain or of a hash table
        pref, protocol = int(row.get("pref", 0)), str(row.get("protocol", ""))
        yield Filter(pref, protocol, _dscp(options, protocol), _priority(options))


def _dscp(options: Mapping[str, Any], protocol: str) -> int | None:
    keys = options.get("keys")
    if isinstance(keys, Mapping):
        return _dscp_of_flower(keys)
    match = options.get("match")
    if isinstance(match, Mapping) and protocol == "ip" and match.get("off") == 0:
        value, mask = int(str(match["value"]), 16), int(str(match["mask"]), 16)
        # The TOS byte is the second one of an IPv4 header.
        return (value >> 18) & 0x3F if mask == _FULL_DSCP_MASK << 16 else None
    return None


def _dscp_of_flower(keys: Mapping[str, Any]) -> int | None:
    """6.1 prints a decimal number and a hexadecimal mask; others ``0x68/0xfc``."""
    if set(keys) - {"eth_type", "ip_tos", "ip_tos_mask"} or "ip_tos" not in keys:
        return None
    text, _, mask = str(keys["ip_tos"]).partition("/")
    mask = str(keys.get("ip_tos_mask", mask or "0xff"))
    if int(mask, 16) != _FULL_DSCP_MASK:
        return None
    return int(text, 0) >> 2


def sorted_packets(listed: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, int]]:
    """``tc -j -s filter show dev X ingress``: priority that a filter gives, and to how many."""
    for row in listed:
        options = row.get("options")
        priority = _priority(options) if isinstance(options, Mapping) else None
        if isinstance(options, Mapping) and priority is not None:
            packets = options["actions"][0].get("stats", {}).get("packets")
            if isinstance(packets, int):
                yield priority, packets


def _priority(options: Mapping[str, Any]) -> int | None:
    actions = options.get("actions")
    if not isinstance(actions, list) or len(actions) != 1:
        return None
    action = actions[0]
    match = re.fullmatch(r"0?:?([0-7])", str(action.get("priority", "")))
    if action.get("kind") != "skbedit" or match is None:
        return None
    return int(match[1])


def size_bytes(text: str) -> int:
    """``20Kb/1`` or ``20000``: a size as tc prints it, with what may stand behind it."""
    match = re.match(r"([\d.]+)([KM]?)", text)
    unit = {"": 1, "K": 1024, "M": 1024**2}
    return round(float(match[1]) * unit[match[2]]) if match else 0


def switches(values: object) -> tuple[int, ...]:
    """Positions that are on in a list of ``true`` or ``"on"``."""
    items = values if isinstance(values, list) else []
    return tuple(index for index, item in enumerate(items) if item in (True, "on"))


def numbers(values: object) -> tuple[int, ...]:
    """A list of numbers; empty where it is none."""
    items = values if isinstance(values, list) else []
    return tuple(item for item in items if isinstance(item, int))


def band_statistics(text: str) -> dict[int, tuple[int, int, int]]:
    """``tc -s class show dev X``: bytes, packets and drops of each ETS band."""
    return {
        int(minor, 16) - 1: (int(size), int(packets), int(drops))
        for minor, size, packets, drops in _CLASS.findall(text)
    }
