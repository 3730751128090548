"""One simulation of a sweep: a site, a scenario, and the numbers that it comes down to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fabric.devices.registry import expected_qos
from fabric.sim.api import SimOptions, SimResult
from fabric.sim.flowlevel.memory import check_memory
from fabric.sim.flowlevel.network import network_of_site
from fabric.sim.flowlevel.run import prepare_flows
from fabric.sim.run import jain, simulate
from fabric.sim.scenarios import flow_count, scenario_flows
from fabric.site import Site

_SAMPLE_US = 10.0

Level = Literal["packet", "flow"]


@dataclass(frozen=True)
class Case:
    """What to simulate. Devices are set as the site's intent has them."""

    site: Site
    scenario: str
    seed: int
    level: Level
    duration_us: float
    warmup_us: float


@dataclass(frozen=True)
class CaseResult:
    """The case in numbers. Goodput and fairness count from warm-up on, the rest from 0.

    ``queue_p99_bytes`` is the longest port's, its mean at the flow level;
    ``pause_fraction`` the most that any port was paused. Message times are None where
    no message was completed, or none is known.
    """

    goodput_bps: float
    slowest_bps: float
    jain: float
    drops: int
    marks: int
    pause_fraction: float
    queue_p99_bytes: float
    message_p50_us: float | None
    message_p99_us: float | None
    wall_s: float


def run_case(case: Case) -> CaseResult:
    """Simulate one case. InputError for what cannot be simulated."""
    if case.level == "flow":
        ends = len(case.site.topology.endpoints)
        count = flow_count(case.scenario, ends, case.duration_us)
        check_memory(len(case.site.topology.links), count)
    flows = scenario_flows(case.site, case.scenario, case.duration_us, case.seed)
    states = {name: expected_qos(case.site, name) for name in case.site.devices}
    if case.level == "packet":
        options = SimOptions(
            case.duration_us,
            case.warmup_us,
            sample_us=min(_SAMPLE_US, case.duration_us),
            seed=case.seed,
        )
        return _of_packets(simulate(case.site, states, flows, options))
    network = network_of_site(case.site, states)
    simulation = prepare_flows(network, flows, case.duration_us, case.warmup_us, case.seed)
    simulation.advance()
    found = simulation.result()
    times = found.completion_us[np.isfinite(found.completion_us)]
    return CaseResult(
        goodput_bps=float(found.goodput_bps.sum()),
        slowest_bps=float(found.goodput_bps.min()),
        jain=jain(found.goodput_bps),
        drops=0,
        marks=0,
        pause_fraction=max((load.paused for load in found.ports), default=0.0),
        queue_p99_bytes=max((load.queue_bytes for load in found.ports), default=0.0),
        message_p50_us=float(np.percentile(times, 50)) if len(times) else None,
        message_p99_us=float(np.percentile(times, 99)) if len(times) else None,
        wall_s=found.wall_s,
    )


def total(result: SimResult, *names: str) -> int:
    """These counters, over all ports and priorities."""
    return sum(counter.value for counter in result.counters if counter.name in names)


def pause_fraction(result: SimResult) -> float:
    """The most that any port was paused in any priority, of the whole time."""
    paused = [counter.value for counter in result.counters if counter.name == "rx_pause_us"]
    return max(paused, default=0) / result.options.duration_us


def _of_packets(found: SimResult) -> CaseResult:
    times = np.concatenate([*found.messages_us, np.empty(0)])
    return CaseResult(
        goodput_bps=float(found.goodput_bps.sum()),
        slowest_bps=float(found.goodput_bps.min()),
        jain=jain(found.goodput_bps),
        drops=total(found, "rx_discards", "tx_discards"),
        marks=total(found, "ecn_marked_packets"),
        pause_fraction=pause_fraction(found),
        queue_p99_bytes=max((queue.p99_bytes for queue in found.queues), default=0.0),
        message_p50_us=float(np.percentile(times, 50)) if len(times) else None,
        message_p99_us=float(np.percentile(times, 99)) if len(times) else None,
        wall_s=found.wall_s,
    )
