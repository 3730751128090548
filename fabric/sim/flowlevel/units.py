"""From flows to units: one queue pair each, with its path, its rate control and its bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabric.errors import InputError
from fabric.headroom import ETHERNET_OVERHEAD_BYTES
from fabric.qos import Dcqcn, PortQos
from fabric.sim.api import Flow
from fabric.sim.engine.sender import DATA_HEADER_BYTES
from fabric.sim.flowlevel.network import ClassFacts, FlowNetwork, class_facts
from fabric.sim.flowlevel.paths import Paths
from fabric.sim.flowlevel.response import Curve, curve_of
from fabric.sim.model import RETH_BYTES, roce_mtu
from fabric.sim.traffic import sender_tos

_USE_PACKETS = "Use --level packet."

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Units:
    """Queue pairs of all flows, in the order of the flows.

    ``flow``, ``payload_share`` (payload bits in a bit on the wire), ``payload_bytes``
    (inf where endless), ``start_us`` and ``curve`` (row of ``curves``; -1 where no DCQCN
    acts) are (units,). ``facts`` is what the ports do to their packets.
    """

    flow: Ints
    paths: Paths
    payload_share: Floats
    payload_bytes: Floats
    start_us: Floats
    curve: Ints
    curves: tuple[Curve, ...]
    facts: ClassFacts


def units_of(
    network: FlowNetwork,
    flows: Sequence[Flow],
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> Units:
    """Lay out these flows. InputError for what the flow level cannot do; it names the flow."""
    tos = _common_tos(network, flows)
    facts = class_facts(network, tos)
    rows: list[tuple[int, float, float, float, int]] = []
    pairs = []
    curves: list[Curve] = []
    kinds: dict[tuple[object, ...], tuple[float, int]] = {}
    for number, flow in enumerate(flows):
        _check(network, number, flow)
        source, target = network.of(flow.source), network.of(flow.target)
        line = float(network.speed_bps[network.graph.index[flow.source]])
        kind = (id(source), id(target), line, flow.message_bytes)
        if kind not in kinds:
            payload = min(roce_mtu(end.mtu_bytes) for end in (source, target))
            dcqcn = _acting(source, target, tos)
            full = payload + DATA_HEADER_BYTES + ETHERNET_OVERHEAD_BYTES
            curve = None if dcqcn is None else curve_of(dcqcn, line, full)
            row = -1 if curve is None else _row_of(curves, curve)
            kinds[kind] = (_payload_share(flow.message_bytes, payload), row)
        share, row = kinds[kind]
        total = np.inf if flow.messages is None else float(flow.messages) * flow.message_bytes
        for qp in range(flow.qps):
            rows.append((number, share, total, flow.start_us, row))
            pairs.append((flow.source, flow.target, qp))
    columns = list(zip(*rows, strict=True)) if rows else [()] * 5
    units = Units(
        flow=np.array(columns[0], np.int64),
        paths=network.graph.lay(pairs, seed, progress),
        payload_share=np.array(columns[1], np.float64),
        payload_bytes=np.array(columns[2], np.float64),
        start_us=np.array(columns[3], np.float64),
        curve=np.array(columns[4], np.int64),
        curves=tuple(curves),
        facts=facts,
    )
    _check_network(network, units)
    return units


def _row_of(curves: list[Curve], curve: Curve) -> int:
    """Where this curve is, added if it is new; the same parameters give the same object."""
    for row, known in enumerate(curves):
        if known is curve:
            return row
    curves.append(curve)
    return len(curves) - 1


def _payload_share(message_bytes: int, payload: int) -> float:
    packets = -(-message_bytes // payload)
    header = DATA_HEADER_BYTES + ETHERNET_OVERHEAD_BYTES
    return message_bytes / (message_bytes + packets * header + RETH_BYTES)


def _common_tos(network: FlowNetwork, flows: Sequence[Flow]) -> int:
    """The TOS byte that all senders use; InputError names two that differ."""
    first: tuple[int, Flow] | None = None
    for flow in flows:
        if flow.source not in network.graph.index:
            continue
        tos = sender_tos(network.of(flow.source))
        if first is None:
            first = (tos, flow)
        elif tos != first[0]:
            raise InputError(
                f"{first[1].source} sends with TOS {first[0]}, {flow.source} with {tos}; "
                "the flow level knows one class only",
                advice=_USE_PACKETS,
            )
    return first[0] if first is not None else 0


def _check(network: FlowNetwork, number: int, flow: Flow) -> None:
    where = f"flow {number} ({flow.source} to {flow.target})"
    hosts = network.graph
    for end in (flow.source, flow.target):
        if end not in hosts.index or hosts.switch[hosts.index[end]] >= 0:
            raise InputError(f"{where}: {end} is no cabled NIC of this site")
    if flow.source == flow.target:
        raise InputError(f"{where}: it ends where it starts")
    if flow.qps < 1 or flow.message_bytes < 1 or (flow.messages is not None and flow.messages < 1):
        raise InputError(f"{where}: message_bytes, messages and qps start from 1")
    if flow.start_us < 0:
        raise InputError(f"{where}: start_us cannot be negative")
    if flow.transport != "rdma" or flow.kind != "stream" or flow.gap_us or flow.path is not None:
        raise InputError(
            f"{where}: the flow level knows RDMA streams without gaps over ECMP paths only",
            advice=_USE_PACKETS,
        )


def _acting(source: PortQos, target: PortQos, tos: int) -> Dcqcn | None:
    """The sender's DCQCN where the receiver notifies it and the sender reacts."""
    if source.nic is None or target.nic is None:
        return None
    reacting, notifying = source.nic.dcqcn, target.nic.dcqcn
    if reacting is None or notifying is None:
        return None
    if source.priority_of_dscp(tos >> 2) not in reacting.rp_priorities:
        return None
    return reacting if target.priority_of_dscp(tos >> 2) in notifying.np_priorities else None


