"""One step of one way to train, on one fabric: the parts put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabric.errors import InputError
from trainer.bucket_size import CANDIDATES_BYTES, smallest_good
from trainer.collective.fusion import BUCKET_BYTES, FIRST_BUCKET_BYTES, plan_buckets
from trainer.predict.constants import DEFAULTS, Constants
from trainer.predict.layers import Model, model_named
from trainer.predict.rates import Fabric, Rate
from trainer.predict.ring import Group, network_rate, ring_cost, volume
from trainer.predict.server import place, play_servers, server_costs
from trainer.predict.setup import WIRE_BYTES, Prediction, Setup
from trainer.predict.timeline import (
    Affine,
    Played,
    play_buckets,
    play_fused,
    ready_times,
)

# Horovod of 2018: HOROVOD_FUSION_THRESHOLD 64 MiB, HOROVOD_CYCLE_TIME 5 ms.
FUSION_BYTES = 64 << 20
CYCLE_S = 5e-3
# BytePS cuts tensors into partitions of this size (BYTEPS_PARTITION_BYTES).
PARTITION_BYTES = 4_096_000
# The trainer measures bucket sizes for models above this.
_WORTH_MEASURING_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class _Exchange:
    """A step's exchange as it was played, and as one piece without any overlap."""

    played: Played
    alone_s: float
    bucket_bytes: int


def predict(
    setup: Setup, gpus: Sequence[int], fabric: Fabric, k: Constants = DEFAULTS
) -> list[Prediction]:
    """One prediction for each number of GPUs. InputError for what cannot be."""
    if not gpus:
        raise InputError("--gpus: name at least one number")
    hosts = max(setup.hosts(count)[0] for count in gpus)
    if setup.servers > hosts:
        raise InputError(
            f"--servers {setup.servers}: more than the {hosts} hosts of {max(gpus)} GPUs",
            advice="A host holds one server at most; 0 is one on every host.",
        )
    return [_predict(setup, count, fabric, k) for count in gpus]


def _predict(setup: Setup, gpus: int, fabric: Fabric, k: Constants) -> Prediction:
    model = model_named(setup.model)
    group = Group(*setup.hosts(gpus))
    rate = _rate(setup, group, fabric)
    compute_s = setup.step_s * (1 + (k.sync_part if group.hosts > 1 else 0.0))
    if gpus == 1:
        exchange = _Exchange(Played(setup.step_s, 0.0, 0), 0.0, 0)
    elif setup.sync == "ps" and setup.software != "byteps":
        exchange = _servers(setup, model, group, rate, compute_s, k)
    else:
        exchange = _ring(setup, model, group, rate, compute_s, k)
    step_s = _overlapped(setup, exchange, compute_s)
    speedup = gpus * setup.step_s / step_s
    return Prediction(
        model=setup.model,
        gpus=gpus,
        hosts=group.hosts,
        images_per_s=gpus * setup.batch / step_s,
        speedup=speedup,
        efficiency=speedup / gpus,
        step_s=step_s,
        compute_s=compute_s,
        exchange_s=exchange.alone_s,
        exposed_s=step_s - compute_s,
        exchanges=exchange.played.exchanges,
        bucket_bytes=exchange.bucket_bytes,
        rate_bps=0.0 if rate is None else rate.bps,
        notes=() if rate is None else rate.notes,
    )


def _overlapped(setup: Setup, exchange: _Exchange, compute_s: float) -> float:
    if setup.overlap == "none":
        return compute_s + exchange.alone_s
    if setup.overlap == "full":
        return max(compute_s, exchange.alone_s)
    return exchange.played.end_s


def _rate(setup: Setup, group: Group, fabric: Fabric) -> Rate | None:
    """What the network gives to this exchange; None where one host trains."""
    if group.hosts == 1:
        return None
    if setup.sync == "ring":
        return fabric.ring(group.hosts)
    return fabric.servers(group.hosts, _servers_of(setup, group))


def _servers_of(setup: Setup, group: Group) -> int:
    """How many servers: as asked, but no more than one a host."""
    return min(setup.servers or group.hosts, group.hosts)


def _ring(
    setup: Setup, model: Model, group: Group, rate: Rate | None, compute_s: float, k: Constants
) -> _Exchange:
    if setup.software == "byteps":
        return _byteps(setup, model, group, rate, compute_s, k)
    cost = ring_cost(setup, group, rate, k)
    times = ready_times(model.ready, compute_s)
    if setup.software == "paisoar":
        size = bucket_bytes(model, cost)
        buckets = plan_buckets(
            model.gradients, first_bytes=min(FIRST_BUCKET_BYTES, size), bucket_bytes=size
        )
        timed = [(max(times[i] for i in b.members), float(4 * b.count)) for b in buckets]
        played = play_buckets(timed, compute_s, cost)
        return _Exchange(played, played.busy_s, size)
    out = sorted(zip(times, map(float, model.sizes), strict=True))
    played = play_fused(out, compute_s, cost, FUSION_BYTES, CYCLE_S)
    return _Exchange(played, played.busy_s, FUSION_BYTES)


def bucket_bytes(model: Model, cost: Affine) -> int:
    """The size that the trainer would choose if it measured these costs."""
    total = model.gradient_bytes
    if total < _WORTH_MEASURING_BYTES or cost(1.0) == 0:
        return BUCKET_BYTES
    sizes = [size for size in CANDIDATES_BYTES if size <= max(total // 4, BUCKET_BYTES)]
    return smallest_good(sizes, [cost(size) for size in sizes])


def _servers(
    setup: Setup, model: Model, group: Group, rate: Rate | None, compute_s: float, k: Constants
) -> _Exchange:
    servers = _servers_of(setup, group)
    pieces = place(model.sizes, servers, setup.placement)
    costs = server_costs(setup, group, rate, k)
    played = play_servers(model, pieces, compute_s, costs, servers)
    return _Exchange(played, played.busy_s, 0)


def _byteps(
    setup: Setup, model: Model, group: Group, rate: Rate | None, compute_s: float, k: Constants
) -> _Exchange:
    """BytePS: each byte once up and once down, both at the same time, its stages as well.

    As many servers as hosts, on hosts of their own: what a host sends is what a server takes
    in. They talk over many connections, so TCP's limit for one does not hold.
    """
    inside = k.nvlink_rate if setup.host_link == "nvlink" else k.pcie_rate
    per_byte = max(volume(group.per_host) / inside, 1 / k.pcie_rate)
    if rate is not None:
        network = network_rate(setup, rate, k, rate.bps / 8)
        per_byte = max(per_byte, WIRE_BYTES[setup.wire] / 4 / network)
    cost = Affine(0.0, per_byte)
    times = ready_times(model.ready, compute_s)
    out = sorted(zip(times, map(float, model.sizes), strict=True))
    played = play_fused(out, compute_s, cost, PARTITION_BYTES, 0.0)
    return _Exchange(played, played.busy_s, PARTITION_BYTES)
