"""RED as ``tc`` is told of it.

``tc`` takes thresholds in bytes, and a burst in packets from which it computes the
weight of its average queue length. DCQCN wants marks on the queue as it is now, so
the least weight is asked for. Hardware ignores the average: mlxsw takes thresholds,
probability and the ECN flag only (Linux, ``spectrum_qdisc.c``).

Sources: iproute2 ``tc/q_red.c`` and ``tc/tc_red.c`` (arguments, JSON keys, the
weight); tc-red(8); recorded output of iproute2 6.1 on Linux 6.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fabric.qos import Ecn

AVERAGE_PACKET_BYTES = 1000
# What still fits behind Kmax, as a multiple of it: the queue's own end.
LIMIT_FACTOR = 4
# The largest probability that tc stores: 1 would overflow its 32 bits.
_MAX_PROBABILITY = 0.9999
_FLAGS = ("ecn", "harddrop", "adaptive", "nodrop")
_MAX_BURST_PACKETS = 1 << 20


@dataclass(frozen=True, slots=True)
class Red:
    """One RED qdisc below a band. ``ewma`` is the logarithm of its weight."""

    handle: str
    limit_bytes: int
    min_bytes: int
    max_bytes: int
    percent: int
    flags: tuple[str, ...]
    ewma: int | None = None

    @property
    def ecn(self) -> Ecn | None:
        """Its marking; None where it drops instead."""
        if "ecn" not in self.flags:
            return None
        return Ecn(self.min_bytes, self.max_bytes, self.percent)

    def same_as(self, other: Red) -> bool:
        """Whether both do the same to packets, as far as an intent says."""
        return (self.ecn, self.flags) == (other.ecn, other.flags)

    @property
    def arguments(self) -> str:
        """What follows ``red`` on ``tc``'s command line."""
        packet = min(AVERAGE_PACKET_BYTES, self.min_bytes)
        probability = min(self.percent / 100, _MAX_PROBABILITY)
        words = (
            f"limit {self.limit_bytes} min {self.min_bytes} max {self.max_bytes} "
            f"avpkt {packet} burst {self._burst(packet)} probability {probability:g}"
        )
        return " ".join([words, *self.flags])

    def _burst(self, packet_bytes: int) -> int:
        """The burst with this weight; the least possible one where none is asked for."""
        least = burst = max(-(-self.min_bytes // packet_bytes), 1)
        while self.ewma is not None and burst < _MAX_BURST_PACKETS:
            if ewma_of(self.min_bytes, burst, packet_bytes) == self.ewma:
                return burst
            burst += max(burst // 8, 1)
        return least


def of_ecn(ecn: Ecn, handle: str) -> Red:
    """RED that marks so."""
    limit = LIMIT_FACTOR * ecn.kmax_bytes
    return Red(handle, limit, ecn.kmin_bytes, ecn.kmax_bytes, ecn.pmax_percent, ("ecn",))


def of_options(handle: str, options: Mapping[str, Any]) -> Red | None:
    """From ``tc -j -d qdisc show``; None where a figure is missing.

    Without ``-d``, or for a RED of an old tool, there is no probability.
    """
    figures = [options.get(name) for name in ("limit", "min", "max")]
    probability = options.get("probability")
    if not all(isinstance(figure, int) for figure in figures) or probability is None:
        return None
    limit, low, high = (int(figure or 0) for figure in figures)
    flags = tuple(flag for flag in _FLAGS if options.get(flag) is True)
    return Red(handle, limit, low, high, round(100 * probability), flags, options.get("ewma"))


def ewma_of(min_bytes: int, burst_packets: int, packet_bytes: int) -> int | None:
    """The weight that ``tc`` chooses; None where it refuses. ``tc_red_eval_ewma``."""
    wanted = burst_packets + 1 - min_bytes / packet_bytes
    if wanted < 1:
        return None
    weight = 0.5
    for ewma in range(1, 32):
        if wanted <= (1 - (1 - weight) ** burst_packets) / weight:
            return ewma
        weight /= 2
    return None
