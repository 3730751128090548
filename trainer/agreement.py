"""Before anything is built: all ranks of a job must mean the same job."""

from __future__ import annotations

from dataclasses import asdict, replace

from trainer.collective.errors import MismatchError
from trainer.orders import JobOrders
from trainer.rank import RankContext


def agree_on_orders(context: RankContext, orders: JobOrders) -> JobOrders:
    """Rank 0's orders, if all ranks have the same plan; MismatchError shows what differs.

    The pass of the gate and the place of checkpoints are rank 0's to know:
    ranks that a scheduler has started need not be told.
    """
    membership = context.membership
    mine = orders.payload()
    every = membership.gather("orders", mine)
    first = every[0]
    for rank, theirs in enumerate(every):
        differing = [
            f"{key} {theirs['plan'].get(key)!r} on rank {rank} and {value!r} on rank 0"
            for key, value in first["plan"].items()
            if theirs["plan"].get(key) != value
        ]
        if differing:
            raise MismatchError(
                f"rank {rank} was started with another plan than rank 0: {'; '.join(differing)}.",
                advice="Start every rank with the same command line.",
            )
    chosen = JobOrders.from_payload(first)
    assert asdict(chosen.plan) == asdict(orders.plan)
    return replace(chosen, plan=orders.plan)
