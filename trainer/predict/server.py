"""A step with parameter servers: fetched ahead of the layers, pushed after them.

Every server carries one thing at a time in each direction: it sends a variable to all
that fetch it (outcast), later takes in all gradients of it (incast). A layer starts when
its variables are there; the step ends when the last gradient has come in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.placement import by_bytes, round_robin
from trainer.predict.constants import Constants
from trainer.predict.layers import Model
from trainer.predict.rates import Rate
from trainer.predict.ring import Group, network_rate
from trainer.predict.setup import WIRE_BYTES, Placement, Setup
from trainer.predict.timeline import BACKWARD_PART, Played

# (server, bytes) of each piece of each variable.
Pieces = Sequence[Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Costs:
    """What a server and a host need: seconds for one variable, sent to all that fetch it.

    ``server_s_per_byte`` of the server's port, ``variable_s_per_byte`` of the one thread
    that packs or unpacks a variable beside those of others, ``host_s_per_byte`` of a
    host's port and bus; ``call_s`` for the server's calls.
    """

    server_s_per_byte: float
    variable_s_per_byte: float
    host_s_per_byte: float
    call_s: float


def place(sizes: Sequence[int], servers: int, placement: Placement) -> Pieces:
    """Which server holds what."""
    if placement == "bytes":
        return by_bytes(sizes, servers).pieces
    if placement == "round-robin":
        return round_robin(sizes, servers).pieces
    loads = [0] * servers
    found: list[tuple[tuple[int, int], ...]] = []
    for size in sizes:
        server = loads.index(min(loads))
        loads[server] += size
        found.append(((server, size),))
    return found


def server_costs(setup: Setup, group: Group, rate: Rate | None, k: Constants) -> Costs:
    """What fetching or pushing costs; both directions alike."""
    copies = setup.copies or group.per_host
    wire = WIRE_BYTES[setup.wire] / 4
    # Everything crosses the PCI Express bus once for each GPU, and is added in memory.
    inside = 1 / k.pcie_rate + group.per_host / k.memory_rate / max(1, group.hosts)
    if rate is None:
        return Costs(inside, inside, inside, k.host_hop_s)
    remote = copies * (group.hosts - 1)
    port = network_rate(setup, rate, k, rate.bps / 8)
    packed, call_s = port, k.verbs_call_s
    if setup.transport == "tcp":
        packed = k.grpc_rate if setup.newer_grpc else k.grpc_2017_rate
        call_s = k.grpc_call_s if setup.newer_grpc else k.grpc_2017_call_s
    else:
        call_s += rate.crossing * rate.loss * k.rto_s
    far = copies * (group.hosts - 1) / group.hosts
    host = rate.line_bps / 8
    return Costs(
        server_s_per_byte=remote * wire / port,
        variable_s_per_byte=remote * wire / min(packed, port),
        host_s_per_byte=far * wire / host + inside,
        call_s=remote * call_s,
    )


def play_servers(
    model: Model, pieces: Pieces, compute_s: float, costs: Costs, servers: int
) -> Played:
    """Fetch, forward, backward, push."""
    forward_s = compute_s * (1 - BACKWARD_PART)
    now = 0.0
    parts = [*model.begun[1:], 1.0]
    fetched = _fetch(model, pieces, costs, servers)
    for at, begun, following in zip(fetched, model.begun, parts, strict=True):
        now = max(now, at) + forward_s * (following - begun)
    backward_s = compute_s - forward_s
    ready = [now + part * backward_s for part in model.ready]
    end = max(now + backward_s, _push(pieces, ready, costs, servers))
    # Without computation there is nothing to wait for but the exchange.
    busy = end if compute_s == 0 else play_servers(model, pieces, 0.0, costs, servers).end_s
    return Played(end, busy, 2 * sum(len(parts) for parts in pieces))


def _fetch(model: Model, pieces: Pieces, costs: Costs, servers: int) -> list[float]:
    """When each variable has arrived; all are asked for at once, first layers first."""
    free, arrived, host = [0.0] * servers, [], 0.0
    for size, parts in zip(model.sizes, pieces, strict=True):
        host += size * costs.host_s_per_byte
        last = host
        for server, nbytes in parts:
            began = free[server]
            free[server] += nbytes * costs.server_s_per_byte + costs.call_s
            last = max(last, free[server], began + nbytes * costs.variable_s_per_byte)
        arrived.append(last)
    return arrived


def _push(pieces: Pieces, ready: Sequence[float], costs: Costs, servers: int) -> float:
    """When the last gradient is in; last layers first."""
    free, host, end = [0.0] * servers, 0.0, 0.0
    for position in reversed(range(len(pieces))):
        for server, nbytes in pieces[position]:
            began = max(free[server], ready[position])
            free[server] = began + nbytes * costs.server_s_per_byte + costs.call_s
            end = max(end, free[server], began + nbytes * costs.variable_s_per_byte)
            host = max(host, ready[position]) + nbytes * costs.host_s_per_byte
    return max(end, host)
