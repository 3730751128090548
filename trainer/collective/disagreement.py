"""What two ranks are told that have come to different collectives."""

from __future__ import annotations

from trainer.collective.errors import MismatchError
from trainer.collective.stamp import ENDS, Kind, Stamp

_EVEN_OUT = (
    "Give every rank as many steps: common_steps(n) of trainer.uneven is the least of all ranks', "
    "where n is this rank's own number. Pass model.fit as many batches, such as "
    "dataset.take(common_steps(n)); in a loop of your own write `for batch in in_step(batches)`."
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
    if end.kind is Kind.END_OF_PROGRAM:
        return MismatchError(
            f"rank {ended} has come to the end of its program, "
            f"rank {going} goes on and waits for it.",
            advice=f"If it is their data that end at different times: {_EVEN_OUT}",
        )
    epoch = " in an epoch" if end.kind is Kind.END_OF_EPOCH else ""
    return MismatchError(
        f"the ranks have different numbers of steps{epoch}: rank {ended} has {end.count}, "
        f"rank {going} has more and is in step {end.count + 1}.",
        advice=_EVEN_OUT,
    )