def controlled(units: Units) -> bool:
    """DCQCN holds these units back; False: PFC alone does."""
    return bool(len(units.curve)) and bool(units.curve[0] >= 0) and _any_marks(units)


def _switch_hops(units: Units) -> Ints:
    """Numbers of the switch ports that any unit passes."""
    nics = np.zeros(len(units.paths.hops), bool)
    nics[units.paths.starts[:-1]] = True
    return np.unique(units.paths.hops[~nics])


def _any_marks(units: Units) -> bool:
    return bool(units.facts.marks[_switch_hops(units)].any())


def _check_network(network: FlowNetwork, units: Units) -> None:
    """Refuse what would drop, or be ruled by marks here and by pauses there."""
    if not len(units.flow):
        return
    hops, facts = _switch_hops(units), units.facts
    largest = max(
        roce_mtu(network.qos[nic].mtu_bytes) for nic in units.paths.hops[units.paths.starts[:-1]]
    )
    small = hops[facts.mtu_bytes[hops] < largest + DATA_HEADER_BYTES + RETH_BYTES]
    if len(small):
        raise InputError(
            f"{network.ports[small[0]]} drops packets of {largest} bytes: MTU "
            f"{facts.mtu_bytes[small[0]]}; the flow level knows no losses",
            advice=_USE_PACKETS,
        )
    acting = units.curve >= 0
    if acting.any() != acting.all():
        odd = int(units.flow[np.argmax(acting != acting[0])])
        raise InputError(
            f"DCQCN acts on some flows and not on others (flow {odd} differs from flow 0); "
            "the flow level knows all or none",
            advice=_USE_PACKETS,
        )
    marks = facts.marks[hops]
    if acting.all() and marks.any() != marks.all():
        odd = network.ports[hops[np.argmax(~marks)]]
        raise InputError(
            f"{odd} does not mark and other ports do; the flow level knows all or none",
            advice=_USE_PACKETS,
        )
    if not controlled(units):
        _check_pauses(network, units)


def _check_pauses(network: FlowNetwork, units: Units) -> None:
    """Without DCQCN every receive buffer on the way must pause."""
    last = np.zeros(len(units.paths.hops), bool)
    last[units.paths.starts[1:] - 1] = True
    ingress = network.graph.peer[np.unique(units.paths.hops[~last])]
    facts = units.facts
    odd = ingress[~facts.pauses[ingress] | (facts.xoff_bytes[ingress] <= 0)]
    if len(odd):
        raise InputError(
            f"neither DCQCN holds these senders back nor PFC at {network.ports[odd[0]]}: "
            "packets would be lost, which the flow level does not know",
            advice=_USE_PACKETS,
        )
