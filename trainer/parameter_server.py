"""The article's baseline: a synchronous parameter server on the same transports.

Some ranks are servers beside their own work. In every step each server sums
all ranks' gradients of the variables that it holds (push, N to 1) and gives
the sums back to all (pull, 1 to N). Every rank applies them itself, so the
optimizer, clipping, checkpoints and the result are those of the ring: what
differs is the traffic, which is a parameter server's: the same bytes both ways
through the servers' links, incast included. Variables are placed by bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fabric.errors import InputError
from trainer.collective.communicator import Communicator
from trainer.collective.courier import Courier
from trainer.collective.fusion import Bucket, BucketLine, Gradient, plan_buckets
from trainer.exchange import Carrier
from trainer.placement import Placement, by_bytes


class ServerLine(BucketLine):
    """A bucket whose pieces (server, elements) are each summed by their server."""

    def __init__(
        self,
        courier: Courier,
        bucket: Bucket,
        shapes: Sequence[tuple[int, ...]],
        pieces: Sequence[tuple[int, int]],
    ) -> None:
        super().__init__(courier, bucket, shapes)
        self.pieces = tuple(pieces)

    def _sum(self, communicator: Communicator, doing: str) -> np.ndarray:
        start = 0
        for server, count in self.pieces:
            part = self._buffer[start : start + count]
            communicator.reduce(
                part, server, layout=self.bucket.layout, doing=f"{doing}, push to rank {server}"
            )
            communicator.broadcast(part, server, doing=f"{doing}, pull from rank {server}")
            start += count
        return self._buffer


def server_planner(
    servers: int = 0,
) -> Callable[[Courier, Sequence[Gradient], int], list[Carrier]]:
    """A planner for :class:`~trainer.exchange.GradientExchange`; ranks below ``servers`` serve.

    0: all ranks. InputError, when it plans, for more servers than ranks.
    """

    def plan(courier: Courier, gradients: Sequence[Gradient], bucket_bytes: int) -> list[Carrier]:
        size = courier.communicator.size
        if servers > size:
            raise InputError(f"{servers} servers are more than {size} ranks", key="servers")
        placement = place(gradients, servers or size)
        carriers = []
        for server in range(servers or size):
            whole = [
                i
                for i, pieces in enumerate(placement.pieces)
                if len(pieces) == 1 and pieces[0][0] == server
            ]
            carriers += _carriers(courier, gradients, whole, server, bucket_bytes)
        for position, pieces in enumerate(placement.pieces):
            if len(pieces) > 1:
                carriers.append(_cut(courier, gradients[position], position, pieces))
        # Last layers first, whoever serves them.
        return sorted(carriers, key=lambda carrier: -max(carrier.members))

    return plan


def place(gradients: Sequence[Gradient], servers: int) -> Placement:
    """Where the variables of these gradients lie."""
    return by_bytes([g.count * g.dtype.itemsize for g in gradients], servers)


def _carriers(
    courier: Courier,
    gradients: Sequence[Gradient],
    whole: Sequence[int],
    server: int,
    bucket_bytes: int,
) -> list[Carrier]:
    found = []
    buckets = plan_buckets(
        [gradients[i] for i in whole], first_bytes=bucket_bytes, bucket_bytes=bucket_bytes
    )
    for bucket in buckets:
        members = tuple(whole[i] for i in bucket.members)
        shapes = [gradients[i].shape for i in members]
        line = ServerLine(courier, bucket, shapes, [(server, bucket.count)])
        found.append(Carrier(f"bucket {bucket.index} of server {server}", members, line, []))
    return found


def _cut(
    courier: Courier, gradient: Gradient, position: int, pieces: Sequence[tuple[int, int]]
) -> Carrier:
    (bucket,) = plan_buckets([gradient], bucket_bytes=1)
    counts = [(server, nbytes // gradient.dtype.itemsize) for server, nbytes in pieces]
    line = ServerLine(courier, bucket, [gradient.shape], counts)
    return Carrier(f"pieces of {gradient.name}", (position,), line, [])
