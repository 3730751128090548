"""Some ranks of a job, as a transport between them sees it: numbered from 0, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainer.collective.membership import Membership


class Party:
    """A part of a job's ranks, with our place in it; serves transports as their patience.

    ``ranks`` are the members' numbers in the job; all of them make the same party.
    ``address`` is where others reach us.
    """

    def __init__(self, membership: Membership, ranks: Sequence[int]) -> None:
        self.ranks = tuple(ranks)
        self.rank = self.ranks.index(membership.rank)
        self.size = len(self.ranks)
        self.host = membership.host
        self.address = membership.address
        self._membership = membership

    def gather(self, topic: str, value: Any) -> list[Any]:  # noqa: ANN401 (any JSON)
        """What every member says under ``topic``, in the party's order."""
        return self._membership.gather(topic, value, self.ranks)

    def prove(self, purpose: bytes) -> bytes:
        """Proof, for another rank, that we belong to the job; 32 bytes."""
        return self._membership.prove(purpose)

    def number(self, peer: int) -> int:
        """The member's number in the job, as people know it."""
        return self.ranks[peer]

    def check(self, peer: int, waited_s: float) -> None:
        """See :class:`~trainer.collective.transport.Patience`."""
        self._membership.check(self.ranks[peer], waited_s)

    def lost(self, peer: int, cause: str) -> Exception:
        """See :class:`~trainer.collective.transport.Patience`."""
        return self._membership.lost(self.ranks[peer], cause)
