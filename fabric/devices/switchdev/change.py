"""From the settings that a port holds to others, as shell commands, and back.

The scheduler comes first and goes last: mlxsw lets buffer sizes be set only while
a qdisc schedules the port (mlxsw wiki, "Quality of Service", TC mode).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fabric.devices.switchdev.red import Red
from fabric.devices.switchdev.state import PREFS, Ets, Held, Place

# DSCPs on one command line: no line may be longer than a terminal is wide.
_CHUNK = 16


def transition(
    port: str, place: Place, now: Held, then: Held, *, undo: bool = False
) -> Iterator[str]:
    """Commands that make ``then`` of ``now``; the other way round in order with ``undo``."""
    # Pause and PFC exclude each other: what goes off, goes first.
    flow = [list(_pause(port, now, then)), list(_pfc(port, now, then))]
    if then.pause != undo:
        flow.reverse()
    steps = [
        list(_mtu(port, now, then)),
        list(_ets(port, place, now.ets, then.ets)),
        list(_reds(port, now, then)),
        list(_buffers(port, now, then)),
        list(_thresholds(port, now.thresholds, then.thresholds)),
        *flow,
        list(_app(port, now.app, then.app)),
        list(_filters(port, now, then)),
    ]
    for step in reversed(steps) if undo else steps:
        yield from step


def _mtu(port: str, now: Held, then: Held) -> Iterator[str]:
    if now.mtu_bytes != then.mtu_bytes:
        yield f"ip link set dev {port} mtu {then.mtu_bytes}"


def _ets(port: str, place: Place, now: Ets | None, then: Ets | None) -> Iterator[str]:
    if now == then:
        return
    if then is None:
        yield f"tc qdisc {place.vacate.format(port=port)}"
        return
    verb = "replace" if now is None else "change"
    yield f"tc qdisc {verb} dev {port} {place.where} handle {then.handle}: ets {then.arguments}"


def _reds(port: str, now: Held, then: Held) -> Iterator[str]:
    if then.ets is None:
        return  # they go with the scheduler above them
    for band in sorted({*now.reds, *then.reds}):
        old, new = now.reds.get(band), then.reds.get(band)
        parent = f"parent {then.ets.handle}:{band + 1}"
        if new is None:
            yield f"tc qdisc del dev {port} {parent}"
        elif old is None or _differs(old, new):
            yield (f"tc qdisc replace dev {port} {parent} handle {new.handle}: red {new.arguments}")


def _differs(old: Red, new: Red) -> bool:
    return not old.same_as(new) or (new.ewma is not None and old.ewma != new.ewma)


def _buffers(port: str, now: Held, then: Held) -> Iterator[str]:
    priorities = _pairs(now.prio_buffer, then.prio_buffer)
    if priorities:
        yield f"dcb buffer set dev {port} prio-buffer {priorities}"
    sizes = _pairs(now.buffer_bytes, then.buffer_bytes)
    if sizes:
        yield f"dcb buffer set dev {port} buffer-size {sizes}"


def _pairs(now: tuple[int, ...], then: tuple[int, ...]) -> str:
    padded = now or (None,) * len(then)
    if not then:
        return ""  # what was there before was not shown
    return " ".join(
        f"{index}:{new}"
        for index, (old, new) in enumerate(zip(padded, then, strict=True))
        if old != new
    )


def _thresholds(
    port: str, now: Mapping[int, tuple[int, int]], then: Mapping[int, tuple[int, int]]
) -> Iterator[str]:
    for group, (pool, threshold) in sorted(then.items()):
        if now.get(group) != (pool, threshold):
            yield (
                f"devlink sb tc bind set {port} tc {group} type ingress pool {pool} th {threshold}"
            )


def _pause(port: str, now: Held, then: Held) -> Iterator[str]:
    if now.pause != then.pause:
        state = "on" if then.pause else "off"
        yield f"ethtool -A {port} autoneg off rx {state} tx {state}"


def _pfc(port: str, now: Held, then: Held) -> Iterator[str]:
    if now.pfc != then.pfc:
        words = ["all:off", *(f"{priority}:on" for priority in then.pfc)]
        yield f"dcb pfc set dev {port} prio-pfc {' '.join(words)}"


def _app(
    port: str, now: Mapping[int, frozenset[int]], then: Mapping[int, frozenset[int]]
) -> Iterator[str]:
    """New entries before old ones go: no DSCP is without one in between."""
    old = {(dscp, priority) for dscp, several in now.items() for priority in several}
    new = {(dscp, priority) for dscp, several in then.items() for priority in several}
    for verb, entries in (("add", sorted(new - old)), ("del", sorted(old - new))):
        for start in range(0, len(entries), _CHUNK):
            words = " ".join(f"{d}:{p}" for d, p in entries[start : start + _CHUNK])
            yield f"dcb app {verb} dev {port} dscp-prio {words}"


def _filters(port: str, now: Held, then: Held) -> Iterator[str]:
    if then.ingress_hook and not now.ingress_hook:
        yield f"tc qdisc add dev {port} clsact"
    if now.ingress_hook and not then.ingress_hook:
        yield f"tc qdisc del dev {port} clsact"
        return
    for pref in sorted({*now.filters, *then.filters}):
        if pref not in then.filters:
            yield f"tc filter del dev {port} ingress pref {pref}"
        elif now.filters.get(pref) != then.filters[pref]:
            yield _filter(port, pref, *then.filters[pref])


def _filter(port: str, pref: int, dscp: int, priority: int) -> str:
    protocol = "ip" if pref < PREFS["ipv6"] else "ipv6"
    return (
        f"tc filter replace dev {port} ingress pref {pref} protocol {protocol} handle 1 "
        f"flower ip_tos {dscp << 2:#x}/0xfc action skbedit priority {priority}"
    )
