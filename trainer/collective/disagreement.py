"""What two ranks are told that have come to different collectives."""

from __future__ import annotations

from trainer.collective.errors import MismatchError
from trainer.collective.stamp import ENDS, Kind, Stamp

_EVEN_OUT = (
    "Give every rank as many steps: model.fit(..., steps_per_epoch=common_steps(n)), where n is "
    "how many this rank has, or `for batch in in_step(batches)` in a loop of your own; both are "
    "in trainer.uneven."
)


def disagreement(mine: int, stamp: Stamp, other: int, theirs: Stamp) -> MismatchError:
    """The error on rank ``mine``, at ``stamp``, that has met rank ``other`` at ``theirs``."""
    for ended, end, going, its in ((mine, stamp, other, theirs), (other, theirs, mine, stamp)):
        if end.kind in ENDS and its.kind not in ENDS:
            return _uneven(ended, end, going)
    return MismatchError(
        f"rank {other} and rank {mine} disagree: "
        f"rank {other} is in {theirs}, rank {mine} in {stamp}."
    )


def _uneven(ended: int, end: Stamp, going: int) -> MismatchError:
    if end.kind is Kind.END_OF_TRAINING:
        return MismatchError(
            f"the ranks have different numbers of steps: rank {ended} has {end.count}, "
            f"rank {going} has more and is in step {end.count + 1}.",
            advice=_EVEN_OUT,
        )
    return MismatchError(
        f"rank {ended} has come to the end of its program, rank {going} goes on and waits for it.",
        advice=f"If it is their data that end at different times: {_EVEN_OUT}",
    )
