"""What can go wrong between ranks. All are :class:`fabric.errors.PeerError` (exit 3).

PeerError
├── LostPeerError      a rank died, stopped, raised, or did not come in time
├── MismatchError      two ranks were asked to do different things
└── WeightsDifferError ranks hold different weights after the same step
"""

from __future__ import annotations

from dataclasses import dataclass

from fabric.errors import PeerError

_SAID_CHARACTERS = 400


@dataclass(frozen=True)
class RankId:
    """Who a rank is: its number, and where its process runs."""

    rank: int
    host: str
    pid: int

    def __str__(self) -> str:
        return f"rank {self.rank} (host {self.host}, pid {self.pid})"


@dataclass(frozen=True)
class Failure:
    """Why a job ends: the first rank that failed, and how.

    ``at`` is what that rank last said it was doing, e.g. ``step 12, bucket 3``;
    ``seconds`` is how long the others had waited for it, 0 when they had not.
    """

    culprit: RankId | None
    cause: str
    at: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        who = f"{self.culprit} " if self.culprit else ""
        at = f", last heard of at {self.at}" if self.at else ""
        seconds = f", {self.seconds:.1f} s waited for" if self.seconds else ""
        return f"{who}{self.cause}{at}{seconds}"


def in_short(error: BaseException) -> str:
    """One line about an error that is none of ours: TensorFlow's fill a page.

    What it says around the matter is left out: the graph's traceback, which is
    indented, and hints. The rank's own output has all of it.
    """
    around = ("Graph execution error", "Detected at node", "Hint: ", "Exception encountered when")
    lines = [line for line in str(error).splitlines() if line.strip()]
    plain = [line for line in lines if not line[0].isspace() and not line.startswith(around)]
    said = (plain or lines or [""])[0].strip()
    cut = said if len(said) <= _SAID_CHARACTERS else f"{said[:_SAID_CHARACTERS]}..."
    return f"{type(error).__name__}: {cut}"


class LostPeerError(PeerError):
    """A rank died, stopped, raised, or did not come in time; ``failure`` says which and why.

    ``detail``, lines that end with a line break, comes before it: the last line is what counts.
    """

    def __init__(
        self, failure: Failure, *, doing: str = "", detail: str = "", advice: str = ""
    ) -> None:
        start = f"{doing}:{' ' if not detail else chr(10)}" if doing else ""
        super().__init__(f"{start}{detail}{failure}", advice=advice)
        self.failure = failure


class MismatchError(PeerError):
    """Two ranks were asked to do different things in the same place of the job."""

    ADVICE = (
        "All ranks must run the same program and versions, and call the same collectives "
        "in the same order with the same shapes."
    )

    def __init__(self, message: str, *, advice: str = ADVICE) -> None:
        super().__init__(message, advice=advice)


class WeightsDifferError(PeerError):
    """Ranks hold different weights although they have applied the same gradients."""

    ADVICE = (
        "Something changes weights outside of the optimizer on some ranks, e.g. random "
        "layers or callbacks; go back to the last checkpoint."
    )

    def __init__(self, message: str, *, advice: str = ADVICE) -> None:
        super().__init__(message, advice=advice)
