"""What the class maps and policy maps of a configuration do, ours and others'."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from fabric.devices.nxos.names import parse_dscps
from fabric.devices.nxos.render import DEFAULT_MTU, KBYTES
from fabric.devices.sections import Section, find, number
from fabric.qos import (
    DSCP_COUNT,
    PRIORITY_COUNT,
    Ecn,
    IngressBuffer,
    Queue,
    Scheduler,
    Trust,
)
from fabric.unread import Fact

Value = TypeVar("Value")
# What is not known, of which queue or priority, and the line that cannot be read.
Unread = tuple[Fact, str, str]

_UNIT = {"bytes": 1, "kbytes": KBYTES, "mbytes": KBYTES**2}
_WRED = re.compile(
    r"random-detect minimum-threshold (\d+) (\w+) maximum-threshold (\d+) (\w+) "
    r"drop-probability (\d+)\b(.*)"
)
_SHAPE = re.compile(r"shape (?:min \d+ \w+ max )?(\d+) (kbps|mbps|gbps)")
_SHARE = re.compile(r"bandwidth (?:remaining )?percent (\d+)")
_PAUSED = re.compile(r"pause pfc-cos (\d(?:, ?\d)*)(?: .*)?")
# What a class of an output policy says, in the order in which it is read.
_OF_A_QUEUE = (Fact.ECN, Fact.SCHEDULING, Fact.RATE)
_RATE_UNIT = {"kbps": 10**3, "mbps": 10**6, "gbps": 10**9}
_PAUSE = re.compile(
    r"pause buffer-size (\d+)(?: bytes)? pause-threshold (\d+)(?: bytes)? "
    r"resume-threshold (\d+)(?: bytes)?"
)
# default-8q-out-policy, which every port has that has no other.
_DEFAULT_QUEUES = (
    Queue(0, Scheduler("ets", 100)),
    *(Queue(number, Scheduler("ets", 0)) for number in range(1, 7)),
    Queue(7, Scheduler("strict")),
)


@dataclass(frozen=True, slots=True)
class Classification:
    """What a type qos policy makes of DSCPs; ``unread`` says what it cannot tell."""

    trust: Trust
    dscp_to_priority: tuple[int, ...]
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NetworkQos:
    """MTU of each qos-group, and the priorities that a port with PFC pauses."""

    class_mtu_bytes: tuple[int, ...] = (DEFAULT_MTU,) * PRIORITY_COUNT
    pause: tuple[int, ...] = ()
    unread: tuple[str, ...] = ()


@dataclass(slots=True)
class Policies:
    """The policies of one running configuration, by the names that attach them."""

    sections: Sequence[Section]
    _known: dict[tuple[str, str | None], Any] = field(default_factory=dict)

    def _once(self, kind: str, name: str | None, work: Callable[[str | None], Value]) -> Value:
        """Many ports attach the same policy: what it does is worked out once."""
        if (kind, name) not in self._known:
            self._known[kind, name] = work(name)
        return cast(Value, self._known[kind, name])

    def classification(self, name: str | None) -> Classification:
        """The type qos policy of this name; all in qos-group 0 without one."""
        return self._once("qos", name, self._classification)

    def queues(self, name: str | None) -> tuple[tuple[Queue, ...], tuple[Unread, ...]]:
        """Egress queues of the type queuing policy of this name, and what is unread."""
        return self._once("queuing output", name, self._queues)

    def buffers(self, name: str | None) -> tuple[tuple[IngressBuffer, ...], tuple[Unread, ...]]:
        """Receive buffers of the type queuing input policy of this name, and what is unread."""
        return self._once("queuing input", name, self._buffers)

    def _classification(self, name: str | None) -> Classification:
        if name is None:
            return Classification("none", (0,) * DSCP_COUNT)
        policy = find(self.sections, f"policy-map type qos {name}")
        if policy is None:
            return Classification(
                "none", (0,) * DSCP_COUNT, (f"policy-map type qos {name} is not shown",)
            )
        mapping: list[int | None] = [None] * DSCP_COUNT
        default, by_cos, by_dscp, unread = 0, False, False, []
        for entry in policy.children:
            name_of_class = _class_name(entry)
            group = number(entry.lines(), "set qos-group", f"policy-map {name}")
            if name_of_class == "class-default":
                default = group or 0
                continue
            for line in self._matches(name_of_class):
                if line.startswith("match dscp "):
                    by_dscp = True
                    try:
                        dscps = parse_dscps(line.removeprefix("match dscp "))
                    except ValueError:
                        unread.append(f"class {name_of_class} of {name}: {line}")
                        continue
                    for dscp in dscps:
                        # The first class that matches a packet takes it.
                        if mapping[dscp] is None:
                            mapping[dscp] = group or 0
                elif line.startswith("match cos "):
                    by_cos = True
                else:
                    unread.append(f"class {name_of_class} of {name}: {line}")
        trust: Trust = "pcp" if by_cos and not by_dscp else "dscp"
        full = tuple(default if group is None else group for group in mapping)
        return Classification(trust, full, tuple(unread))

    def _matches(self, class_name: str) -> list[str]:
        """Match lines of a class map. On Nexus 9000 match-all means match-any."""
        for section in self.sections:
            words = section.text.split()
            if words[0] == "class-map" and words[-1] == class_name and "qos" in words:
                return [child.text for child in section.children]
        return ["its class map is not shown"]

    def network_qos(self, name: str | None) -> NetworkQos:
        """The type network-qos policy of this name; the system's default without one."""
        if name is None or name == "default-8q-nq-policy":
            return NetworkQos()
        policy = find(self.sections, f"policy-map type network-qos {name}")
        if policy is None:
            return NetworkQos(unread=(f"policy-map type network-qos {name} is not shown",))
        mtus = [DEFAULT_MTU] * PRIORITY_COUNT
        pause: set[int] = set()
        unread: list[str] = []
        for entry in policy.children:
            group = _group(entry, "c-8q-nq")
            if group is None:
                unread.append(f"{entry.text} of {name} is none of the 8-queue model")
                continue
            mtu = number(entry.lines(), "mtu", f"policy-map {name}")
            mtus[group] = DEFAULT_MTU if mtu is None else mtu
            for child in entry.children:
                if match := _PAUSED.fullmatch(child.text):
                    pause.update(int(cos) for cos in match[1].split(","))
                elif child.text.startswith("pause"):
                    unread.append(f"{entry.text} of {name}: {child.text}")
        return NetworkQos(tuple(mtus), tuple(sorted(pause)), tuple(unread))

    def _queues(self, name: str | None) -> tuple[tuple[Queue, ...], tuple[Unread, ...]]:
        if name is None or name in ("default-8q-out-policy", "default-out-policy"):
            return _DEFAULT_QUEUES, ()
        policy = find(self.sections, f"policy-map type queuing {name}")
        if policy is None:
            why = f"policy-map type queuing {name} is not shown"
            return _DEFAULT_QUEUES, tuple((fact, "all queues", why) for fact in _OF_A_QUEUE)
        found: dict[int, Queue] = {}
        unread: list[Unread] = []
        for entry in policy.children:
            where = f"{entry.text} of {name}"
            group = _group(entry, "c-out-8q-q")
            if group is None:
                why = "it is none of the 8-queue model"
                unread += [(fact, where, why) for fact in _OF_A_QUEUE]
                continue
            scheduler, unserved = _scheduler(entry)
            ecn, unknown = _ecn(entry)
            rate_bps, unshown = _max_rate(entry)
            for fact, lines in zip(_OF_A_QUEUE, (unknown, unserved, unshown), strict=True):
                unread += [(fact, where, line) for line in lines]
            found[group] = Queue(group, scheduler, ecn, rate_bps)
        everything = (
            found.get(number, Queue(number, Scheduler("ets", 0)))
            for number in range(PRIORITY_COUNT)
        )
        return tuple(everything), tuple(unread)

    def _buffers(self, name: str | None) -> tuple[tuple[IngressBuffer, ...], tuple[Unread, ...]]:
        if name is None or name.startswith("default-"):
            return (), ()
        policy = find(self.sections, f"policy-map type queuing {name}")
        if policy is None:
            why = f"policy-map type queuing {name} is not shown"
            return (), ((Fact.BUFFER, "of all priorities", why),)
        buffers = []
        unread: list[Unread] = []
        for entry in policy.children:
            group = _group(entry, "c-in-q")
            for child in entry.children:
                match = _PAUSE.match(child.text)
                if match and group is not None:
                    size, xoff, xon = (int(figure) for figure in match.groups())
                    buffers.append(IngressBuffer(group, size, xoff, xon))
                elif child.text.startswith("pause"):
                    unread.append((Fact.BUFFER, f"in {entry.text} of {name}", child.text))
        return tuple(sorted(buffers, key=lambda buffer: buffer.priority)), tuple(unread)


