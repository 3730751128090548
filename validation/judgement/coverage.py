"""What a suite must have seen beside what it saw: pairs, links, counters. No vacuous pass.

``SUITE.coverage`` has one check for each count of the plan. It is the net below all others:
what is missing and was named by none of them fails here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabric.site import Site
from fabric.topology import PortRef
from validation.criteria import Check, Judge
from validation.judgement.losses import DROPS, ERRORS, ERRORS_OF_HOSTS, RETRANSMISSIONS
from validation.judgement.observation import Observation
from validation.judgement.paths import used_uplinks
from validation.traffic import Counted

# What fewer of may be seen for a reason that the check says: paths that ECMP did not choose,
# hosts without TCP's programs, counters that a device does not have.
MAY_BE_FEWER = frozenset({"links", "uplinks", "tcp pairs", "counters"})
_EVIDENCE = {"devices": "states", "links": "counters", "uplinks": "counters"}
_MAX_LISTED = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """One counter that a judgement looks at: any of these names (with priority) at a port."""

    port: PortRef
    names: tuple[tuple[str, int | None], ...]

    def __str__(self) -> str:
        return f"{self.port} {self.names[0][0]}"


def wanted_counters(site: Site, families: Sequence[Counted]) -> Iterator[Wanted]:
    """Counters of every cabled port that a judgement of these families looks at."""
    priority, hosts = site.intent.roce.priority, frozenset(site.topology.hosts)
    for device in site.devices:
        single: list[str] = []
        if "cables" in families:
            single += ("tx_packets", "rx_packets")
        if "retransmissions" in families and device in hosts:
            single += RETRANSMISSIONS
        if "errors" in families:
            single += (n for n in ERRORS if device in hosts or n not in ERRORS_OF_HOSTS)
        for port in site.topology.ports_of[device]:
            yield from (Wanted(port, ((name, None),)) for name in single)
            if "losses" in families:
                for _, fine, coarse in DROPS:
                    yield Wanted(port, ((fine, priority), (coarse, None)))


def counted(site: Site, *families: Counted) -> tuple[Counted, ...]:
    """These and cables, losses, and what was sent again, where the profile allows no loss."""
    may_lose = site.document.certify.profile == "lossy-tolerant"
    again: tuple[Counted, ...] = () if may_lose else ("retransmissions",)
    return ("cables", "losses", *again, *families)


def counters(site: Site, *families: Counted) -> dict[str, int]:
    """The entry of a plan's ``expected`` for these families."""
    return {"counters": sum(1 for _ in wanted_counters(site, families))}


def seen(observation: Observation, checks: Sequence[Check]) -> dict[str, int]:
    """What the traffic and the counters covered, under the names of the plan's ``expected``."""
    steps = observation.measured.values()
    flows = [flow for step in steps for flow in step.flows]
    counts = {
        "devices": sum(
            name in observation.states and name not in observation.unread
            for name in observation.plan.snapshot
        ),
        "links": sum(c.verdict == "PASS" for c in checks if c.id.endswith(".link")),
        "directions": len({(flow.source, flow.target) for flow in flows if flow.role == "roce"}),
        "pairs": sum(flow.role == "roce" for flow in flows),
        "tcp pairs": sum(flow.role == "default" for flow in flows),
        "uplinks": len(used_uplinks(observation)),
        "steps": len(observation.measured),
        "receivers": len({flow.target for flow in flows}),
        "repetitions": _repetitions(observation),
        "counters": sum(_known(observation, wanted) for wanted in _wanted(observation)),
    }
    return {name: counts[name] for name in observation.plan.expected}


def coverage_checks(
    observation: Observation, counts: Mapping[str, int], checks: Sequence[Check]
) -> list[Check]:
    """``coverage``: one check for each count; FAIL where fewer were seen and nothing says why."""
    named = next((check for check in checks if check.verdict in ("FAIL", "NOT_RUN")), None)
    return [
        _coverage(observation, what, counts[what], expected, named)
        for what, expected in observation.plan.expected.items()
    ]


def _coverage(
    observation: Observation, what: str, count: int, expected: int, named: Check | None
) -> Check:
    judge = Judge(observation, "counters" if what == "counters" else _EVIDENCE.get(what, "flows"))
    if count >= expected:
        return judge.at_least("coverage", what, count, expected, what)
    said = f"{count:,} of {expected:,} {what} were seen"
    if observation.not_run:
        step, why = next(iter(observation.not_run.items()))
        return judge.not_run("coverage", what, f"{said}: {step}: {why}")
    excused, at = True, None
    if what == "counters":
        excused, at, why = _absent(observation)
        said = f"{said}: {why}"
    elif what in MAY_BE_FEWER:
        said = f"{said}; `{observation.plan.suite}` names those that were not"
    if named is not None or (what in MAY_BE_FEWER and excused):
        return judge.skipped("coverage", what, said)
    return judge.failed("coverage", what, said, at or "")


def _wanted(observation: Observation) -> Iterator[Wanted]:
    if observation.plan.counted:
        yield from wanted_counters(observation.site, observation.plan.counted)


def _known(observation: Observation, wanted: Wanted) -> bool:
    deltas = (observation.deltas.get(*wanted.port, *name) for name in wanted.names)
    return any(delta is not None and delta.known for delta in deltas)


def _absent(observation: Observation) -> tuple[bool, PortRef | None, str]:
    """Whether every absent counter has its reason; the first that has none; some by name."""
    excuses: dict[str, str] = {}
    bare: list[Wanted] = []
    for wanted in _wanted(observation):
        if _known(observation, wanted):
            continue
        said = _why(observation, wanted)
        if said:
            excuses.setdefault(f"{wanted.port.device}: {said}", said)
        else:
            bare.append(wanted)
    lines = [f"{wanted} is not known" for wanted in bare] or list(excuses)
    more = f" and {len(lines) - _MAX_LISTED} more" if len(lines) > _MAX_LISTED else ""
    return not bare, bare[0].port if bare else None, "; ".join(lines[:_MAX_LISTED]) + more


def _why(observation: Observation, wanted: Wanted) -> str:
    """What the device's module said; nothing excuses a counter that was cleared."""
    for name, priority in wanted.names:
        if observation.deltas.get(*wanted.port, name, priority) is not None:
            return ""
        said = observation.deltas.why_missing(wanted.port.device, name, wanted.port.port, priority)
        if said:
            return said
    return ""


def _repetitions(observation: Observation) -> int:
    """How often the step that ran least often was repeated."""
    return min(
        (
            sum(step.id in observation.measured for step in steps)
            for _, steps in observation.plan.repeated_steps()
        ),
        default=0,
    )
