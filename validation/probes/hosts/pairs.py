"""Pairs under way in one step: their ports, their files, and why some are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fabric.errors import PaisoarError
from validation.probes.hosts.pairtest import PairTest
from validation.traffic import Pair


@dataclass
class RunningPair:
    """One pair. ``program`` sends its TCP, empty for RDMA.

    ``files`` is what its two jobs left, by name: ``client0.out``. ``lost`` says why there
    is no result; empty while there may be one.
    """

    test: PairTest
    program: str = ""
    port: int = 0
    lost: str = ""
    files: dict[str, str] = field(default_factory=dict)

    @property
    def ends(self) -> Pair:
        """Client's port, server's port."""
        return self.test.source, self.test.target

    @property
    def hosts(self) -> tuple[str, str]:
        """Client's host, server's host."""
        return self.test.source.device, self.test.target.device

    @property
    def server(self) -> str:
        """Name of the server's job."""
        return f"server{self.test.name}"

    @property
    def client(self) -> str:
        """Name of the client's job."""
        return f"client{self.test.name}"

    @property
    def tool(self) -> str:
        """The program that its ends run."""
        return self.program or self.test.tool.program

    def lose(self, reason: str) -> None:
        """Leave the pair out from here on; the first reason stays."""
        self.lost = self.lost or reason


def alive(pairs: Iterable[RunningPair]) -> list[RunningPair]:
    """Pairs that may still bring a result."""
    return [pair for pair in pairs if not pair.lost]


def hosts_of(pairs: Iterable[RunningPair]) -> tuple[str, ...]:
    """Every host of these pairs, once."""
    return tuple(dict.fromkeys(host for pair in pairs for host in pair.hosts))


def lose_host(pairs: Iterable[RunningPair], host: str, reason: str) -> None:
    """Leave out every pair of this host."""
    for pair in pairs:
        if host in pair.hosts:
            pair.lose(reason)


def lose_hosts(pairs: Iterable[RunningPair], failed: Mapping[str, PaisoarError]) -> None:
    """Leave out the pairs of hosts that did not answer."""
    known = list(pairs)
    for host, error in failed.items():
        lose_host(known, host, str(error))
