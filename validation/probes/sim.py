"""The twin's probe: the packet-level simulator, fed by what the devices hold now.

The traffic moves the emulated devices' own counters, so that judgement reads
them over SSH as it would from real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from fabric.qos import DeviceQos
from fabric.sim.api import Flow, SimOptions, SimResult
from fabric.site import EvidenceClass, Site
from fabric.topology import PortRef
from validation.traffic import (
    FlowMeasure,
    QueueMeasure,
    Role,
    Step,
    StepMeasure,
    Stream,
    application_tos,
)

Carry = Callable[[Site, Mapping[str, DeviceQos], Sequence[Flow], SimOptions], SimResult]

_NOTHING: NDArray[np.float64] = np.empty(0)


class SimProbe:
    """Carries steps by ``carry``: the simulator that also moves the twin's counters."""

    name = "sim"
    evidence_class: EvidenceClass = "simulated"
    versions: Mapping[str, str] = MappingProxyType({})
    settle_s = 0.0

    def __init__(
        self, site: Site, states: Mapping[str, DeviceQos], carry: Carry | None = None
    ) -> None:
        self._site = site
        self._states = dict(states)
        self._carry = carry or _on_the_twin
        self._asked: dict[PortRef, int | None] = {}

    def prepare(self) -> None:
        """Compile the simulator, or load it from its cache."""
        if self._carry is _on_the_twin:
            from fabric.sim.run import warm_up  # noqa: PLC0415 - pulls in numba

            warm_up()

    def run(self, step: Step) -> StepMeasure:
        """One step as one simulation; the seed depends on the step's name only."""
        shapes: list[Stream] = []
        flows: list[Flow] = []
        for stream in step.streams:
            for source, target in stream.pairs:
                shapes.append(stream)
                flows.append(self._flow(stream, source, target))
        options = SimOptions(
            duration_us=step.duration_us,
            warmup_us=step.warmup_us,
            sample_us=step.sample_us,
            seed=1 + sum(step.id.encode()),
        )
        result = self._carry(self._site, self._states, flows, options)
        return _measure(step, shapes, result)

    def _flow(self, stream: Stream, source: PortRef, target: PortRef) -> Flow:
        return Flow(
            source=source,
            target=target,
            dscp=self.dscp(stream.role, source),
            message_bytes=stream.message_bytes,
            messages=stream.messages,
            qps=stream.qps,
            gap_us=stream.gap_us,
            kind=stream.kind,
            transport="rdma" if stream.role == "roce" else "tcp",
            tos=self._tos(stream.role, source),
            tos_back=self._tos(stream.role, target),
        )

    def _tos(self, role: Role, port: PortRef) -> int | None:
        """What the application sets itself, as perftest is told by ``--tclass``."""
        if role != "roce":
            return None
        if port not in self._asked:
            self._asked[port] = application_tos(self._site, port)
        return self._asked[port]

    def dscp(self, role: Role, source: PortRef) -> int:
        """DSCP with which an application's traffic leaves this NIC port.

        Applications leave the marking of RDMA to the host (``traffic_class`` of
        the verbs device) where that can be set: what was not set leaves with DSCP 0.
        """
        intent = self._site.intent
        if role == "default":
            taken = {dscp for cls in intent.classes.values() for dscp in cls.dscp}
            return next(dscp for dscp in range(64) if dscp not in taken)
        state = self._states[source.device]
        port = state.port(source.port)
        own = port.nic.verbs_traffic_class if port is not None and port.nic is not None else None
        return (own if own is not None else self._tos(role, source) or 0) >> 2


def _on_the_twin(
    site: Site, states: Mapping[str, DeviceQos], flows: Sequence[Flow], options: SimOptions
) -> SimResult:
    from fabric.twin.traffic import carry  # noqa: PLC0415 - pulls in numba

    return carry(site, states, flows, options)


def _measure(step: Step, shapes: Sequence[Stream], result: SimResult) -> StepMeasure:
    flows = []
    for index, (shape, flow) in enumerate(zip(shapes, result.flows, strict=True)):
        times = result.messages_us[index]
        flows.append(
            FlowMeasure(
                source=flow.source,
                target=flow.target,
                role=shape.role,
                kind=shape.kind,
                goodput_bps=float(result.goodput_bps[index]),
                completed=len(times),
                latency_us=times if shape.kind == "ping" else _NOTHING,
                series_bps=result.goodput_series_bps[index],
            )
        )
    queues = tuple(
        QueueMeasure(stats.port, stats.mean_bytes, stats.p99_bytes, stats.max_bytes, series)
        for stats, series in zip(result.queues, result.queue_series_bytes, strict=True)
    )
    return StepMeasure(
        step=step.id,
        flows=tuple(flows),
        queues=queues,
        traffic_us=step.duration_us,
        # The engine takes fewer samples where a series would get too long.
        sample_us=result.options.sample_us,
        notes=result.notes,
    )
