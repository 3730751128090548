"""A job of real ranks inside one test process: a thread a rank, real transports between them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from trainer.collective.communicator import (
    Communicator,
    TransportName,
    connect,
)
from trainer.collective.membership import Membership
from trainer.collective.rendezvous import Rendezvous
from trainer.collective.settings import NetworkSettings
from trainer.collective.wire import new_token

# A busy machine may have to compile all kernels first.
_WITHIN_S = 120.0


class Group:
    def __init__(self, rendezvous: Rendezvous, ranks: list[Communicator], pool: ThreadPoolExecutor):
        self.rendezvous = rendezvous
        self.ranks = ranks
        self._pool = pool

    def __call__(self, work: Callable[[Communicator], Any]) -> list[Any]:
        """What ``work`` gives on each rank, run at the same time; raises the first error."""
        return [future.result(timeout=_WITHIN_S) for future in self.start(work)]

    def start(self, work: Callable[[Communicator], Any]) -> list[Any]:
        return [self._pool.submit(work, rank) for rank in self.ranks]

    def errors(self, work: Callable[[Communicator], Any]) -> list[BaseException | None]:
        return [future.exception(timeout=_WITHIN_S) for future in self.start(work)]


@contextlib.contextmanager
def group(
    size: int,
    transport: TransportName = "shm",
    *,
    patience_s: float = 20.0,
    segment_bytes: int | None = None,
    settings: NetworkSettings | None = None,
    hosts: Sequence[str] = (),
    **rendezvous_options: Any,
) -> Iterator[Group]:
    """``hosts`` are the hosts that the ranks believe to be on, by rank."""
    token = new_token()
    with (
        Rendezvous(size, token, **rendezvous_options) as rendezvous,
        ThreadPoolExecutor(size) as pool,
    ):

        def start(rank: int) -> Communicator:
            member = Membership(rendezvous.address, token, rank, size, patience_s=patience_s)
            if hosts:
                member.host = hosts[rank]
            return connect(member, transport, segment_bytes=segment_bytes, settings=settings)

        ranks = list(pool.map(start, range(size)))
        try:
            yield Group(rendezvous, ranks, pool)
        finally:
            for rank in ranks:
                assert rank.membership is not None
                rank.membership.leave()
                rank.close()
