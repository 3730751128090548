"""What measures on hosts: perftest, or our own program over pyverbs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from validation.probes.hosts.options import Options
from validation.probes.hosts.pairtest import End, PairTest


class ReportError(ValueError):
    """A report that makes no sense or shows an impossible figure; the text says why."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """One line of a tool and the advice for it; ``rank`` is small for causes."""

    rank: int
    line: str
    advice: str


@dataclass(frozen=True, slots=True)
class Expected:
    """What a report must show of its test: device, MTU, GIDs, and the slower wire."""

    rdma: str
    mtu: int
    gid_index: int
    local: str
    remote: str
    speed_bps: int
    elapsed_s: float


@dataclass(frozen=True)
class Figures:
    """What one pair achieved: whole messages, goodput, half round trips."""

    completed: int
    goodput_bps: float
    latency_us: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Installed:
    """What a host has of an instrument; ``problem`` says why it cannot measure there."""

    release: str
    options: frozenset[str] = frozenset()
    problem: str = ""


class Instrument(Protocol):
    """Measures one pair by a program on each of its hosts."""

    @property
    def name(self) -> str:
        """As ``--probe`` names it."""

    @property
    def files(self) -> Mapping[str, str]:
        """What a host is sent into the step's folder before anything starts there."""

    def programs(self, options: Options) -> tuple[str, ...]:
        """Programs that a host must have."""

    def questions(self, options: Options) -> tuple[str, ...]:
        """Commands that :meth:`installed` reads. None fails for what a host lacks."""

    def installed(
        self, options: Options, here: frozenset[str], outputs: Mapping[str, str]
    ) -> Installed:
        """What a host with these programs has, from the answers."""

    def words(
        self, test: PairTest, end: End, options: Options, *, mtu: int, port: int,
        folder: str, peer: str = "", json_file: str = "",
    ) -> tuple[str, ...]:  # fmt: skip
        """One end's command. A server has no ``peer``; ``json_file`` where one is written."""

    def figures(self, test: PairTest, out: str, expected: Expected, json_text: str) -> Figures:
        """The client's report as numbers. Raises ReportError where they cannot be right."""

    def complaints(self, text: str) -> Iterator[Complaint]:
        """Every line that says why a test failed, with what to do."""

    def noise(self, text: str) -> tuple[str, ...]:
        """Warnings that do not spoil a test, each once."""

    def without_samples(self, out: str) -> str:
        """A report less its samples, which are kept elsewhere."""
