"""What a rule is, and the registry that holds them in the order of their definition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from fabric.audit.findings import Finding, Severity, Skip
from fabric.counters import CounterSnapshot
from fabric.devices.registry import module_of, target_of
from fabric.errors import PaisoarError
from fabric.qos import DSCP_COUNT, DeviceQos, PortFacts, PortQos
from fabric.site import Site
from fabric.topology import Link, PortRef
from fabric.unread import Fact, unseen

# NIC families that are software: they have no pause, no ECN and no counters of it.
SOFTWARE_FAMILIES = frozenset({"rxe", "siw"})
# Stands for the other end of a cable that nobody knows.
NOBODY = PortRef("the other end", "not known")


@dataclass(frozen=True)
class Wanted:
    """What rules ask of the intent again and again, worked out once a site."""

    site: Site

    @cached_property
    def roce(self) -> int:
        """Priority, queue and traffic class of RoCE."""
        return self.site.intent.roce.priority

    @cached_property
    def cnp(self) -> int:
        """Priority of congestion notifications."""
        return self.site.intent.cnp.priority

    @cached_property
    def default(self) -> int:
        """Priority of everything else."""
        return self.site.intent.default.priority

    @cached_property
    def lossless(self) -> frozenset[int]:
        """Priorities that PFC is to protect."""
        return frozenset(c.priority for c in self.site.intent.classes.values() if c.lossless)

    @cached_property
    def dscps(self) -> dict[str, tuple[int, ...]]:
        """DSCPs of every class by its name; the default class has all that are left."""
        classes = self.site.intent.classes
        taken = {dscp for cls in classes.values() for dscp in cls.dscp}
        rest = tuple(dscp for dscp in range(DSCP_COUNT) if dscp not in taken)
        return {n: rest if cls.role == "default" else cls.dscp for n, cls in classes.items()}

    @cached_property
    def dscps_of_role(self) -> dict[str, tuple[int, ...]]:
        """The same by role."""
        classes = self.site.intent.classes
        return {classes[name].role: dscps for name, dscps in self.dscps.items()}


@dataclass(frozen=True)
class Subject:
    """One device under audit.

    ``states`` holds what every device does, so that a rule can look at the
    other end of a cable; ``baseline`` what this device did when the site was
    last certified, None where it never was. ``odd`` says what about it differs
    from most devices of its kind; ``counters`` is None where they were not read.
    """

    site: Site
    live: DeviceQos
    intended: DeviceQos
    states: Mapping[str, DeviceQos]
    baseline: DeviceQos | None
    wanted: Wanted
    odd: tuple[str, ...] = ()
    counters: CounterSnapshot | None = None

    @cached_property
    def pairs(self) -> tuple[tuple[PortQos, PortQos], ...]:
        """Every cabled port as it is and as it should be; missing ones are left out."""
        live = {port.name: port for port in self.live.ports}
        return tuple((live[p.name], p) for p in self.intended.ports if p.name in live)

    @cached_property
    def _deviating(self) -> tuple[tuple[PortQos, PortQos], ...]:
        return () if self.bare else tuple(pair for pair in self.pairs if pair[0] != pair[1])

    def ports(self) -> Iterator[tuple[PortQos, PortQos]]:
        """The ports of ``pairs`` that do not do exactly what they should.

        None of a switch that nobody has configured: that is one fault, not one
        of every port and rule.
        """
        return iter(self._deviating)

    @cached_property
    def bare(self) -> bool:
        """A switch on which no cabled port pauses a lossless priority or marks a queue.

        Ports that do not show whether they do are no evidence of it.
        """
        wanted = self.wanted.lossless
        shown = [
            live
            for live, _ in self.pairs
            if not (self.unseen(live.name, Fact.PFC) or self.unseen(live.name, Fact.ECN))
        ]
        return (
            self.live.kind == "switch"
            and bool(wanted and shown)
            and not any(
                wanted.intersection(live.pfc_priorities) or any(queue.ecn for queue in live.queues)
                for live, _ in self.pairs
            )
        )

    @cached_property
    def _facts(self) -> dict[str, PortFacts]:
        return {facts.port: facts for facts in self.live.facts}

    def facts(self, port: str) -> PortFacts:
        """What this port is seen to be."""
        return self._facts.get(port) or PortFacts(port)

    def link(self, port: str) -> Link | None:
        """The port's cable; None where nobody knows it."""
        return self.site.topology.link_of.get(PortRef(self.live.device, port))

    def peer(self, port: str) -> PortRef:
        """The other end of a port's cable; ``NOBODY`` where that is not known."""
        if self.link(port) is None:
            return NOBODY
        return self.site.topology.peer(PortRef(self.live.device, port))

    def far_end(self, port: str) -> tuple[PortRef, PortQos | None]:
        """The other end of a port's cable, and what it does where that was read."""
        peer = self.peer(port)
        state = self.states.get(peer.device)
        return peer, state.port(peer.port) if state else None

    def far_facts(self, port: str) -> tuple[PortRef, PortFacts]:
        """The other end of a port's cable, and what it is seen to be."""
        peer = self.peer(port)
        state = self.states.get(peer.device)
        return peer, state.facts_of(peer.port) if state else PortFacts(peer.port)

    def ends(self, port: str, shows: Shows, facts: tuple[Fact, ...]) -> tuple[str, ...]:
        """What this port and the other end of its cable do, a line each.

        ``facts`` are what the words are about: an end that hides one of them says so.
        """
        here, peer = PortRef(self.live.device, port), self.peer(port)
        lines = []
        for end in (here, peer):
            state = self.states.get(end.device)
            held = state.port(end.port) if state else None
            if end is NOBODY:
                said = "no cable is known"
            elif state is None or held is None:
                said = "not read"
            else:
                hidden = (unseen(state.unread, end.port, fact) for fact in facts)
                why = next(filter(None, hidden), "")
                seen = state.facts_of(end.port)
                said = f"not shown ({why})" if why else shows(self.wanted, held, seen)
            lines.append(f"{end.device if end is NOBODY else end}: {said}")
        return tuple(lines)

    def unseen(self, port: str, fact: str) -> str:
        """What the device did not show of this fact of a port; empty where it did."""
        return unseen(self.live.unread, port, fact)

    def skip(self, rule_id: str, port: str, *facts: str) -> Skip | None:
        """A skip of this rule where one of these facts of the port is not shown."""
        for fact in facts:
            if unseen := self.unseen(port, fact):
                return Skip(rule_id, self.live.device, unseen)
        return None

    @cached_property
    def max_lossless(self) -> int | None:
        """How many lossless classes the hardware can hold; None where that is not known."""
        try:
            module = module_of(self.site, self.live.device)
            return module.capabilities(target_of(self.site, self.live.device)).max_lossless_classes
        except PaisoarError:
            return None

    def is_first(self, port: str) -> bool:
        """Whether this end of a cable between two devices is the one that reports it."""
        return PortRef(self.live.device, port) < self.peer(port)


