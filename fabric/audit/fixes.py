"""The device's own commands that mend one finding, and nothing else of the device.

A device module works out the change from what a device holds to any state. Asked
once for the state with everything put right that is found of some ports, and once
without the fields of one rule, the lines that only the first has are its fix: in
the device's language, for its own configuration. To them belong the objects that
these lines use, and what has to go first. Since every fix of a port leads to the same
state of it, one never undoes another.

What the device did not show of a port is left as it is: no fix holds a line that would
take its place. Where nothing else is left to mend, the fix says so in words.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from fabric.audit.rule import FIX, Rule
from fabric.devices.base import Change, Outputs, ReadError
from fabric.devices.registry import module_of, target_of
from fabric.errors import PaisoarError
from fabric.qos import DeviceQos, PortQos, Queue
from fabric.site import Site
from fabric.unread import FIELDS, PARTS, unseen

# Working a change out takes a tenth of a second; a fabric with more findings than
# this is mended by a plan.
MAX_FINDINGS = 40

# Names of objects that device modules make.
_NAME = re.compile(r"paisoar[-_][\w-]+", re.IGNORECASE)

# A line below the lines that it is indented under, outermost first.
Path = tuple[str, ...]
# (device, port) -> fields that its findings want mended
Fields = Mapping[tuple[str, str], frozenset[str]]
# Of a line and all lines of its change: lines to be sent ahead of it, and lines of
# the change without which it means something else.
Companions = Callable[[str, Sequence[str]], tuple[Sequence[str], Sequence[str]]]


class Fixes:
    """Fixes for the findings of one audit, from the outputs that it judged."""

    def __init__(
        self,
        site: Site,
        states: Mapping[str, DeviceQos],
        intended: Mapping[str, DeviceQos],
        outputs: Mapping[str, Outputs],
        fields: Fields,
    ) -> None:
        self._site, self._states, self._intended = site, states, intended
        self._outputs, self._fields = outputs, fields
        self._planned: dict[str, Change | None] = {}
        # What to do where the device's module refuses to plan for it.
        self._refused: dict[str, str] = {}
        self._known: dict[tuple[str, tuple[str, ...], frozenset[str]], tuple[str, ...]] = {}

    def of(self, rule: Rule, device: str, ports: Sequence[str]) -> tuple[str, ...]:
        """What mends a finding of this rule on these ports.

        Commands where the device's module knows them, a plan where that changes
        anything, else what the module or the rule says to do by hand.
        """
        if not rule.fields:
            return (rule.mend,)
        if device not in self._outputs:
            return FIX
        if lines := self._lines(rule, device, tuple(ports)):
            return lines
        if lost := self._unknown(device, ports, rule.fields):
            why = f"not by commands, for they would replace what was not read ({lost})"
            return (f"{why}: {rule.mend}",)
        if device not in self._planned:
            self._planned[device] = self._change(device, self._intended[device])
        if (plan := self._planned[device]) is not None:
            return (rule.mend,) if plan.empty else FIX
        advice = self._refused.get(device)
        return (advice,) if advice else FIX

    def _lines(self, rule: Rule, device: str, ports: tuple[str, ...]) -> tuple[str, ...]:
        """Commands that put right what this rule finds of these ports; empty where unknown."""
        key = device, ports, frozenset(rule.fields)
        if key not in self._known:
            if len(self._known) >= MAX_FINDINGS:
                return ()
            self._known[key] = self._worked_out(*key)
        return self._known[key]

    def _worked_out(
        self, device: str, ports: tuple[str, ...], fields: frozenset[str]
    ) -> tuple[str, ...]:
        if fields <= self._hidden(device, ports)[0]:
            return ()
        # What ports do now may be what no plan of ours can leave (trust in PCP). Where other
        # ports do, they are put right before and after; where these ports do, all that is
        # found of them is put right together.
        after = self._mended(device, ports)
        others = after is None
        if after is None:
            after = self._mended(device, ports, others=True)
        if after is None:
            return ()
        names = [port.name for port in self._intended[device].ports]
        with self._unrefused(device):
            before = self._mended(device, ports, but=fields, others=others)
        lines: Sequence[str] = after.commands
        if before is None:
            lines, before = lines_but_of(lines, names, ports), Change()
        companions = getattr(module_of(self._site, device), "companions", None)
        return fix_lines(lines, before.commands, names, companions)

    @contextlib.contextmanager
    def _unrefused(self, device: str) -> Iterator[None]:
        """What the module refuses meanwhile is no advice on the device."""
        known = self._refused.get(device)
        yield
        if known is None:
            self._refused.pop(device, None)

    def _mended(
        self,
        device: str,
        ports: tuple[str, ...],
        but: frozenset[str] = frozenset(),
        *,
        others: bool = False,
    ) -> Change | None:
        """The change to all that is found of these ports put right, but these fields.

        All that is found of ``others`` too, where asked for.
        """
        now = self._now(device)
        wanted = {port.name: port for port in self._intended[device].ports}
        mended = []
        for port in now.ports:
            ours = port.name in ports
            found = self._fields.get((device, port.name), frozenset()) if ours or others else ()
            hidden, parts = self._hidden(device, ports if ours else (port.name,))
            fields = sorted(set(found) - hidden - (but if ours else frozenset()))
            mended.append(mend(port, wanted[port.name], fields, parts))
        return self._change(device, dataclasses.replace(now, ports=tuple(mended)), known=True)

    def _hidden(self, device: str, ports: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Fields that no line can set without replacing what was not read of these ports.

        And parts of queues that are left as they are, where lines set them one by one.
        """
        unread = self._states[device].unread
        facts = {fact for fact in FIELDS if any(unseen(unread, port, fact) for port in ports)}
        parts = frozenset(PARTS[fact] for fact in facts if fact in PARTS)
        hidden = {field for fact in facts if fact not in PARTS for field in FIELDS[fact]}
        unknown = {field for fact in facts for field in FIELDS[fact]}
        for together in getattr(module_of(self._site, device), "held_together", ()):
            if not unknown.isdisjoint(together):
                hidden |= together
        return frozenset(hidden), parts

    def _unknown(self, device: str, ports: Sequence[str], fields: Sequence[str]) -> str:
        """The first entry of what was not read, where it hides one of these fields."""
        hidden, parts = self._hidden(device, ports)
        if hidden.isdisjoint(fields) and not (parts and "queues" in fields):
            return ""
        unread = self._states[device].unread
        facts = sorted(FIELDS, key=lambda fact: set(FIELDS[fact]).isdisjoint(fields))
        entries = (unseen(unread, port, fact) for fact in facts for port in ports)
        return next(filter(None, entries), "")

    def _now(self, device: str) -> DeviceQos:
        """The cabled ports as they are, in the form of an intended state."""
        live, intended = self._states[device], self._intended[device]
        held = (live.port(port.name) for port in intended.ports)
        return dataclasses.replace(intended, ports=tuple(port for port in held if port))

    def _change(self, device: str, state: DeviceQos, *, known: bool = False) -> Change | None:
        """The change to this state; ``known`` also of a device that was read in part."""
        module = module_of(self._site, device)
        ways = [module.change, getattr(module, "known_change", None) if known else None]
        for way in filter(None, ways):
            with contextlib.suppress(ReadError, ValueError, KeyError):
                try:
                    change: Change = way(
                        target_of(self._site, device), self._outputs[device], state
                    )
                except PaisoarError as error:
                    self._refused[device] = error.advice
                    continue
                return change
        return None


