"""TCP ports on which the two ends of a test meet before RDMA begins."""

from __future__ import annotations

from collections.abc import Collection

# perftest's own default comes first (IANA has nobody there).
FIRST_PORT = 18515
LAST_PORT = 20514


class Ports:
    """Hands out ports of each host; one that was just used comes last again.

    A closed connection keeps its port for a minute (TIME_WAIT).
    """

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def take(self, host: str, busy: Collection[int]) -> int | None:
        """A port on which nobody listens there; None where all are taken."""
        count = LAST_PORT - FIRST_PORT + 1
        start = self._next.get(host, 0)
        for step in range(count):
            place = (start + step) % count
            if FIRST_PORT + place not in busy:
                self._next[host] = place + 1
                return FIRST_PORT + place
        return None