@dataclass(frozen=True, slots=True)
class Fault:
    """What a rule found. ``port`` is empty for the whole device.

    ``fix`` mends it where the device's own commands do not.
    """

    message: str
    port: str = ""
    evidence: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()


Check = Callable[[Subject], Iterator[Fault | Skip]]
# What an end of a cable does, in words, as far as one rule is concerned with it.
Shows = Callable[[Wanted, PortQos, PortFacts], str]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: a stable id, how bad a fault is, what it costs in practice.

    ``checks`` are the numbers of the checks of ``docs/audit.md`` that it covers,
    ``facts`` what it judges of a port: where that is not shown, it skips. ``fields``
    are the fields of ``PortQos`` (``nic.`` of ``Nic``) that mend it. ``see``
    and ``mend`` tell how to look and what to do by hand, ``source`` where that was
    read. ``shows`` words what either end of a cable does, for the evidence of a fault
    of a port; None where the rule is about one device alone.
    """

    id: str
    severity: Severity
    cost: str
    check: Check
    checks: tuple[int, ...] = ()
    facts: tuple[Fact, ...] = ()
    fields: tuple[str, ...] = ()
    see: str = ""
    mend: str = ""
    source: str = ""
    needs_counters: bool = field(default=False)
    shows: Shows | None = None

    @property
    def what(self) -> str:
        """What holds where the rule finds nothing."""
        return (self.check.__doc__ or "").strip().splitlines()[0]


REGISTRY: dict[str, Rule] = {}


def remarks_only() -> Iterator[Fault | Skip]:
    """The check of a rule whose faults only a device's own module can see: its remarks."""
    return iter(())


def rule(
    id_: str,
    severity: Severity,
    cost: str,
    *,
    checks: tuple[int, ...] = (),
    facts: tuple[Fact, ...] = (),
    fields: tuple[str, ...] = (),
    see: str = "",
    mend: str = "",
    source: str = "",
    needs_counters: bool = False,
    shows: Shows | None = None,
) -> Callable[[Check], Check]:
    """Register a check under this id."""

    def register(check: Check) -> Check:
        REGISTRY[id_] = Rule(
            id_,
            severity,
            cost,
            check,
            checks,
            facts,
            fields,
            see,
            mend,
            source,
            needs_counters,
            shows,
        )
        return check

    return register


FIX = ("paisoar plan", "paisoar provision")


def finding(rule_: Rule, device: str, fault: Fault) -> Finding:
    """The finding that this fault becomes."""
    return Finding(
        rule_.id,
        rule_.severity,
        device,
        fault.port,
        f"{fault.message}. {rule_.cost}",
        fault.evidence,
        fault.fix,
    )


def numbers(values: Iterator[int] | tuple[int, ...] | list[int] | frozenset[int]) -> str:
    """``3, 4`` for people; ``none`` for none."""
    return ", ".join(map(str, sorted(values))) or "none"


def first(wrong: list[str], summary: str) -> str:
    """The only one of several faults, or how many there are and one of them."""
    return wrong[0] if len(wrong) == 1 else f"{len(wrong)} {summary}, e.g. {wrong[0]}"
