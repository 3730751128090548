"""Preflight: everything answers, every pair reaches the other, in the right class.

Every pair of a rail sends a few messages of full-sized RDMA packets both ways, in
circle scheduled rounds. That is enough to tell a wrong map, MTU or cable from a right
one, and short enough to run before everything else.
"""

from __future__ import annotations

from fabric.site import Site
from fabric.topology import PortRef
from validation.criteria import Check, Judge
from validation.judgement import causes
from validation.judgement.coverage import counters
from validation.judgement.losses import cable_checks, error_checks, loss_checks
from validation.judgement.observation import Observation
from validation.judgement.paths import link_checks, priority_checks
from validation.suites.pairs import both_ways, pair_rounds, rail_pairs, sample_note
from validation.traffic import Counted, Step, Stream, TrafficPlan, pair_name

NAME = "preflight"
_COUNTED: tuple[Counted, ...] = ("cables", "losses", "errors")
PACKETS = 4
# Few, so that the simulator is quick; perftest sends no fewer.
MESSAGES = 5
# Real traffic meets over TCP first, some fifty packets a pair. A pair that is marked
# wrongly must stand out from those of all pairs together.
REAL_MESSAGES = 5000
# As many as it takes beside some fifty packets of TCP a pair: software moves few a second.
LAB_MESSAGES = 500
DURATION_US = 150.0


def plan(site: Site) -> TrafficPlan:
    """One step a round; each pair sends messages of full packets in each direction."""
    size = PACKETS * site.intent.mtu.roce
    steps = tuple(
        Step(
            id=f"round{number}",
            streams=(Stream(both_ways(pairs), message_bytes=size, messages=messages(site)),),
            duration_us=DURATION_US,
        )
        for number, pairs in enumerate(pair_rounds(site), start=1)
    )
    return TrafficPlan(
        suite=NAME,
        steps=steps,
        snapshot=tuple(site.devices),
        expected={
            "devices": len(site.devices),
            "links": len(site.topology.links),
            "directions": 2 * len(rail_pairs(site)),
            **counters(site, *_COUNTED),
        },
        impossible="" if steps else "a site with a single host has nobody to talk to",
        note=sample_note(site),
        counted=_COUNTED,
    )


def messages(site: Site) -> int:
    """Messages that each pair sends in each direction."""
    by_environment = {"twin": MESSAGES, "lab": LAB_MESSAGES}
    return by_environment.get(site.environment, REAL_MESSAGES)


def judge(observation: Observation) -> tuple[Check, ...]:
    """Readable, reach, mtu, priority, link, errors, loss and cable checks."""
    return (
        *_readable(observation),
        *_mtu(observation),
        *_reach(observation),
        *priority_checks(observation),
        *link_checks(observation),
        *error_checks(observation),
        *loss_checks(observation),
        *cable_checks(observation),
    )


def _readable(observation: Observation) -> list[Check]:
    judging = Judge(observation, "states")
    checks = []
    for device in observation.plan.snapshot:
        answer = observation.unread.get(device)
        if answer is None and device not in observation.states:
            answer = "its configuration was not read"
        good = answer is None
        checks.append(
            judging.at_least(
                "readable", device, int(good), 1, "of 1", reason=answer or "", at=device
            )
        )
    return checks


def _mtu(observation: Observation) -> list[Check]:
    """Every port passes a host's largest packet, in the RDMA class too."""
    judging = Judge(observation, "states")
    wanted = observation.site.intent.mtu.host
    checks = []
    for device in observation.plan.snapshot:
        if device not in observation.states:
            continue
        ports = [(ref, causes.port_state(observation, ref)) for ref in observation.cabled(device)]
        absent = [ref for ref, port in ports if port is None]
        if absent:
            checks.append(
                judging.failed(
                    "mtu", device, f"{absent[0]}: the device shows no such port", absent[0]
                )
            )
            continue
        sizes = [
            (min(port.mtu_bytes, port.class_mtu_bytes[observation.priority]), ref)
            for ref, port in ports
            if port is not None
        ]
        smallest, ref = min(sizes)
        checks.append(
            judging.at_least(
                "mtu",
                device,
                smallest,
                wanted,
                "bytes",
                reason=f"{ref} passes packets of {smallest:,} bytes, hosts send {wanted:,}",
                at=ref,
            )
        )
    return checks


def _reach(observation: Observation) -> list[Check]:
    judging = Judge(observation, "flows")
    wanted = messages(observation.site)
    sent = f"{wanted * PACKETS:,} packets of {observation.site.intent.mtu.roce} bytes"
    checks = []
    for step in observation.plan.steps:
        measure = observation.measured.get(step.id)
        for source, target in step.pairs():
            subject = pair_name(source, target)
            if measure is None:
                checks.append(judging.not_run("reach", subject, observation.not_run[step.id]))
                continue
            flow = measure.by_pair.get((source, target))
            completed = flow.completed if flow is not None else 0
            cause: str = ""
            at: PortRef | str = ""
            if completed < wanted:
                cause, at = causes.on_path(observation, source, target)
                at = "" if cause == causes.UNKNOWN else at
                cause = measure.lost.get((source, target), cause)
            checks.append(
                judging.at_least(
                    "reach",
                    subject,
                    completed,
                    wanted,
                    "messages",
                    reason=f"{sent} from {source} do not all reach {target}: {cause}",
                    at=at,
                )
            )
    return checks
