"""The smallest change from what CONFIG_DB holds to what it should hold.

Each command writes or removes fields of one row, so that a refused one names
its row and the way back is as fine. ``config apply-patch`` would check against
the switch's own YANG models, but refuses what is needed here: of WRED_PROFILE it
changes three fields of a profile named AZURE_LOSSLESS, of BUFFER_PROFILE no new
xon or size (sonic-utilities generic_config_updater/
gcu_field_operation_validators.conf.json).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from fabric.devices.base import Change
from fabric.devices.sonic.database import Row, Tables
from fabric.devices.sonic.owned import adopted
from fabric.devices.sonic.render import LOSSLESS_POOL, intended_tables
from fabric.devices.sonic.schema import NAMED, violations
from fabric.errors import DeviceError, InputError
from fabric.qos import DeviceQos

CLI = "sudo sonic-db-cli CONFIG_DB"
# A cable length of none before PFC goes on, PFC before the buffers: buffermgrd
# answers each of them.
_ORDER = ("PORT", "CABLE_LENGTH", "PORT_QOS_MAP", "BUFFER_PG", "QUEUE", "PFC_WD")


def change(device: str, running: Tables, intended: DeviceQos) -> Change:
    """Commands, their undoing, and a diff of the fields that change.

    Raises DeviceError where the device has no such port or no pool to take
    lossless buffers from.
    """
    for port in intended.ports:
        if port.name not in running.get("PORT", {}):
            raise DeviceError(
                device,
                "planning its configuration",
                f"its CONFIG_DB has no PORT|{port.name}",
                advice="Correct the cable in fabric.yaml, or break the port out on the switch.",
            )
    wanted = intended_tables(intended, _pool(device, running, intended))
    after = adopted(running, wanted)
    faults = list(violations(wanted, after))
    if faults:
        raise InputError(
            f"{device}: SONiC's YANG models do not allow {'; '.join(faults[:4])}",
            advice="Change intent in fabric.yaml.",
        )
    return Change(
        diff="".join(f"{line}\n" for line in _diff(running, after)),
        commands=tuple(commands(running, after)),
        rollback=tuple(commands(after, running)),
    )


def _pool(device: str, running: Tables, intended: DeviceQos) -> str:
    """The ingress pool of lossless traffic, whose thresholds are as the intent's."""
    buffers = [buffer for port in intended.ports for buffer in port.ingress_buffers]
    if not buffers:
        return LOSSLESS_POOL
    pools = running.get("BUFFER_POOL", {})
    ingress = [name for name, row in pools.items() if row.get("type") == "ingress"]
    lossless = [name for name in ingress if "xoff" in pools[name] or "lossless" in name]
    names = [LOSSLESS_POOL] if LOSSLESS_POOL in ingress else lossless or ingress
    doing = "planning its receive buffers"
    if not names:
        raise DeviceError(
            device,
            doing,
            "its CONFIG_DB has no ingress pool in BUFFER_POOL",
            advice="Give the switch its platform's buffers first: sudo config qos reload.",
        )
    mode = pools[names[0]].get("mode", "")
    wanted = "static" if buffers[0].alpha is None else "dynamic"
    if mode != wanted:
        how = (
            "set alpha (e.g. 0.125) in each of intent.profiles"
            if mode == "dynamic"
            else "leave alpha out of intent.profiles"
        )
        raise DeviceError(
            device,
            doing,
            f"its pool {names[0]} has {mode or 'no'} thresholds, the intent {wanted} ones",
            advice=f"In fabric.yaml, {how}.",
        )
    return names[0]


def commands(before: Tables, after: Tables) -> Iterator[str]:
    """What turns one into the other; rows are defined before and removed after their use."""
    names = sorted(set(before) | set(after), key=_rank)
    attached = [name for name in names if name not in NAMED]
    for name in NAMED:
        yield from _written(name, before, after)
    for name in reversed(attached):
        yield from _removed(name, before, after)
    for name in attached:
        yield from _written(name, before, after)
    for name in NAMED[::-1]:
        yield from _removed(name, before, after)


def _rank(name: str) -> tuple[int, str]:
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)


def _written(name: str, before: Tables, after: Tables) -> Iterator[str]:
    for key, row in sorted(after.get(name, {}).items(), key=lambda item: _turn(item[0])):
        old = before.get(name, {}).get(key, {})
        fields = {field: value for field, value in row.items() if old.get(field) != value}
        gone = [field for field in old if field not in row]
        if fields:
            yield _command("HSET", name, key, *(text for pair in fields.items() for text in pair))
        if gone:
            yield _command("HDEL", name, key, *gone)


def _removed(name: str, before: Tables, after: Tables) -> Iterator[str]:
    for key in sorted(set(before.get(name, {})) - set(after.get(name, {})), key=_turn):
        yield _command("DEL", name, key)


def _turn(key: str) -> tuple[bool, list[tuple[int, str]]]:
    """``GLOBAL`` first, then names as people count them."""
    parts = [part for chunk in key.split("|") for part in _pieces(chunk)]
    return key != "GLOBAL", parts


def _pieces(text: str) -> list[tuple[int, str]]:
    letters = text.rstrip("0123456789")
    digits = text[len(letters) :]
    return [(0, letters), (int(digits) if digits else -1, "")]


def _command(verb: str, name: str, key: str, *words: str) -> str:
    return " ".join([CLI, verb, shlex.quote(f"{name}|{key}"), *map(shlex.quote, words)])


def _diff(before: Tables, after: Tables) -> Iterator[str]:
    for name in sorted(set(before) | set(after)):
        old, new = before.get(name, {}), after.get(name, {})
        for key in sorted(set(old) | set(new), key=_turn):
            lines = list(_row_diff(old.get(key, {}), new.get(key, {})))
            if lines:
                yield f" {name}|{key}"
                yield from lines


def _row_diff(old: Row, new: Row) -> Iterator[str]:
    for field in sorted(set(old) | set(new)):
        if old.get(field) == new.get(field):
            continue
        if field in old:
            yield f"-  {field}: {old[field]}"
        if field in new:
            yield f"+  {field}: {new[field]}"