def mend(
    port: PortQos, intended: PortQos, fields: Sequence[str], kept: Collection[str] = ()
) -> PortQos:
    """The port with these fields as intended; ``nic.`` stands before those of its NIC.

    Of queues, the parts that are to be kept stay what they are.
    """
    own = {name: getattr(intended, name) for name in fields if not name.startswith("nic.")}
    if "queues" in own and kept:
        own["queues"] = tuple(_keeping(queue, port, kept) for queue in own["queues"])
    nic = port.nic
    if nic is not None and intended.nic is not None:
        names = [name.removeprefix("nic.") for name in fields if name.startswith("nic.")]
        changed: dict[str, Any] = {name: getattr(intended.nic, name) for name in names}
        nic = dataclasses.replace(nic, **changed)
    return dataclasses.replace(port, **own, nic=nic)


def _keeping(queue: Queue, port: PortQos, kept: Collection[str]) -> Queue:
    held = port.queue(queue.traffic_class)
    if held is None:
        return queue
    parts: dict[str, Any] = {name: getattr(held, name) for name in kept}
    return dataclasses.replace(queue, **parts)


def fix_lines(
    lines: Sequence[str],
    others: Sequence[str],
    ports: Sequence[str],
    companions: Companions | None = None,
) -> tuple[str, ...]:
    """The lines that the others do not have, and what these need in order to be taken.

    Objects of ours that nothing uses any more stay: another fix may use them.
    """
    paths = list(_paths(lines))
    known = set(_paths(others))
    kept = {path for path in paths if path not in known and not _tidies(path)}
    kept |= {path for path in paths if any(_replaced(path, other) for other in kept)}
    extra: dict[Path, tuple[str, ...]] = {}
    definitions = _definitions(paths, ports)
    new = set(kept)
    while new:
        needed = {
            path
            for one in new
            for name in _NAME.findall(one[-1])
            for path in definitions.get(name, ())
        }
        for one in new if companions else ():
            ahead, along = companions(one[-1], lines) if companions else ((), ())
            extra[one] = tuple(ahead)
            needed |= {(line,) for line in along}
        new = needed - kept
        kept |= new
    found: dict[Path, None] = {}
    for path in paths:
        if path in kept:
            found.update(dict.fromkeys((line,) for line in extra.get(path, ())))
            found.update(dict.fromkeys(path[:depth] for depth in range(1, len(path) + 1)))
    return tuple(path[-1] for path in found)


