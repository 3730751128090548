"""DCQCN settings of the reference's senders, and ECN marking at its switches."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path

from fabric.errors import InputError
from fabric.sim.reference.topofile import parse_rate, words_by_line
from fabric.units import parse_size_bytes


@dataclass(frozen=True, slots=True)
class DcqcnSet:
    """What a sender's reaction point is set to.

    Whole microseconds, bits a second. There is no byte counter, and no rate for
    the first notification: a sender keeps its rate until its first check.
    """

    alpha_timer_us: int
    decrease_interval_us: int
    increase_timer_us: int
    fast_recovery: int
    rate_ai_bps: int
    rate_hai_bps: int
    g: float = 1 / 256
    min_rate_bps: int = 100_000_000
    clamp_target: bool = False


# P1: HPCC run.py "dcqcn" at 25 Gb/s; P2: the DCQCN paper as ns3-rdma has it.
SETS = {
    "P1": DcqcnSet(1, 4, 300, 1, 5_000_000, 50_000_000),
    "P2": DcqcnSet(55, 50, 55, 5, 40_000_000, 200_000_000),
}

# The names of HPCC's configuration files, which are accepted as well.
_HPCC_NAMES = {
    "ALPHA_RESUME_INTERVAL": "alpha_timer_us",
    "RATE_DECREASE_INTERVAL": "decrease_interval_us",
    "RP_TIMER": "increase_timer_us",
    "FAST_RECOVERY_TIMES": "fast_recovery",
    "RATE_AI": "rate_ai_bps",
    "RATE_HAI": "rate_hai_bps",
    "EWMA_GAIN": "g",
    "MIN_RATE": "min_rate_bps",
    "CLAMP_TARGET_RATE": "clamp_target",
}
_NAMES = tuple(field.name for field in dataclasses.fields(DcqcnSet))


def read_dcqcn(text: str) -> DcqcnSet:
    """``P1``, ``P2``, or a file with one ``name value`` a line; what it leaves out is P1's.

    Names are those of :class:`DcqcnSet` or of HPCC's configuration files; rates are
    written like ``40Mb/s``. InputError names file and line.
    """
    if text in SETS:
        return SETS[text]
    path = Path(text)
    if not path.exists():
        raise InputError(
            f"--dcqcn {text}: neither a set ({', '.join(SETS)}) nor a file",
            advice="A file has lines such as: increase_timer_us 55",
        )
    found: dict[str, int | float | bool] = {}
    for line, words in words_by_line(path):
        try:
            if len(words) != 2:
                raise ValueError(f"{len(words)} words; a line has a name and a value")
            name = words[0].rstrip(":=")
            name = _HPCC_NAMES.get(name, name)
            if name not in _NAMES:
                raise ValueError(f"unknown key {name!r}; there are {', '.join(_NAMES)}")
            if name in found:
                raise ValueError(f"{name} is given twice")
            found[name] = _value(name, words[1])
        except ValueError as error:
            raise InputError(str(error), file=path, line=line) from error
    return dataclasses.replace(SETS["P1"], **found)  # type: ignore[arg-type]


def _value(name: str, text: str) -> int | float | bool:
    if name == "clamp_target":
        if text not in ("0", "1", "true", "false"):
            raise ValueError(f"{name} is {text!r}, neither 0 nor 1")
        return text in ("1", "true")
    if name.endswith("_bps"):
        rate = parse_rate(text)
        if rate <= 0:
            raise ValueError(f"{name} is {text}; a rate is above zero")
        return rate
    number = float(text)
    if name == "g":
        if not 0 < number < 1:
            raise ValueError(f"g is {text}; it lies between 0 and 1")
        return number
    least = 0 if name == "fast_recovery" else 1
    if not math.isfinite(number) or number != int(number) or not least <= number <= 10**9:
        raise ValueError(f"{name} is {text}; it is a whole number from {least} up")
    return int(number)


@dataclass(frozen=True, slots=True)
class Ecn:
    """Marking on dequeue: none up to ``kmin_bytes``, all above ``kmax_bytes``, linear between.

    ``pmax`` is the probability at ``kmax_bytes``. ``scaled`` ports have thresholds
    in proportion to their rate, the given ones being those of the hosts' rate.
    """

    kmin_bytes: int
    kmax_bytes: int
    pmax: float
    scaled: bool = False


def read_ecn(text: str, *, scaled: bool = False) -> Ecn | None:
    """``off``, or ``KMIN,KMAX,PMAX`` such as ``100KB,400KB,0.2`` (bare numbers are bytes)."""
    if text == "off":
        return None
    words = text.split(",")
    try:
        if len(words) != 3:
            raise ValueError("three values are needed")
        kmin, kmax = (_size(word) for word in words[:2])
        pmax = float(words[2])
        if kmax < kmin:
            raise ValueError("KMAX is below KMIN")
        if not 0 <= pmax <= 1:
            raise ValueError(f"PMAX is {words[2]}; it is a probability from 0 to 1")
    except ValueError as error:
        raise InputError(
            f"--ecn {text}: {error}", advice="Write it like 100KB,400KB,0.2, or off."
        ) from error
    return Ecn(kmin, kmax, pmax, scaled)


def _size(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else parse_size_bytes(text)
