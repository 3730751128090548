"""The smallest change from a running configuration to the intended one.

The lines between those that are ours now and those that should be are put into
an order that a switch accepts:
objects are defined before they are attached and detached before they are
deleted. A policy is detached before another takes its place, which NX-OS
accepts whether or not it would also replace it.
"""

from __future__ import annotations

from collections.abc import Sequence

from fabric.devices.base import Change
from fabric.devices.channels import Lacking, without_members
from fabric.devices.delta import Dialect, commands, diff, with_places
from fabric.devices.nxos.channels import ONE_OF, POLICIES
from fabric.devices.nxos.owned import adopt, owned, same_line
from fabric.devices.nxos.profiles import effective, inherited_lines
from fabric.devices.nxos.render import SHUTDOWN_MULTIPLIER
from fabric.devices.owning import require_ports
from fabric.devices.sections import Section, find
from fabric.errors import DeviceError

# Sections that are the switch's; only lines in them are ours.
_PLACES = ("interface ", "system qos")

_SYSTEM, _INTERFACE = 4, 5
_RANK = (
    ("no policy-map", 8),
    ("no class-map", 9),
    ("no priority-flow-control", 1),
    ("priority-flow-control", 1),
    ("class-map", 2),
    ("policy-map", 3),
    ("system qos", _SYSTEM),
    ("interface ", _INTERFACE),
)


def _rank(text: str, undo: bool) -> int:
    rank = next(rank for start, rank in _RANK if text.startswith(start))
    if undo and rank in (_SYSTEM, _INTERFACE):
        # Ports stop to use the lossless class before it is taken away.
        return _SYSTEM + _INTERFACE - rank
    return rank


def _turn(text: str) -> int:
    """What goes comes first, then what is switched off.

    PFC and link-level pause exclude each other.
    """
    if text.startswith("no "):
        return 0
    return 1 if text.endswith((" off", " auto")) else 2


_DIALECT = Dialect(
    one_value=(
        (SHUTDOWN_MULTIPLIER,),
        ("priority-flow-control watch-dog-interval",),
        ("interface ", "mtu "),
        ("interface ", "flowcontrol receive "),
        ("interface ", "flowcontrol send "),
        ("interface ", "priority-flow-control mode "),
        ("interface ", "priority-flow-control watch-dog-interval "),
        *(
            ("policy-map ", "class ", start)
            for start in (
                "mtu ",
                "set qos-group ",
                "bandwidth remaining ",
                "random-detect ",
                "pause ",
            )
        ),
    ),
    # `off` is the default of link-level flow control, and how it is switched off.
    negations=tuple(
        (("interface ", f"flowcontrol {direction} "), f"flowcontrol {direction} off")
        for direction in ("receive", "send")
    ),
    rank=_rank,
    turn=_turn,
)


def change(device: str, running: Sequence[Section], intended: Sequence[Section]) -> Change:
    """Commands, their undoing, and a diff of the lines that are ours.

    Raises DeviceError where the device has no such port, or a member of a port channel
    is not as intended.
    """
    require_ports(device, running, intended)
    intended = [_but_inherited(device, section, running) for section in intended]
    intended = without_members(device, running, intended, _lacking(running), "port-channel")
    before = owned(running, intended)
    after = adopt(running, intended)
    places = [s.text for s in (*before, *after) if s.text.startswith(_PLACES)]
    before, after = with_places(before, places), with_places(after, places)
    return Change(
        diff="".join(f"{line}\n" for line in diff(before, after)),
        commands=tuple(commands(before, after, _DIALECT, undo=False)),
        rollback=tuple(commands(after, before, _DIALECT, undo=True)),
    )


def _but_inherited(device: str, section: Section, running: Sequence[Section]) -> Section:
    """What is intended of a port, without the lines that its port profiles give it.

    Raises DeviceError where one gives it a line that nothing is to take the place of.
    """
    now = find(running, section.text)
    lines = inherited_lines(now, running) if now and section.text.startswith("interface ") else []
    for start in (*ONE_OF, *POLICIES):
        given = [line for line in lines if line.startswith(start)]
        if given and not any(line.startswith(start) for line in section.lines()):
            name = section.text.removeprefix("interface ")
            raise DeviceError(
                device,
                "planning its configuration",
                f"{name} inherits {given[0]!r} from a port-profile; that is not intended",
                advice="Take the line out of the profile, or the port out of it (no inherit "
                "port-profile).",
            )
    kept = [
        child
        for child in section.children
        if not any(same_line(child.text, line) for line in lines)
    ]
    return Section(section.text, kept)


def _lacking(running: Sequence[Section]) -> Lacking:
    def lines(now: Section, intended: Section) -> list[Section]:
        held = effective(now, running)
        ours = [line for section in owned([held], [intended]) for line in section.children]
        return [line for line in adopt([held], [intended])[0].children if line not in ours]

    return lines
