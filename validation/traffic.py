"""What a suite sends and what a probe saw; plain values between the two.

A plan is steps, a step is streams that begin together (the barrier), a stream
is one shape of traffic between many pairs. Steps follow each other; nothing of
one step runs into the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from fabric.devices.registry import expected_qos
from fabric.intended import roce_tos
from fabric.site import EvidenceClass, Site
from fabric.topology import PortRef

Pair = tuple[PortRef, PortRef]
Role = Literal["roce", "default"]
# Families of counters that a judgement looks at.
Counted = Literal["cables", "losses", "retransmissions", "errors"]
_AGAIN = "#"


@dataclass(frozen=True, slots=True)
class Stream:
    """One shape of traffic from each pair's first port to its second.

    ``role`` names the intent's class. ``messages`` None: until the step ends.
    A ``ping`` sends the next message only when the peer has answered. The role
    ``default`` is plain TCP, on ``qps`` connections. With ``gap_us`` a stream bursts: each
    queue pair is silent for so long after every message, which makes ``messages_per_s``
    where nothing is in its way.
    """

    pairs: tuple[Pair, ...]
    message_bytes: int
    messages: int | None = None
    qps: int = 1
    role: Role = "roce"
    kind: Literal["stream", "ping"] = "stream"
    gap_us: float = 0.0
    messages_per_s: int = 0

    def packets(self, payload_bytes: int) -> int | None:
        """Data packets that one pair sends at least; None where the step's end decides."""
        if self.messages is None:
            return None
        return self.messages * self.qps * -(-self.message_bytes // payload_bytes)


@dataclass(frozen=True, slots=True)
class Step:
    """Streams with one synchronised start. Goodput counts from ``warmup_us`` on."""

    id: str
    streams: tuple[Stream, ...]
    duration_us: float
    warmup_us: float = 0.0
    sample_us: float = 10.0

    def pairs(self) -> Iterator[Pair]:
        """Every pair of every stream, in order."""
        for stream in self.streams:
            yield from stream.pairs

    @property
    def base(self) -> str:
        """Its id without the number of its repetition."""
        return self.id.partition(_AGAIN)[0]


@dataclass(frozen=True)
class TrafficPlan:
    """All that a suite sends, what it reads before and after, and what that covers.

    ``snapshot`` names the devices whose counters are read on both sides of the
    traffic, ``counted`` which of them are judged. ``expected`` counts what must be seen
    (``pairs``, ``receivers``, ``counters``, ...): a certificate shows it beside what was
    seen. ``impossible`` says why there is nothing to send, where that is so, ``note`` what a
    big site's plan leaves out.
    """

    suite: str
    steps: tuple[Step, ...]
    snapshot: tuple[str, ...]
    expected: Mapping[str, int]
    impossible: str = ""
    note: str = ""
    counted: tuple[Counted, ...] = ()

    def repeated_steps(self) -> tuple[tuple[Step, tuple[Step, ...]], ...]:
        """Each step, the first time it is sent, with all of its repetitions."""
        found: dict[str, list[Step]] = {}
        for step in self.steps:
            found.setdefault(step.base, []).append(step)
        return tuple((steps[0], tuple(steps)) for steps in found.values())

    def times(self, count: int) -> TrafficPlan:
        """All of it so many times, one after the other: ``round1``, ``round1#2``, ..."""
        again = tuple(
            replace(step, id=f"{step.id}{_AGAIN}{number}")
            for number in range(2, count + 1)
            for step in self.steps
        )
        each = {"steps", "pairs"}
        expected = {what: n * count if what in each else n for what, n in self.expected.items()}
        return replace(
            self, steps=(*self.steps, *again), expected={**expected, "repetitions": count}
        )

    @property
    def traffic_us(self) -> float:
        """Time for which traffic flows, all steps together."""
        return sum(step.duration_us for step in self.steps)


@dataclass(frozen=True)
class FlowMeasure:
    """What one pair of one stream achieved.

    ``latency_us``: half round trips of a ping. ``series_bps``: goodput over each
    sample of the step. ``completed`` counts whole messages.
    """

    source: PortRef
    target: PortRef
    role: Role
    kind: Literal["stream", "ping"]
    goodput_bps: float
    completed: int
    latency_us: NDArray[np.float64]
    series_bps: NDArray[np.float64]

    @property
    def name(self) -> str:
        """``host1:ens1f0 -> host2:ens1f0``."""
        return pair_name(self.source, self.target)


@dataclass(frozen=True)
class QueueMeasure:
    """Egress queue of one switch port during one step, in bytes."""

    port: PortRef
    mean_bytes: float
    p99_bytes: float
    max_bytes: float
    series_bytes: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Transcript:
    """What one program of a pair was asked and said; ``exit_status`` is empty where it hung."""

    pair: Pair
    host: str
    command: tuple[str, ...]
    exit_status: str
    stdout: str
    stderr: str


@dataclass(frozen=True)
class StepMeasure:
    """What one step saw; ``not_run`` holds the reason where it did not happen.

    ``lost`` holds the reason for each pair that brought no result although the step ran,
    ``transcripts`` what programs on real hosts said.
    """

    step: str
    flows: tuple[FlowMeasure, ...] = ()
    queues: tuple[QueueMeasure, ...] = ()
    traffic_us: float = 0.0
    sample_us: float = 10.0
    notes: tuple[str, ...] = field(default=())
    not_run: str = ""
    lost: Mapping[Pair, str] = field(default_factory=dict)
    transcripts: tuple[Transcript, ...] = ()

    @cached_property
    def by_pair(self) -> dict[Pair, FlowMeasure]:
        """Flows of RDMA by source and target."""
        return self._of("roce")

    @cached_property
    def tcp_by_pair(self) -> dict[Pair, FlowMeasure]:
        """Flows of plain TCP by source and target."""
        return self._of("default")

    def _of(self, role: Role) -> dict[Pair, FlowMeasure]:
        return {(flow.source, flow.target): flow for flow in self.flows if flow.role == role}

    def flow(self, pair: Pair, role: Role) -> FlowMeasure | None:
        """One pair's flow of a class; None where it brought no result."""
        return (self.by_pair if role == "roce" else self.tcp_by_pair).get(pair)


class Probe(Protocol):
    """Carries a step's traffic on real devices or on what stands for them."""

    @property
    def name(self) -> str:
        """Short name, kept with the results."""

    @property
    def evidence_class(self) -> EvidenceClass:
        """What this probe's results may be called."""

    @property
    def versions(self) -> Mapping[str, str]:
        """What it measures with, kept with the results; known once prepared."""

    @property
    def settle_s(self) -> float:
        """Seconds after which every device's counters show traffic that has ended."""

    def prepare(self) -> None:
        """Whatever takes time before the first step. Raises AccessError as :meth:`run` does."""

    def run(self, step: Step) -> StepMeasure:
        """Carry one step. Raises AccessError where traffic cannot be started."""


def application_tos(site: Site, port: PortRef) -> int | None:
    """The TOS byte that applications must set themselves on this NIC.

    None where its driver has a setting for what verbs send, and the host makes it.
    """
    expected = expected_qos(site, port.device).port(port.port)
    if expected is None or expected.nic is None or expected.nic.verbs_traffic_class is not None:
        return None
    return roce_tos(site.intent)


def pair_name(source: PortRef, target: PortRef) -> str:
    """How a pair is written in checks and tables."""
    return f"{source} -> {target}"


def pair_of(name: str) -> Pair:
    """The inverse of :func:`pair_name`. ValueError where it is no pair's name."""
    source, arrow, target = name.partition(" -> ")
    if not arrow:
        raise ValueError(f"{name!r} is not a pair of ports")
    return PortRef.parse(source), PortRef.parse(target)


def host_rails(site: Site) -> tuple[tuple[PortRef, ...], ...]:
    """NIC ports by rail; a rail with a single port has nobody to talk to and is left out."""
    return tuple(rail for rail in site.topology.rails() if len(rail) > 1)
