"""What ``tc`` shows of a port's queueing: its scheduler, and what stands in its bands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fabric.devices.switchdev import red, shown, state
from fabric.devices.switchdev.state import Ets, Held, Place
from fabric.qos import PRIORITY_COUNT, Ecn, Queue, Scheduler
from fabric.unread import Fact, lacking

_FIFOS = ("pfifo", "bfifo", "pfifo_head_drop")
# What stands at a root that nobody has put anything at.
_NO_HANDLE = "0:"


def scheduler_of(qdiscs: Iterable[Mapping[str, Any]]) -> tuple[Place, Ets | None]:
    """Where the scheduler of a port is: at its root, or below a shaper that is there."""
    rows = list(qdiscs)
    root = next((row for row in rows if row.get("root")), {})
    if root.get("kind") == "tbf" and root.get("handle", _NO_HANDLE) != _NO_HANDLE:
        return _below_shaper(root, rows)
    if root.get("kind") == "ets":
        return Place("root", "del dev {port} root"), _ets(root)
    blocked = "" if root.get("handle", _NO_HANDLE) == _NO_HANDLE else str(root.get("kind"))
    return Place("root", "del dev {port} root", blocked), None


def _below_shaper(
    root: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]
) -> tuple[Place, Ets | None]:
    parent = f"{root['handle']}1"
    child = next((row for row in rows if row.get("parent") == parent), None)
    where = f"parent {parent}"
    if child is None or child.get("kind") == "ets":
        # Taken out, a shaper's child leaves a hole that drops all: its own queue goes back.
        vacate = f"replace dev {{port}} {where} bfifo limit {_shaper_limit(root)}"
        return Place(where, vacate), None if child is None else _ets(child)
    limit = child.get("options", {}).get("limit")
    if child.get("kind") in _FIFOS and isinstance(limit, int):
        kept = f"handle {child['handle']} {child['kind']} limit {limit}"
        return Place(where, f"replace dev {{port}} {where} {kept}"), None
    return Place(where, "", str(child.get("kind"))), None


def _shaper_limit(root: Mapping[str, Any]) -> int:
    """``tc`` shows the latency that it made of the limit, in microseconds."""
    options = root.get("options", {})
    burst = shown.size_bytes(str(options.get("burst", "0")))
    queued = float(options.get("rate", 0)) * float(options.get("lat", 0)) / 1e6
    return round(queued) + burst


def _ets(row: Mapping[str, Any]) -> Ets:
    options = row.get("options", {})
    quanta = shown.numbers(options.get("quanta"))
    strict = int(options.get("strict", options.get("bands", len(quanta)) - len(quanta)))
    handle = str(row.get("handle", "")).rstrip(":")
    return Ets(handle, strict, quanta, shown.numbers(options.get("priomap")))


def reds_of(
    name: str, qdiscs: Iterable[Mapping[str, Any]], ets: Ets | None
) -> tuple[dict[int, red.Red], list[str]]:
    """RED of each band of a port, and what of it is not shown."""
    found: dict[int, red.Red] = {}
    unread = []
    for row in qdiscs:
        major, _, minor = str(row.get("parent", "")).partition(":")
        if ets is None or major != ets.handle or not minor or row.get("kind") != "red":
            continue
        band = int(minor, 16) - 1
        one = red.of_options(str(row.get("handle", "")).rstrip(":"), row.get("options", {}))
        if one is None:
            queue = f"queue {PRIORITY_COUNT - 1 - band}"
            unread.append(lacking(name, Fact.ECN, "its RED is half shown", queue))
        else:
            found[band] = one
    return found, unread


def blocked_bands(qdiscs: Iterable[Mapping[str, Any]], handle: str) -> dict[int, str]:
    """Bands below which there is neither RED nor a plain queue, with its kind."""
    found = {}
    for row in qdiscs:
        major, _, minor = str(row.get("parent", "")).partition(":")
        if major == handle and minor and row.get("kind") not in ("red", *_FIFOS):
            found[int(minor, 16) - 1] = str(row.get("kind"))
    return found


def scheduling_of(
    held: Held, qdiscs: Iterable[Mapping[str, Any]], dcb_ets: Mapping[str, Any] | None = None
) -> tuple[tuple[Queue, ...], tuple[int, ...]]:
    """Queues and the traffic class of each priority, by whatever schedules the port."""
    if held.ets is not None:
        return state.queues(held), state.classes(held.ets)
    kinds = list((dcb_ets or {}).get("tc_tsa", []))
    shares = shown.numbers((dcb_ets or {}).get("tc_bw"))
    classes = shown.numbers((dcb_ets or {}).get("prio_tc"))
    if len(kinds) == len(shares) == len(classes) == PRIORITY_COUNT:
        queues = tuple(
            Queue(
                number, Scheduler("ets", shares[number]) if kind == "ets" else Scheduler("strict")
            )
            for number, kind in enumerate(kinds)
        )
        return queues, classes
    return (Queue(0, Scheduler("ets", 100), _root_ecn(qdiscs)),), (0,) * PRIORITY_COUNT


def _root_ecn(qdiscs: Iterable[Mapping[str, Any]]) -> Ecn | None:
    for row in qdiscs:
        if row.get("root") and row.get("kind") == "red":
            one = red.of_options("", row.get("options", {}))
            return one.ecn if one else None
    return None
