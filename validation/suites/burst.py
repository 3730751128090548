"""Burst: on/off senders to one receiver, micro-bursts and such as fill a buffer.

All senders of a step begin together, so that the first bursts meet in one queue; later
ones drift apart. What they ask for on average is half of the receiver's wire, so that
nothing but buffers, pauses and cuts of rate can keep it from them.

A port that does not pause its host loses packets where that host sends into a queue of the
same switch that is full. So two hosts of every leaf are receivers of the largest bursts, from
all others of that leaf: each port that faces a host is pressed in one step or more.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabric.site import Site
from fabric.topology import PortRef
from validation.criteria import Check, Judge, payload_bps
from validation.judgement import causes
from validation.judgement.congestion import pause_priority_checks
from validation.judgement.coverage import counted, counters
from validation.judgement.losses import cable_checks, loss_checks, retransmission_checks
from validation.judgement.observation import Observation
from validation.schedule import spread
from validation.traffic import Pair, Step, Stream, TrafficPlan, host_rails

NAME = "burst"
# A micro-burst is a few packets; a large one is more than a port's lossless buffer holds.
BURSTS = {"micro": 16384, "large": 262144}
LOAD = 0.5
# Bursts of every sender in a step (draft-calabria-bmwg-ai-fabric-training-bench).
COUNT = 50
MAX_FAN_IN = 32
MAX_RECEIVERS = 4
RECEIVERS_OF_LEAF = 2
SAMPLE_US = 10.0
# What a burst takes beside its own time on the wire: cables, switches and an ACK.
_ROUND_TRIP_US = 20.0


def plan(site: Site) -> TrafficPlan:
    """Steps ``SIZE-N-to-PORT``: N = 2, 4, 8, ... up to 32 or all, for sampled receivers.

    ``large-N-to-PORT`` with the most senders for two receivers of every leaf.
    """
    steps: list[Step] = []
    receivers: dict[PortRef, None] = {}
    for rail in host_rails(site):
        if len(rail) < 3:
            continue
        sampled = [rail[index] for index in spread(len(rail), MAX_RECEIVERS)]
        for target in sampled:
            steps += _growing(site, rail, target)
        pressed = [port for port in _two_of_each_leaf(site, rail) if port not in sampled]
        steps += [_largest(site, rail, target, "large") for target in pressed]
        receivers |= dict.fromkeys([*sampled, *pressed])
    families = counted(site)
    return TrafficPlan(
        suite=NAME,
        steps=tuple(steps),
        snapshot=tuple(site.devices),
        expected={
            "steps": len(steps),
            "receivers": len(receivers),
            "pairs": sum(1 for s in steps for _ in s.pairs()),
            **counters(site, *families),
        },
        counted=families,
        impossible="" if steps else "bursts meet at a receiver of three hosts or more",
    )


def judge(observation: Observation) -> tuple[Check, ...]:
    """``fraction`` a step; nothing lost or sent twice, and only RDMA is paused."""
    checks = [_fraction(observation, step) for step in observation.plan.steps]
    checks += loss_checks(observation)
    if observation.lossless:
        checks += retransmission_checks(observation)
    checks += cable_checks(observation)
    checks += pause_priority_checks(observation)
    return tuple(checks)


def _growing(site: Site, rail: tuple[PortRef, ...], target: PortRef) -> Iterator[Step]:
    """Bursts of both sizes from 2, 4, 8, ... hosts, then from as many as there may be."""
    index = rail.index(target)
    others = (*rail[index + 1 :], *rail[:index])
    most = min(len(others), MAX_FAN_IN)
    for size, message_bytes in BURSTS.items():
        for fan_in in (n for n in (2, 4, 8, 16) if n < most):
            pairs = tuple((others[i], target) for i in spread(len(others), fan_in))
            yield _step(site, f"{size}-{fan_in}-to-{target}", pairs, message_bytes)
        yield _largest(site, rail, target, size)


def _largest(site: Site, rail: tuple[PortRef, ...], target: PortRef, size: str) -> Step:
    """From all others of the receiver's leaf, and from other leaves up to the most at once."""
    leaf = site.topology.peer(target).device
    near = [p for p in rail if p != target and site.topology.peer(p).device == leaf]
    far = [p for p in rail if site.topology.peer(p).device != leaf]
    senders = near + [far[i] for i in spread(len(far), max(0, MAX_FAN_IN - len(near)))]
    pairs = tuple((sender, target) for sender in senders)
    return _step(site, f"{size}-{len(pairs)}-to-{target}", pairs, BURSTS[size])


