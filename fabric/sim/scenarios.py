"""Traffic patterns between a site's NICs: what ``paisoar sim run --scenario`` plays."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from fabric.errors import InputError
from fabric.sim.api import Flow
from fabric.site import Site
from fabric.topology import PortRef

Pairs = Sequence[tuple[PortRef, PortRef]]

BURST_BYTES = 1_000_000
BURST_EVERY_US = 4000.0
_LONG_BYTES = 1 << 20


def scenario_flows(site: Site, name: str, duration_us: float, seed: int) -> tuple[Flow, ...]:
    """The flows of a scenario; they last until the simulation ends.

    ``incast``: every NIC to the last one. ``permutation``: each to one other, at
    random. ``ring``: each to the next. ``alltoall``: each to every other.
    ``burst``: every NIC sends 1 MB to the last one, all at once, every 4 ms.
    InputError where there is no such scenario, or no two hosts.
    """
    check_scenario(name)
    ends = site.topology.rails()[0] if site.topology.endpoints else ()
    if len(ends) < 2:
        raise InputError(f"--scenario {name}: traffic needs two hosts", file=site.path)
    return flows_between(ends, site.intent.roce.dscp[0], name, duration_us, seed)


def check_scenario(name: str) -> None:
    """InputError where there is no such scenario."""
    if name not in _SCENARIOS:
        raise InputError(
            f"--scenario {name}: there is none of this name",
            advice=f"There are: {', '.join(_SCENARIOS)}.",
        )


def flows_between(
    ends: Sequence[PortRef], dscp: int, name: str, duration_us: float, seed: int
) -> tuple[Flow, ...]:
    """The flows of a scenario between these NICs, two or more."""
    pairs = _SCENARIOS[name](ends, random.Random(seed))  # noqa: S311 - no secret
    if name != "burst":
        return tuple(Flow(a, b, dscp, message_bytes=_LONG_BYTES) for a, b in pairs)
    return tuple(
        Flow(a, b, dscp, message_bytes=BURST_BYTES, messages=1, start_us=number * BURST_EVERY_US)
        for number in range(_rounds(duration_us))
        for a, b in pairs
    )


def flow_count(name: str, ends: int, duration_us: float) -> int:
    """How many flows :func:`flows_between` gives between so many NICs."""
    if name == "alltoall":
        return ends * (ends - 1)
    return (ends - 1) * _rounds(duration_us) if name == "burst" else ends


def _rounds(duration_us: float) -> int:
    return max(1, int(duration_us // BURST_EVERY_US))


def _incast(ends: Sequence[PortRef], _random: random.Random) -> Pairs:
    return [(end, ends[-1]) for end in ends[:-1]]


def _permutation(ends: Sequence[PortRef], chosen: random.Random) -> Pairs:
    # A cycle through all ends in random order sends none of them to itself.
    order = list(ends)
    chosen.shuffle(order)
    following = dict(zip(order, [*order[1:], order[0]], strict=True))
    return [(end, following[end]) for end in ends]


def _ring(ends: Sequence[PortRef], _random: random.Random) -> Pairs:
    return list(zip(ends, [*ends[1:], ends[0]], strict=True))


def _alltoall(ends: Sequence[PortRef], _random: random.Random) -> Pairs:
    return [(a, b) for a in ends for b in ends if a != b]


_SCENARIOS: dict[str, Callable[[Sequence[PortRef], random.Random], Pairs]] = {
    "incast": _incast,
    "permutation": _permutation,
    "ring": _ring,
    "alltoall": _alltoall,
    "burst": _incast,
}
SCENARIOS = tuple(_SCENARIOS)
