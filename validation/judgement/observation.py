"""Everything that a judgement may look at, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from fabric.counters import CounterSnapshot
from fabric.intent import Certify
from fabric.qos import DeviceQos
from fabric.site import EvidenceClass, Site
from fabric.topology import PortRef
from validation.counters import Deltas
from validation.traffic import StepMeasure, TrafficPlan


@dataclass(frozen=True)
class Observation:
    """One suite's plan, what the probe saw, and the counters around it.

    ``unread`` maps a device that did not answer to what came back. ``evidence``
    maps a kind of evidence (``flows``, ``latency``, ``counters``, ``states``) to
    the SHA-256 of the bytes that are kept of it.
    """

    site: Site
    plan: TrafficPlan
    steps: tuple[StepMeasure, ...]
    before: Mapping[str, CounterSnapshot]
    after: Mapping[str, CounterSnapshot]
    states: Mapping[str, DeviceQos]
    evidence_class: EvidenceClass
    unread: Mapping[str, str] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)

    @property
    def criteria(self) -> Certify:
        """The site's limits."""
        return self.site.document.certify

    @property
    def lossless(self) -> bool:
        """Whether the site's profile promises that nothing is lost."""
        return self.criteria.profile != "lossy-tolerant"

    @property
    def priority(self) -> int:
        """Priority of RDMA traffic, the same on every device."""
        return self.site.intent.roce.priority

    @cached_property
    def deltas(self) -> Deltas:
        """What the counters moved by."""
        return Deltas.between(self.before, self.after)

    @cached_property
    def measured(self) -> dict[str, StepMeasure]:
        """Steps that ran, by their id."""
        return {step.step: step for step in self.steps if not step.not_run}

    @cached_property
    def not_run(self) -> dict[str, str]:
        """Steps that did not run, with the reason."""
        seen = {step.step: step.not_run for step in self.steps}
        return {
            step.id: seen.get(step.id, "the run ended before")
            for step in self.plan.steps
            if step.id not in self.measured
        }

    @property
    def traffic_us(self) -> float:
        """Time for which traffic really flowed."""
        return sum(step.traffic_us for step in self.measured.values())

    def cabled(self, device: str) -> tuple[PortRef, ...]:
        """The device's ports that the site knows a cable of."""
        return self.site.topology.ports_of[device]
