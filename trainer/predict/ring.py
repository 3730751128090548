"""The time that an allreduce of so many bytes takes, by whose ring it is.

Thakur, Rabenseifner, Gropp 2005 and Patarasuk, Yuan 2009: over n ranks a ring has
2(n-1) steps and carries 2(n-1)/n of the bytes through every link.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fabric.errors import JudgedBadError
from trainer.predict.constants import Constants
from trainer.predict.rates import Rate
from trainer.predict.setup import WIRE_BYTES, Setup
from trainer.predict.timeline import Affine

# RoCE's largest path MTU.
_PACKET_BYTES = 4096
# Mathis, Semke, Mahdavi, Ott 1997: TCP's rate where packets are lost at random.
_MATHIS = math.sqrt(3 / 2)


@dataclass(frozen=True, slots=True)
class Group:
    """Who takes part: hosts, and GPUs on each."""

    hosts: int
    per_host: int

    @property
    def gpus(self) -> int:
        """All of them."""
        return self.hosts * self.per_host


def volume(ranks: int) -> float:
    """What a ring over so many ranks carries through each link, as a part of the bytes."""
    return 2 * (ranks - 1) / ranks


def ring_cost(setup: Setup, group: Group, rate: Rate | None, k: Constants) -> Affine:
    """Seconds of one allreduce, by its bytes in fp32. ``rate`` None: one host."""
    if group.gpus == 1:
        return Affine(0.0, 0.0)
    if setup.software in ("horovod", "horovod-mpi"):
        return _peer(setup, group, rate, k)
    return _own(setup, group, rate, k)


def _own(setup: Setup, group: Group, rate: Rate | None, k: Constants) -> Affine:
    """Ours: staged through the host's memory; the stages of one bucket follow each other."""
    stages, wire = [1 / k.pcie_rate, 1 / k.pcie_rate], WIRE_BYTES[setup.wire] / 4
    latency_s = 0.0
    if rate is not None and not setup.hierarchical:
        # The ring itself passes through every rank of the host, and its memory.
        slowest = max(wire / network_rate(setup, rate, k, k.tcp_core_rate), 1 / k.memory_rate)
        latency_s = 2 * (group.gpus - 1) * hop_s(setup, rate, k)
        stages.append(volume(group.gpus) * slowest)
    elif group.per_host > 1:
        latency_s = 2 * k.host_hop_s
        stages.append(volume(group.per_host) / k.memory_rate)
    if rate is not None and setup.hierarchical:
        latency_s += 2 * (group.hosts - 1) * hop_s(setup, rate, k)
        bps = network_rate(setup, rate, k, group.per_host * k.tcp_core_rate)
        stages.append(volume(group.hosts) * wire / bps)
    return Affine(latency_s, max(stages) if setup.pipelined else sum(stages))


def _peer(setup: Setup, group: Group, rate: Rate | None, k: Constants) -> Affine:
    """Horovod: a flat ring over all GPUs; NCCL adds on GPUs, MPI in the host's memory."""
    carried = volume(group.gpus) * WIRE_BYTES[setup.wire] / 4
    steps = 2 * (group.gpus - 1)
    inside = k.nvlink_rate if setup.host_link == "nvlink" else k.pcie_rate
    if rate is None:
        latency_s, slowest = steps * k.host_hop_s, inside
    else:
        latency_s = steps * hop_s(setup, rate, k)
        network = network_rate(setup, rate, k, k.nccl_tcp_rate)
        if setup.transport == "verbs" and setup.software == "horovod":
            network *= k.nccl_rdma_part
        slowest = min(inside, network)
    per_byte = carried / slowest
    if setup.software == "horovod-mpi":
        per_byte += group.per_host / k.mpi_host_rate
    return Affine(latency_s, per_byte)


def hop_s(setup: Setup, rate: Rate, k: Constants) -> float:
    """One step from host to host; with a lossy port also what its lost last packets cost.

    The last packet of a message has nothing after it that would show its loss: RoCE waits
    for the timeout. TCP probes after two round trips (RFC 8985).
    """
    if setup.transport == "tcp":
        return k.tcp_hop_s + rate.loss * 4 * k.tcp_hop_s
    own = k.post_s if setup.software == "paisoar" else 0.0
    return k.rdma_hop_s + own + rate.loss * k.rto_s


def network_rate(setup: Setup, rate: Rate, k: Constants, tcp_most: float) -> float:
    """Payload bytes a second of a host and direction, after losses and TCP's own limit.

    JudgedBadError where nothing gets through: then no step ever ends.
    """
    if rate.bps <= 0 or rate.loss >= 1:
        raise JudgedBadError(
            "on this fabric some traffic of the training does not get through at all",
            advice="Look at `paisoar audit`, mend what it finds, and predict again.",
        )
    fabric = rate.bps / 8
    if setup.transport == "tcp":
        fabric = min(fabric, tcp_most)
        if rate.loss:
            round_trip_s = 2 * k.tcp_hop_s
            most = k.tcp_segment_bytes / round_trip_s * _MATHIS / math.sqrt(rate.loss)
            fabric = min(fabric, most)
        return fabric
    return fabric * go_back_n(rate, k)


def go_back_n(rate: Rate, k: Constants) -> float:
    """The part of a RoCE NIC's sending that is of use: a loss repeats all that followed it.

    (1 - p) / (1 - p + p W) with W packets in a round trip (go-back-N, e.g. Bertsekas and
    Gallager, Data Networks, 2.4).
    """
    window = max(1.0, rate.line_bps / 8 * 2 * k.rdma_hop_s / _PACKET_BYTES)
    return (1 - rate.loss) / (1 - rate.loss + rate.loss * window)
