"""One candidate's settings on the representative site: simulate, and say what came of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fabric.devices.registry import expected_qos
from fabric.headroom import ETHERNET_OVERHEAD_BYTES
from fabric.intent import Certify, Intent
from fabric.sim.api import SimOptions, SimResult
from fabric.sim.cases import total
from fabric.sim.engine.sender import DATA_HEADER_BYTES
from fabric.sim.model import RETH_BYTES, roce_mtu
from fabric.sim.run import jain, prepare
from fabric.sim.tune.traffic import Scene
from fabric.site import Site

_SAMPLE_US = 10.0
# Of a scene's time, before its steady part.
_START = 0.25


@dataclass(frozen=True)
class Trial:
    """What to simulate: a site whose intent is the candidate's."""

    site: Site
    scenes: tuple[Scene, ...]
    duration_us: float
    seed: int


@dataclass(frozen=True)
class Measures:
    """What settings come to, over all scenes.

    ``goodput`` is the mean over the scenes of payload against the most that NICs allow,
    in the steady part; ``tail`` the mean of the 99th percentile of message times
    against a message's time at its fair share, from the start on; ``queue_us`` the
    worst 99th percentile of a queue, as the time that its port needs to send it.
    ``jain`` is the incast's fairness (1 without one), ``incast`` its goodput against
    line rate. ``pause`` is the most that a port is paused in the steady part,
    ``start_pause_us`` how long one is before that. ``hops`` counts data packets times
    links.
    """

    goodput: float
    tail: float
    queue_us: float
    jain: float
    incast: float
    pause: float
    start_pause_us: float
    drops: int
    hops: int


OBJECTIVES = ("goodput", "tail", "queue_us")


def run_trial(trial: Trial) -> Measures:
    """Simulate every scene of a trial."""
    return combine([_run_scene(trial, scene) for scene in trial.scenes])


def combine(parts: Sequence[Measures]) -> Measures:
    """Several scenes, or one candidate's trials with several seeds, as one."""

    def mean(name: str) -> float:
        return float(np.mean([getattr(part, name) for part in parts]))

    return Measures(
        goodput=mean("goodput"),
        tail=mean("tail"),
        queue_us=max(part.queue_us for part in parts),
        jain=min(part.jain for part in parts),
        incast=min(part.incast for part in parts),
        pause=max(part.pause for part in parts),
        start_pause_us=max(part.start_pause_us for part in parts),
        drops=sum(part.drops for part in parts),
        hops=sum(part.hops for part in parts),
    )


def with_intent(site: Site, intent: Intent) -> Site:
    """The site with another intent."""
    document = site.document.model_copy(update={"intent": intent})
    return dataclasses.replace(site, document=document)


def broken(measures: Measures, limits: Certify) -> dict[str, float]:
    """Constraints that do not hold, each with how far it is off (0..1 or more)."""
    short = {
        "drops": float(measures.drops),
        "pause": measures.pause - limits.max_pause_ratio,
        "fairness": limits.min_incast_jain - measures.jain,
        "incast goodput": limits.min_incast_fraction - measures.incast,
    }
    return {name: off for name, off in short.items() if off > 0}


def _run_scene(trial: Trial, scene: Scene) -> Measures:
    site = trial.site
    states = {name: expected_qos(site, name) for name in site.devices}
    warmup_us = _START * trial.duration_us
    options = SimOptions(trial.duration_us, warmup_us, _SAMPLE_US, trial.seed)
    simulation = prepare(site, states, scene.flows, options)
    simulation.advance(warmup_us)
    before = _pauses(simulation.result())
    simulation.advance(trial.duration_us)
    result = simulation.result()
    steady_us = trial.duration_us - warmup_us
    paused = [(us - before.get(port, 0)) / steady_us for port, us in _pauses(result).items()]
    shares = [_payload_share(trial, flow.message_bytes) for flow in scene.flows]
    fair = np.array(scene.fair_bps) * np.array(shares)
    incast = result.goodput_bps[: scene.incast]
    qps = np.array([flow.qps for flow in scene.flows[: scene.incast]])
    return Measures(
        goodput=float(result.goodput_bps.sum() / fair.sum()),
        tail=_tail(result, fair),
        queue_us=_queue_us(site, result),
        jain=jain(incast / qps) if scene.incast else 1.0,
        incast=float(incast.sum() / fair[: scene.incast].sum()) if scene.incast else 1.0,
        pause=max(paused, default=0.0),
        start_pause_us=float(max(before.values(), default=0)),
        drops=total(result, "rx_discards", "tx_discards"),
        hops=result.data_hops,
    )


def _pauses(result: SimResult) -> Mapping[tuple[str, str, int | None], int]:
    """Microseconds for which each port and priority was paused so far."""
    return {
        (counter.device, counter.port, counter.priority): counter.value
        for counter in result.counters
        if counter.name == "rx_pause_us"
    }


def _payload_share(trial: Trial, message_bytes: int) -> float:
    """Payload bits in a bit on the wire, of a message's packets."""
    packets = -(-message_bytes // roce_mtu(trial.site.intent.mtu.host))
    header = DATA_HEADER_BYTES + ETHERNET_OVERHEAD_BYTES
    return message_bytes / (message_bytes + packets * header + RETH_BYTES)


def _tail(result: SimResult, fair_bps: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    """99th percentile of message times against those at the fair share.

    A flow that has completed none counts with the whole time.
    """
    slowdowns = [np.empty(0)]
    for flow, times, bps in zip(result.flows, result.messages_us, fair_bps, strict=True):
        ideal_us = flow.message_bytes * 8e6 * flow.qps / bps
        done = times if len(times) else np.array([result.options.duration_us])
        slowdowns.append(done / ideal_us)
    return float(np.percentile(np.concatenate(slowdowns), 99))


def _queue_us(site: Site, result: SimResult) -> float:
    speeds = site.topology.link_of
    return max(queue.p99_bytes * 8e6 / speeds[queue.port].speed_bps for queue in result.queues)