def _class_name(entry: Section) -> str:
    words = entry.text.split()
    return words[3] if words[1:2] == ["type"] else words[1]


def _group(entry: Section, prefix: str) -> int | None:
    """qos-group of ``class type ... <prefix>N`` or ``<prefix>-default``."""
    match = re.search(rf" {prefix}(\d|-default)$", entry.text)
    if not match:
        return None
    return 0 if match[1] == "-default" else int(match[1])


def _scheduler(entry: Section) -> tuple[Scheduler, list[str]]:
    """How a queue is served, and a line that does not say it in percent."""
    for child in entry.children:
        if child.text.split()[0] == "priority":
            return Scheduler("strict"), []
        if child.text.startswith("bandwidth "):
            match = _SHARE.fullmatch(child.text)
            return Scheduler("ets", int(match[1]) if match else 0), [] if match else [child.text]
    return Scheduler("ets", 0), []


def _max_rate(entry: Section) -> tuple[int, list[str]]:
    """What a shaper lets through in bits a second, 0 for none; lines that do not say it so."""
    for child in entry.children:
        if not child.text.startswith("shape "):
            continue
        match = _SHAPE.fullmatch(child.text)
        if match is None:
            return 0, [child.text]
        return int(match[1]) * _RATE_UNIT[match[2]], []
    return 0, []


def _ecn(entry: Section) -> tuple[Ecn | None, list[str]]:
    """ECN of a queue, and lines whose thresholds are not shown in bytes."""
    for child in entry.children:
        if not child.text.startswith("random-detect"):
            continue
        if "ecn" not in child.text.split():
            return None, []
        match = _WRED.match(child.text)
        if not match or match[2] not in _UNIT or match[4] not in _UNIT:
            return None, [child.text]
        kmin, kmax = int(match[1]) * _UNIT[match[2]], int(match[3]) * _UNIT[match[4]]
        return Ecn(kmin, kmax, int(match[5])), []
    return None, []
