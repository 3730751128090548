"""A plan as people and programs read it before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from validation.traffic import Step, TrafficPlan


@dataclass(frozen=True, slots=True)
class Outline:
    """One suite's plan in numbers.

    ``pairs`` counts each pair once, however many rounds it is in; ``at_once`` is the most
    that send at one time, ``hosts_at_once`` the hosts that they are on.
    """

    suite: str
    rounds: int
    pairs: int
    flows: int
    sizes_bytes: tuple[int, ...]
    traffic_us: float
    at_once: int
    hosts_at_once: int
    expected: Mapping[str, int]
    note: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; ``steps`` is what was called so before ``rounds``."""
        return {
            "suite": self.suite,
            "steps": self.rounds,
            "rounds": self.rounds,
            "pairs": self.pairs,
            "flows": self.flows,
            "sizes_bytes": list(self.sizes_bytes),
            "seconds": self.traffic_us / 1e6,
            "traffic_us": self.traffic_us,
            "concurrency": self.at_once,
            "hosts_at_once": self.hosts_at_once,
            "expected": dict(self.expected),
            "note": self.note,
        }


def outline(plan: TrafficPlan, traffic_us: float) -> Outline:
    """What a suite sends; ``traffic_us`` as the environment carries it."""
    streams = [stream for step in plan.steps for stream in step.streams]
    return Outline(
        suite=plan.suite,
        rounds=len(plan.steps),
        pairs=len({pair for stream in streams for pair in stream.pairs}),
        flows=sum(len(stream.pairs) for stream in streams),
        sizes_bytes=tuple(sorted({stream.message_bytes for stream in streams})),
        traffic_us=traffic_us,
        at_once=max((sum(1 for _ in step.pairs()) for step in plan.steps), default=0),
        hosts_at_once=max((len(_hosts(step)) for step in plan.steps), default=0),
        expected=plan.expected,
        note=plan.impossible or plan.note,
    )


def rounds(plan: TrafficPlan) -> Sequence[Mapping[str, Any]]:
    """Every round: its name, and of each stream pairs, size, messages and class."""
    return [
        {
            "round": step.id,
            "seconds": step.duration_us / 1e6,
            "streams": [
                {
                    "class": stream.role,
                    "kind": stream.kind,
                    "pairs": [[str(source), str(target)] for source, target in stream.pairs],
                    "message_bytes": stream.message_bytes,
                    "messages": stream.messages,
                    "queue_pairs": stream.qps,
                    "gap_us": stream.gap_us,
                    "messages_per_s": stream.messages_per_s,
                }
                for stream in step.streams
            ],
        }
        for step in plan.steps
    ]


def _hosts(step: Step) -> set[str]:
    return {end.device for pair in step.pairs() for end in pair}
