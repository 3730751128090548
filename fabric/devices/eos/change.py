"""The smallest change from a running configuration to the intended one.

All of it goes into one configuration session and takes effect at once, so the
order matters little; profiles still come before what uses them and go after.
Lines that say ``no`` and are settings all the same (``no priority``) get another
name while the difference is found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from fabric.devices.base import Change
from fabric.devices.channels import without_members
from fabric.devices.delta import Dialect, commands, diff, with_places
from fabric.devices.eos.lines import APPLY, MMU_PROFILE, dscp_map_line, dscp_maps, queue_number
from fabric.devices.eos.owned import adopt, owned
from fabric.devices.owning import require_ports
from fabric.devices.sections import Section, find

_ALIASES = {
    "no priority": "priority none",
    "no qos trust": "qos trust none",
    "no priority-flow-control": "priority-flow-control off",
}
_PLAIN = {alias: line for line, alias in _ALIASES.items()}

# The profile in use: one for the switch, whatever its name.
_IN_USE = "buffer-profile-in-use "

_RANK = (
    (MMU_PROFILE, 0),
    (_IN_USE, 1),
    (f"no {_IN_USE}", 1),
    ("qos map ", 1),
    ("no qos map ", 1),
    ("qos profile ", 2),
    ("interface ", 3),
    ("no ", 4),
)


def _rank(text: str, _undo: bool) -> int:
    return next(rank for start, rank in _RANK if text.startswith(start))


def _turn(text: str) -> int:
    """What goes comes first; queues, which are sections, come last."""
    if text.startswith(("no ", "default ")):
        return 0
    return 2 if queue_number(text) is not None else 1


_QUEUES = ("uc-tx-queue ", "tx-queue ")
_HOLDERS = ("interface ", "qos profile ")


def _dialect() -> Dialect:
    queue_chains = [(holder, queue) for holder in _HOLDERS for queue in _QUEUES]
    one_value = [
        (_IN_USE,),
        *((f"qos map dscp {dscp} to",) for dscp in range(64)),
        *((f"qos map traffic-class {tc} to",) for tc in range(8)),
        *(
            (holder, start)
            for holder in _HOLDERS
            for start in (
                "mtu ",
                "flowcontrol send ",
                "flowcontrol receive ",
                "qos trust ",
                "service-profile ",
                "service-policy type qos input ",
                "priority-flow-control o",
                "priority-flow-control pause watchdog port timer ",
                "priority-flow-control pause watchdog port action ",
                *(f"priority-flow-control priority {p} " for p in range(8)),
            )
        ),
        *((MMU_PROFILE, f"ingress {what} ") for what in ("threshold", "headroom", "resume")),
        *((*chain, start) for chain in queue_chains for start in ("priority ", "bandwidth ")),
        *((*chain, "random-detect ecn minimum") for chain in queue_chains),
    ]
    negations = [
        *(((f"qos map dscp {dscp} to",), f"no qos map dscp {dscp}") for dscp in range(64)),
        *(
            ((holder, start), use)
            for holder in _HOLDERS
            for start, use in (
                ("mtu ", "no mtu"),
                ("flowcontrol send ", "no flowcontrol send"),
                ("flowcontrol receive ", "no flowcontrol receive"),
                ("qos trust ", "default qos trust"),
                ("priority-flow-control o", "no priority-flow-control"),
                *(
                    (
                        f"priority-flow-control priority {p} ",
                        f"no priority-flow-control priority {p}",
                    )
                    for p in range(8)
                ),
                (
                    "priority-flow-control pause watchdog port timer ",
                    "no priority-flow-control pause watchdog port timer",
                ),
                (
                    "priority-flow-control pause watchdog port action ",
                    "no priority-flow-control pause watchdog port action",
                ),
            )
        ),
        *(
            ((*chain, start), use)
            for chain in queue_chains
            for start, use in (
                ("priority ", "default priority"),
                ("bandwidth percent ", "no bandwidth percent"),
                ("random-detect ecn count", "no random-detect ecn count"),
                ("random-detect ecn ", "no random-detect ecn"),
            )
        ),
    ]
    return Dialect(tuple(one_value), tuple(negations), _rank, _turn)


_DIALECT = _dialect()


def change(device: str, running: Sequence[Section], intended: Sequence[Section]) -> Change:
    """Commands, their undoing, and a diff of the lines that are ours.

    Raises DeviceError where the device has no such port, or a member of a port channel
    is not as intended.
    """
    require_ports(device, running, intended)
    intended = without_members(device, running, intended, _lacking, "Port-Channel")
    before, after = owned(running, intended), adopt(running, intended)
    before, after = _same_places(before, after), _same_places(after, before)
    return Change(
        diff="".join(f"{line}\n" for line in diff(_collapsed(before), _collapsed(after))),
        commands=tuple(_commands(before, after, undo=False)),
        rollback=tuple(_commands(after, before, undo=True)),
    )


def _same_places(sections: Sequence[Section], others: Sequence[Section]) -> list[Section]:
    """The sections, and an empty one for each interface and queue that only others have.

    Lines in them are ours, the places are the switch's.
    """
    found = with_places(sections, [s.text for s in others if s.text.startswith("interface ")])
    for index, section in enumerate(found):
        other = find(others, section.text)
        if other is not None and section.text.startswith("interface "):
            queues = [c.text for c in other.children if queue_number(c.text) is not None]
            found[index] = Section(section.text, with_places(section.children, queues))
    return found


def _commands(before: Sequence[Section], after: Sequence[Section], *, undo: bool) -> Iterator[str]:
    lines = commands(_named(before), _named(after), _DIALECT, undo=undo)
    yield from _joined(_unnamed(line) for line in lines)


def _named(sections: Iterable[Section]) -> list[Section]:
    return [Section(_alias(section.text), _named(section.children)) for section in sections]


def _alias(text: str) -> str:
    if text.startswith(MMU_PROFILE) and text.endswith(APPLY):
        return _IN_USE + text.removeprefix(MMU_PROFILE).removesuffix(APPLY)
    return _ALIASES.get(text, text)


def _unnamed(line: str) -> str:
    text = line.lstrip()
    no, _, name = text.partition(_IN_USE)
    if name:
        return f"{no}{MMU_PROFILE}{name}{APPLY}"
    return line[: len(line) - len(text)] + _PLAIN.get(text, text)


def _joined(lines: Iterable[str]) -> Iterator[str]:
    """The lines, with those for single DSCPs joined again."""
    by_target: dict[str, list[int]] = defaultdict(list)
    reset: list[int] = []
    others = []
    for line in lines:
        maps = dscp_maps(line)
        if line.startswith("no qos map dscp "):
            reset.append(int(line.split()[-1]))
        elif maps:
            for dscp, target in maps.items():
                by_target[target].append(dscp)
        else:
            others.append(line)
    if reset:
        yield f"no qos map dscp {' '.join(map(str, sorted(reset)))}"
    yield from (dscp_map_line(by_target[target], target) for target in sorted(by_target))
    yield from others


def _collapsed(sections: Iterable[Section]) -> list[Section]:
    """The sections with maps of single DSCPs joined, for people."""
    kept = [section for section in sections if section.children or not _is_empty(section)]
    by_text = {section.text: section for section in kept}
    return [by_text.get(line, Section(line)) for line in _joined(by_text)]


def _is_empty(section: Section) -> bool:
    return section.text.startswith("interface ") or queue_number(section.text) is not None


def _lacking(now: Section, intended: Section) -> list[Section]:
    """What a member lacks of its own; its channel is not looked at."""
    ours = [line for section in owned([now], [intended]) for line in section.children]
    return [line for line in adopt([now], [intended])[0].children if line not in ours]
