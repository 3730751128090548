"""What a run with the reference's semantics saw."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fabric.sim.reference import columns as c
from fabric.sim.reference.columns import Arrays
from fabric.sim.reference.flowfile import FlowFile
from fabric.sim.reference.memory import Setup
from fabric.sim.reference.wiring import Port, Wiring

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class PortQueue:
    """Bytes waiting at a switch port, sampled each microsecond after warm-up.

    ``port`` counts from 1 in the order of the topology's links; ``peer`` is the
    node at its other end. Percentiles are ``sorted[int(share * n)]``.
    """

    switch: int
    port: int
    peer: int
    mean: float
    p50: int
    p99: int
    max: int


@dataclass(frozen=True, slots=True)
class Message:
    """A message that was completed: its flow's number, and its times in microseconds.

    ``fct_us`` is from the queue pair's creation to the sender's receipt of the
    last ACK.
    """

    flow: int
    start_us: float
    fct_us: float


@dataclass(frozen=True)
class ReferenceResult:
    """Results of a run; ``simulated_us`` is less than its duration where it was stopped.

    ``goodput_gbps`` is each flow's in-order payload after warm-up. ``pauses`` are
    pause frames that were received, ``marks`` packets that were marked (ACKs
    included), over the whole run. ``data_hops`` counts each data packet once a
    link. ``series`` has a row for each sample, where a series was asked for.
    """

    simulated_us: float
    partial: bool
    goodput_gbps: NDArray[np.float64]
    ports: tuple[PortQueue, ...]
    pauses: int
    paused_us: float
    drops: int
    marks: int
    rate_cuts: int
    messages: tuple[Message, ...]
    data_hops: int
    events: int
    wall_s: float
    peak_rss_bytes: int
    series: pd.DataFrame | None

    @property
    def jain(self) -> float:
        """Jain's fairness index of the flows' goodput (Jain, Chiu, Hawe, DEC-TR-301)."""
        rates = self.goodput_gbps
        squares = float(np.sum(rates**2))
        return float(np.sum(rates)) ** 2 / (len(rates) * squares) if squares else 1.0

    @property
    def hops_per_s(self) -> float:
        """Data packets times links, for each second that the event loop ran."""
        return self.data_hops / self.wall_s if self.wall_s else 0.0

    @property
    def top_port(self) -> PortQueue:
        """The port with the longest mean queue."""
        return max(self.ports, key=lambda port: port.mean)

    def to_json(self) -> dict[str, Any]:
        """The document of ``paisoar sim run --json``."""
        document: dict[str, Any] = {
            "goodput_gbps": {
                "sum": float(self.goodput_gbps.sum()),
                "per_flow": self.goodput_gbps.tolist(),
            },
            "jain": self.jain,
            "ports": [
                {
                    "switch": port.switch,
                    "port": port.port,
                    "peer": port.peer,
                    "queue_mean_bytes": port.mean,
                    "queue_p50_bytes": port.p50,
                    "queue_p99_bytes": port.p99,
                    "queue_max_bytes": port.max,
                }
                for port in self.ports
            ],
            "pauses": self.pauses,
            "drops": self.drops,
            "marks": self.marks,
            "rate_cuts": self.rate_cuts,
            "data_hops": self.data_hops,
            "wall_s": self.wall_s,
            "hops_per_s": self.hops_per_s,
            "peak_rss_bytes": self.peak_rss_bytes,
            "messages": [
                {"flow": done.flow, "start_us": done.start_us, "fct_us": done.fct_us}
                for done in self.messages
            ],
        }
        if self.partial:
            document["partial"] = True
            document["simulated_us"] = self.simulated_us
        return document


def collect(
    wiring: Wiring, flows: FlowFile, setup: Setup, m: Arrays, now_ns: int, wall_s: float
) -> ReferenceResult:
    """Read the results out of the engine's arrays."""
    rows = m.flows.reshape(-1, c.FLOW_WORDS)
    ports = m.ports.reshape(-1, c.PORT_WORDS)
    counted_ns = now_ns - setup.warmup_ns
    received = rows[:, c.RECEIVED] - rows[:, c.RECEIVED_BEFORE]
    goodput = received * 8 / counted_ns if counted_ns > 0 else np.zeros(len(rows))
    paused = ports[:, c.PAUSED_NS] + np.where(
        ports[:, c.PAUSED] > 0, now_ns - ports[:, c.PAUSED_SINCE], 0
    )
    log = m.log[: int(m.settings[c.LOG_COUNT]) * c.LOG_WORDS].reshape(-1, c.LOG_WORDS)
    return ReferenceResult(
        simulated_us=now_ns / 1000,
        partial=now_ns < setup.duration_ns,
        goodput_gbps=goodput,
        ports=_queues(wiring, m),
        pauses=int(ports[:, c.PAUSES_RX].sum()),
        paused_us=float(paused.sum()) / 1000,
        drops=int(ports[:, c.DROPS].sum()),
        marks=int(ports[:, c.MARKS].sum()),
        rate_cuts=int(rows[:, c.CUTS].sum()),
        messages=tuple(
            Message(flow, start / 1000, (end - start) / 1000) for flow, start, end in log.tolist()
        ),
        data_hops=int(m.settings[c.DATA_HOPS]),
        events=int(m.settings[c.EVENTS]),
        wall_s=wall_s,
        peak_rss_bytes=peak_rss_bytes(),
        series=_series(len(flows.flows), setup, m),
    )


def _queues(wiring: Wiring, m: Arrays) -> tuple[PortQueue, ...]:
    by_row: dict[int, Port] = {port.row: port for port in wiring.ports}
    count = int(m.settings[c.SAMPLE_COUNT])
    taken = m.samples[: count * len(m.switch_ports)].reshape(count, len(m.switch_ports))
    queues = []
    for column, row in enumerate(m.switch_ports):
        port = by_row[int(row)]
        depths = np.sort(taken[:, column])
        values = (
            (float(depths.mean()), *(int(depths[int(s * count)]) for s in (0.5, 0.99)), depths[-1])
            if count
            else (0.0, 0, 0, 0)
        )
        mean, p50, p99, most = values
        queues.append(PortQueue(port.node, port.number, port.peer, mean, p50, p99, int(most)))
    return tuple(queues)


def _series(flows: int, setup: Setup, m: Arrays) -> pd.DataFrame | None:
    if setup.series_every_ns is None:
        return None
    import pandas as pd  # noqa: PLC0415 - slow to import

    count = int(m.settings[c.SERIES_COUNT])
    words = m.series.reshape(-1, 1 + 2 * flows)[:count]
    alphas = m.series_alphas.reshape(-1, flows)[:count]
    columns: dict[str, NDArray[Any]] = {
        "t_ns": (np.arange(count) + 1) * setup.series_every_ns,
        "q_bytes": words[:, 0],
    }
    for flow in range(flows):
        columns[f"rate{flow}_bps"] = words[:, 1 + 2 * flow]
        columns[f"target{flow}_bps"] = words[:, 2 + 2 * flow]
        columns[f"alpha{flow}"] = alphas[:, flow]
    return pd.DataFrame(columns)


def peak_rss_bytes() -> int:
    """The most memory that this process has had; 0 where the platform does not say."""
    try:
        import resource  # noqa: PLC0415
    except ImportError:  # not on every platform
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
