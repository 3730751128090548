"""The suites: each a plan of traffic and a judgement, both pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fabric.errors import InputError
from fabric.site import Site
from validation.criteria import Check
from validation.judgement.observation import Observation
from validation.suites import (
    bandwidth,
    burst,
    collective,
    incast,
    latency,
    mixed,
    preflight,
    soak,
    tcp,
)
from validation.traffic import TrafficPlan


@dataclass(frozen=True, slots=True)
class Suite:
    """One suite by its name. ``repeats``: a figure of it may be measured again and again."""

    name: str
    about: str
    plan: Callable[[Site], TrafficPlan]
    judge: Callable[[Observation], tuple[Check, ...]]
    repeats: bool = False

    def again(self, site: Site, times: int = 1) -> TrafficPlan:
        """Its plan, so many times over; once where repetitions say nothing of it."""
        plan = self.plan(site)
        return plan.times(times) if self.repeats and times > 1 else plan


SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            preflight.NAME,
            "every device answers, every pair is reached in the right class",
            preflight.plan,
            preflight.judge,
        ),
        Suite(latency.NAME, "ping-pong between all pairs", latency.plan, latency.judge),
        Suite(
            bandwidth.NAME,
            "all pairs at full speed both ways",
            bandwidth.plan,
            bandwidth.judge,
            repeats=True,
        ),
        Suite(
            incast.NAME,
            "many to one, for every receiver, and many to few",
            incast.plan,
            incast.judge,
            repeats=True,
        ),
        Suite(mixed.NAME, "TCP beside RDMA, each with its share", mixed.plan, mixed.judge),
        Suite(burst.NAME, "on/off senders to one receiver", burst.plan, burst.judge),
        Suite(collective.NAME, "a trainer's exchanges", collective.plan, collective.judge),
        Suite(tcp.NAME, "TCP's ping-pong beside RDMA's", tcp.plan, tcp.judge),
        Suite(soak.NAME, "short collectives, chained and sampled", soak.plan, soak.judge),
    )
}
# What every certificate asks for; a site's criteria may name more.
DEFAULT = (preflight.NAME, latency.NAME, bandwidth.NAME, incast.NAME)


def select(names: Sequence[str] | None = None) -> tuple[Suite, ...]:
    """These suites in the order in which they make sense; the default ones where none is named.

    Raises InputError for an unknown name.
    """
    for name in names or ():
        if name not in SUITES:
            raise InputError(
                f"no suite is called {name!r}", advice=f"There are: {', '.join(SUITES)}."
            )
    return tuple(suite for suite in SUITES.values() if suite.name in (names or DEFAULT))


def certified_suites(site: Site) -> tuple[str, ...]:
    """The suites that this site's criteria ask for; what is run where none is named."""
    return (*DEFAULT, *site.document.certify.extra_suites)
