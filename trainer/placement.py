"""Which server of a parameter server holds which variables.

TensorFlow's ``replica_device_setter`` deals variables out in turn, whatever
their size, so the server that gets VGG's first dense layer carries most of the
bytes. Here each variable, largest first, goes to the server with the fewest
bytes so far (Graham's longest-processing-time rule: at most 4/3 of the best
balance), and one that is larger than a server's fair share is cut into pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Pieces begin on cache lines.
GRAIN_BYTES = 64


@dataclass(frozen=True)
class Placement:
    """Where variables lie.

    ``pieces[i]`` are variable i's pieces in their order, each (server, bytes);
    ``loads`` the bytes of each server.
    """

    pieces: tuple[tuple[tuple[int, int], ...], ...]
    loads: tuple[int, ...]

    @property
    def imbalance(self) -> float:
        """The fullest server's bytes over the mean; 1 is perfect."""
        total = sum(self.loads)
        return max(self.loads) * len(self.loads) / total if total else 1.0


def by_bytes(sizes: Sequence[int], servers: int) -> Placement:
    """Place variables of these ``sizes`` in bytes so that the servers carry equal loads."""
    fair = -(-sum(sizes) // servers // GRAIN_BYTES) * GRAIN_BYTES or GRAIN_BYTES
    cut = [
        (variable, number, min(fair, size - start))
        for variable, size in enumerate(sizes)
        for number, start in enumerate(range(0, max(size, 1), fair))
    ]
    owners: dict[tuple[int, int], tuple[int, int]] = {}
    loads = [0] * servers
    for variable, number, size in sorted(cut, key=lambda piece: (-piece[2], piece[0], piece[1])):
        server = min(range(servers), key=lambda s: (loads[s], s))
        owners[variable, number] = (server, size)
        loads[server] += size
    pieces: list[list[tuple[int, int]]] = [[] for _ in sizes]
    for variable, number, _ in cut:
        pieces[variable].append(owners[variable, number])
    return Placement(tuple(tuple(part) for part in pieces), tuple(loads))


def round_robin(sizes: Sequence[int], servers: int) -> Placement:
    """Deal them out in turn, as TensorFlow's parameter server does."""
    loads = [0] * servers
    for variable, size in enumerate(sizes):
        loads[variable % servers] += size
    pieces = tuple(((variable % servers, size),) for variable, size in enumerate(sizes))
    return Placement(pieces, tuple(loads))