def _two_of_each_leaf(site: Site, rail: tuple[PortRef, ...]) -> list[PortRef]:
    leaves: dict[str, list[PortRef]] = {}
    for port in rail:
        leaves.setdefault(site.topology.peer(port).device, []).append(port)
    return [port for ports in leaves.values() for port in ports[:RECEIVERS_OF_LEAF]]


def _step(site: Site, name: str, pairs: tuple[Pair, ...], message_bytes: int) -> Step:
    period_us = _period_us(site, pairs, message_bytes)
    stream = Stream(
        pairs,
        message_bytes=message_bytes,
        gap_us=round(period_us - _burst_us(site, pairs, message_bytes), 1),
        messages_per_s=round(1e6 / period_us),
    )
    return Step(
        id=name,
        streams=(stream,),
        duration_us=round(COUNT * period_us),
        sample_us=SAMPLE_US,
    )


def _wire_bps(site: Site, target: PortRef) -> float:
    return payload_bps(site.topology.link_of[target].speed_bps, site.intent.mtu.roce)


def _burst_us(site: Site, pairs: tuple[Pair, ...], message_bytes: int) -> float:
    """Time of one burst on the receiver's wire."""
    return message_bytes * 8e6 / _wire_bps(site, pairs[0][1])


def _period_us(site: Site, pairs: tuple[Pair, ...], message_bytes: int) -> float:
    """From burst to burst of one sender, so that all together ask for ``LOAD`` of the wire."""
    return len(pairs) * _burst_us(site, pairs, message_bytes) / LOAD


def _fraction(observation: Observation, step: Step) -> Check:
    """What came through, of what comes where every burst waits for all others."""
    judging = Judge(observation, "flows")
    measure = observation.measured.get(step.id)
    if measure is None:
        return judging.not_run("fraction", step.id, observation.not_run[step.id])
    (stream,) = step.streams
    target = stream.pairs[0][1]
    flows = [measure.by_pair.get(pair) for pair in stream.pairs]
    present = [flow for flow in flows if flow is not None]
    if len(present) < len(flows):
        why = next(iter(measure.lost.values()), "no result came back")
        reason = f"{len(flows) - len(present)} of {len(flows)} senders brought no result: {why}"
        return judging.failed("fraction", step.id, reason, target)
    burst_us = _burst_us(observation.site, stream.pairs, stream.message_bytes)
    worst_us = stream.gap_us + len(flows) * burst_us + _ROUND_TRIP_US
    due = len(flows) * stream.message_bytes * 8e6 / worst_us
    got = sum(flow.goodput_bps for flow in present)
    slowest = min(present, key=lambda flow: flow.goodput_bps)
    cause, at = causes.on_path(observation, slowest.source, target)
    if cause == causes.UNKNOWN:
        cause, at = causes.much_pause(observation), target
    return judging.at_least(
        "fraction",
        step.id,
        round(got / due, 4),
        observation.criteria.min_burst_fraction,
        "of the bursts",
        reason=f"{step.id}: {got / 1e9:.2f} Gbit/s of bursts where {due / 1e9:.2f} come through "
        f"even if each waits for all others; the slowest is {slowest.source}: {cause}",
        at=at,
    )