def lines_but_of(lines: Sequence[str], names: Sequence[str], ports: Sequence[str]) -> list[str]:
    """The lines that are of none of a device's ports but these."""
    ours = _naming(ports)
    others = _naming([name for name in names if name not in ports])
    return [
        path[-1]
        for path in _paths(lines)
        if any(ours.search(line) for line in path) or not any(others.search(line) for line in path)
    ]


def _naming(ports: Sequence[str]) -> re.Pattern[str]:
    """What finds a line that names one of these ports; nothing where there are none."""
    names = "|".join(rf"(?<![\w/]){re.escape(port)}(?![\w/])" for port in ports)
    return re.compile(names or r"(?!)")


def _definitions(paths: Sequence[Path], ports: Sequence[str]) -> dict[str, list[Path]]:
    """Lines that define each object of ours: those under its name that name no port."""
    any_port = _naming(ports)
    found: dict[str, list[Path]] = {}
    heads: dict[str, list[str]] = {}
    for path in paths:
        if path[0] not in heads:
            plain = not _tidies(path[:1]) and not any_port.search(path[0])
            heads[path[0]] = _NAME.findall(path[0]) if plain else []
        for name in heads[path[0]]:
            found.setdefault(name, []).append(path)
    return found


def _tidies(path: Path) -> bool:
    """Whether this takes away a whole object of ours."""
    words = path[0].split()
    taking = "DEL" in words or words[0] in ("no", "undo", "delete")
    return len(path) == 1 and taking and _NAME.search(words[-1]) is not None


def _replaced(path: Path, kept: Path) -> bool:
    """Whether this detaches what a line that is kept puts another in the place of."""
    words, others = path[-1].split(), kept[-1].split()
    return (
        path[:-1] == kept[:-1]
        and len(words) > 2
        and words[0] in ("no", "undo")
        and words[1:-1] == others[:-1]
    )


def _paths(lines: Sequence[str]) -> Iterator[Path]:
    """Each line below the lines that it is indented under."""
    above: list[str] = []
    for line in lines:
        while above and _indent(above[-1]) >= _indent(line):
            above.pop()
        above.append(line)
        yield tuple(above)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
