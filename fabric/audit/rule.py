"""What a rule is, and the registry that holds them in the order of their definition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fabric.audit.findings import Finding, Severity, Skip
from fabric.qos import DeviceQos, PortQos
from fabric.site import Site
from fabric.topology import PortRef


@dataclass(frozen=True)
class Subject:
    """One device under audit.

    ``states`` holds what every device does, so that a rule can look at the
    other end of a cable; ``baseline`` what this device did when the site was
    last certified, None where it never was.
    """

    site: Site
    live: DeviceQos
    intended: DeviceQos
    states: Mapping[str, DeviceQos]
    baseline: DeviceQos | None

    def ports(self) -> Iterator[tuple[PortQos, PortQos]]:
        """Every cabled port as it is and as it should be; missing ones are left out."""
        for intended in self.intended.ports:
            live = self.live.port(intended.name)
            if live is not None:
                yield live, intended

    def far_end(self, port: str) -> tuple[PortRef, PortQos | None]:
        """The other end of a port's cable, and what it does where that was read."""
        peer = self.site.topology.peer(PortRef(self.live.device, port))
        state = self.states.get(peer.device)
        return peer, state.port(peer.port) if state else None

    def unseen(self, port: str, fact: str) -> str:
        """What the device did not show of this fact of a port; empty where it did."""
        start = f"{port}: {fact}"
        return next((entry for entry in self.live.unread if entry.startswith(start)), "")


@dataclass(frozen=True, slots=True)
class Fault:
    """What a rule found. ``port`` is empty for the whole device."""

    message: str
    port: str = ""
    evidence: tuple[str, ...] = ()


Check = Callable[[Subject], Iterator[Fault | Skip]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: a stable id, how bad a fault is, what it costs in practice."""

    id: str
    severity: Severity
    cost: str
    check: Check


REGISTRY: dict[str, Rule] = {}


def rule(id_: str, severity: Severity, cost: str) -> Callable[[Check], Check]:
    """Register a check under this id."""

    def register(check: Check) -> Check:
        REGISTRY[id_] = Rule(id_, severity, cost, check)
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
        FIX,
    )
