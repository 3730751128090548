"""The smallest change from a configuration to the intended one, as set and delete lines.

All of it goes into the candidate configuration and takes effect by one commit, so
the order does not matter to traffic: what goes is deleted first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fabric.devices.base import Change
from fabric.devices.junos.render import THRESHOLD
from fabric.devices.junos.statements import COS, PREFIX, Statement, entry_of, lines
from fabric.errors import DeviceError

# Kinds of objects of class of service, by the words before their names.
_OBJECTS: tuple[Statement, ...] = (
    (COS, "classifiers", "dscp"),
    (COS, "drop-profiles"),
    (COS, "schedulers"),
    (COS, "scheduler-maps"),
    (COS, "congestion-notification-profile"),
    (COS, "forwarding-classes", "class"),
)
_PORT_COS: tuple[Statement, ...] = (
    ("scheduler-map",),
    ("congestion-notification-profile",),
    ("forwarding-class-set",),
    ("classifiers",),
    ("unit", "0", "classifiers"),
    ("unit", "*", "classifiers"),
)
_PORT: tuple[Statement, ...] = (
    ("mtu",),
    ("ether-options", "flow-control"),
    ("ether-options", "no-flow-control"),
    ("ether-options", "configured-flow-control"),
    ("unit", "0", "family", "inet", "mtu"),
)


def change(
    device: str,
    running: Sequence[Statement],
    inactive: Sequence[Statement],
    intended: Sequence[Statement],
    ports: Sequence[str],
) -> Change:
    """Commands, their undoing, and a diff of the statements that are ours.

    Raises DeviceError where a queue of ours is already used in another way, or
    what the change touches has been deactivated.
    """
    _require_free_queues(device, running, intended)
    wanted = set(intended)
    held = set(running)
    gone = [s for s in _owned(running, intended, ports) if s not in wanted]
    come = [s for s in intended if s not in held]
    _require_active(device, inactive, [*gone, *come])
    after = [*(s for s in running if s not in set(gone)), *come]
    removed, added = list(lines(gone)), list(lines(come))
    return Change(
        diff="".join(f"-{line}\n" for line in removed) + "".join(f"+{line}\n" for line in added),
        commands=(*_deletes(running, gone), *(f"set {line}" for line in added)),
        rollback=(*_deletes(after, come), *(f"set {line}" for line in removed)),
    )


def _owned(
    running: Sequence[Statement], intended: Sequence[Statement], ports: Sequence[str]
) -> list[Statement]:
    """The statements of a configuration that the intended ones replace.

    An object of ours that something else still uses, and that is no longer
    intended, is left to it.
    """
    ours = {s for s in running if _object_name(s).startswith(PREFIX)}
    on_ports = {s for s in running if _is_port_line(s, set(ports))}
    kept = _used([s for s in running if s not in ours and s not in on_ports], ours)
    kept -= {_object_name(s) for s in intended}
    found = {s for s in ours if _object_name(s) not in kept} | on_ports
    found |= {s for s in running if s[: len(THRESHOLD)] == THRESHOLD}
    return [s for s in running if s in found]


def _object_name(statement: Statement) -> str:
    for head in _OBJECTS:
        if statement[: len(head)] == head and len(statement) > len(head):
            return statement[len(head)]
    return ""


def _is_port_line(statement: Statement, ports: set[str]) -> bool:
    for head, kinds in (((COS, "interfaces"), _PORT_COS), (("interfaces",), _PORT)):
        at = len(head)
        if statement[:at] == head and len(statement) > at + 1 and statement[at] in ports:
            rest = statement[at + 1 :]
            return any(rest[: len(kind)] == kind for kind in kinds)
    return False


def _used(others: Iterable[Statement], ours: Iterable[Statement]) -> set[str]:
    """Our names that statements of others use, and what those objects use."""
    used = {word for s in others for word in s if word.startswith(PREFIX)}
    while True:
        more = {
            word for s in ours if _object_name(s) in used for word in s if word.startswith(PREFIX)
        }
        if more <= used:
            return used
        used |= more


def _deletes(before: Sequence[Statement], gone: Sequence[Statement]) -> Iterator[str]:
    """Lines that delete these statements: a whole entry where nothing of it stays."""
    going = set(gone)
    staying = {entry_of(s) for s in before if s not in going}
    done: set[Statement] = set()
    single: list[Statement] = []
    for statement in gone:
        entry = entry_of(statement)
        if entry is None or entry in staying:
            single.append(statement)
        elif entry not in done:
            done.add(entry)
            yield f"delete {' '.join(entry)}"
    for statement in single:
        yield f"delete {' '.join(statement)}"


def _require_active(
    device: str, inactive: Sequence[Statement], touched: Iterable[Statement]
) -> None:
    """Statements below a deactivated one would have no effect, nor could it be put back."""
    entries = {entry_of(s) or s for s in touched}
    for path in inactive:
        for entry in entries:
            length = min(len(path), len(entry))
            if path[:length] == entry[:length]:
                raise DeviceError(
                    device,
                    "planning its configuration",
                    f"{' '.join(path)} is deactivated",
                    advice=f"On the switch: activate {' '.join(path)}, or delete it.",
                )


def _require_free_queues(
    device: str, running: Sequence[Statement], intended: Sequence[Statement]
) -> None:
    """All forwarding classes of a queue are lossless, or none is."""
    head = _OBJECTS[-1]
    kinds = {
        s[s.index("queue-num") + 1]: "no-loss" in s
        for s in intended
        if s[: len(head)] == head and "queue-num" in s
    }
    for s in running:
        name = _object_name(s)
        if s[: len(head)] != head or name.startswith(PREFIX) or "queue-num" not in s:
            continue
        queue = s[s.index("queue-num") + 1]
        if queue in kinds and kinds[queue] != ("no-loss" in s):
            kind = "lossy" if kinds[queue] else "lossless"
            raise DeviceError(
                device,
                "planning its configuration",
                f"queue {queue} is {kind} for its forwarding class {name}",
                advice=f"Delete forwarding class {name}, or give the intent another priority.",
            )
