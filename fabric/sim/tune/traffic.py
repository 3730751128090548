"""The traffic that settings are judged by: an incast, a ring, and both at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from fabric.errors import InputError
from fabric.sim.api import Flow
from fabric.site import Site
from fabric.topology import PortRef

KINDS = ("incast", "ring", "mix")
# A message is at most so long, and such that a fair share sends several in a simulation.
MAX_MESSAGE_BYTES = 1_000_000
_MIN_MESSAGE_BYTES = 16_000
_MESSAGES = 8


@dataclass(frozen=True)
class Scene:
    """Long flows that all begin at once, and what they could do at best.

    ``fair_bps`` is (flows,): each flow's share of line rate were everything ideal, wire
    bits. ``incast`` counts the first flows, which share one receiver.
    """

    kind: str
    flows: tuple[Flow, ...]
    fair_bps: tuple[float, ...]
    incast: int


def check_traffic(kinds: Sequence[str], degree: int) -> None:
    """InputError for a kind that there is not, or no incast."""
    for kind in kinds:
        if kind not in KINDS:
            raise InputError(
                f"--traffic {kind}: there is none of this name",
                advice=f"There are: {', '.join(KINDS)}.",
            )
    if degree < 2:
        raise InputError(f"--incast {degree}: an incast has two senders or more")


def scenes_of(
    site: Site, kinds: Sequence[str], degree: int, duration_us: float
) -> tuple[Scene, ...]:
    """These kinds of traffic on a small site's NICs.

    ``degree`` queue pairs send to one NIC; where the site has fewer other hosts, hosts
    send on several. In ``mix`` the ring joins all hosts but the receiver.
    """
    ends = site.topology.rails()[0]
    dscp = site.intent.roce.dscp[0]
    found = []
    for kind in dict.fromkeys(kinds):
        incast = _incast(ends, dscp, degree) if kind != "ring" else ()
        ring = _ring(ends if kind == "ring" else ends[:-1], dscp) if kind != "incast" else ()
        flows = _sized(site, (*incast, *ring), duration_us)
        found.append(Scene(kind, flows, _fair(site, flows), len(incast)))
    return tuple(found)


def _incast(ends: Sequence[PortRef], dscp: int, degree: int) -> tuple[Flow, ...]:
    others = ends[:-1][:degree]
    more, rest = divmod(degree, len(others))
    return tuple(
        Flow(end, ends[-1], dscp, qps=more + (number < rest)) for number, end in enumerate(others)
    )


def _ring(ends: Sequence[PortRef], dscp: int) -> tuple[Flow, ...]:
    if len(ends) < 2:
        return ()
    following = (*ends[1:], ends[0])
    return tuple(Flow(a, b, dscp) for a, b in zip(ends, following, strict=True))


def _sized(site: Site, flows: Sequence[Flow], duration_us: float) -> tuple[Flow, ...]:
    """These flows with messages that end soon enough to be counted."""
    found = []
    for flow, bps in zip(flows, _fair(site, flows), strict=True):
        sent_bytes = bps / flow.qps * duration_us / 8e6
        size = min(MAX_MESSAGE_BYTES, max(_MIN_MESSAGE_BYTES, sent_bytes / _MESSAGES))
        found.append(dataclasses.replace(flow, message_bytes=int(size) // 1000 * 1000))
    return tuple(found)


def _fair(site: Site, flows: Sequence[Flow]) -> tuple[float, ...]:
    """Max-min shares of the NICs' lines alone: what no switch can better."""
    speed = {
        end: float(site.topology.link_of[end].speed_bps)
        for f in flows
        for end in (f.source, f.target)
    }
    left = {("out", end): bps for end, bps in speed.items()}
    left |= {("in", end): bps for end, bps in speed.items()}
    rate = [0.0] * len(flows)
    ends = [(("out", flow.source), ("in", flow.target)) for flow in flows]
    active = set(range(len(flows)))
    while active:
        load = dict.fromkeys(left, 0)
        for k in active:
            for end in ends[k]:
                load[end] += flows[k].qps
        level, full = min((left[end] / load[end], end) for end in left if load[end])
        for k in [k for k in active if full in ends[k]]:
            rate[k] = level * flows[k].qps
            active.discard(k)
            for end in ends[k]:
                left[end] -= rate[k]
    return tuple(rate)
