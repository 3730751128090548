"""Who is to blame for pairs that failed: a device only after two partners, a cable before it.

A pair that fails says that something between two ports is wrong, not which end. A port that
failed with two different partners, each of which did well with somebody else, is to blame;
one that failed with one partner is not. Where both ends of its cable have counted errors,
or one received what the other did not send, the cable is named instead of the device.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fabric.topology import Link, PortRef
from validation.criteria import Check, Judge
from validation.judgement.observation import Observation
from validation.traffic import Pair, pair_of

_PARTNERS = 2
_ERRORS = ("rx_crc_errors", "rx_icrc_errors", "link_down_events")


@dataclass(frozen=True, slots=True)
class Culprit:
    """A port to blame: partners that it failed with, and those that did well elsewhere."""

    port: PortRef
    failed_with: tuple[PortRef, ...]
    passed_with: tuple[PortRef, ...]
    sound_partners: tuple[PortRef, ...]

    @property
    def sureness(self) -> str:
        """``sure`` where every partner did well with others and it did so with none."""
        all_sound = set(self.failed_with) == set(self.sound_partners)
        return "sure" if all_sound and not self.passed_with else "likely"


def attribute(observation: Observation, checks: Sequence[Check]) -> tuple[Check, ...]:
    """The checks, pairs' failures with the device that is to blame, and ``blame`` for each.

    A failure whose cause the configuration showed keeps the place of that cause.
    """
    failed: dict[Pair, Check] = {}
    passed: set[Pair] = set()
    for check in checks:
        pair = _pair(check)
        if pair is not None and check.verdict == "FAIL" and not check.device:
            failed[pair] = check
        elif pair is not None and check.verdict == "PASS":
            passed.add(pair)
    found = culprits(failed, passed - set(failed))
    if not found:
        return tuple(checks)
    named = {id(failed[pair]): c for c in found for pair in failed if c.port in pair}
    blamed = [_blame(observation, culprit) for culprit in found]
    return (*(_placed(check, named.get(id(check))) for check in checks), *blamed)


def culprits(failed: Iterable[Pair], passed: Iterable[Pair]) -> tuple[Culprit, ...]:
    """Ports that explain the most failures, the guiltiest first; pairs left over blame nobody."""
    left = {frozenset(pair) for pair in failed}
    good: dict[PortRef, set[PortRef]] = defaultdict(set)
    for source, target in passed:
        if frozenset((source, target)) not in left:
            good[source].add(target)
            good[target].add(source)
    found = []
    while left:
        partners: dict[PortRef, set[PortRef]] = defaultdict(set)
        for pair in left:
            for end in pair:
                partners[end] |= pair - {end}
        port = max(sorted(partners), key=lambda end: (len(partners[end]), -len(good[end])))
        sound = {partner for partner in partners[port] if good[partner] - {port}}
        if len(partners[port]) < _PARTNERS or len(sound) < _PARTNERS:
            break
        found.append(
            Culprit(
                port,
                tuple(sorted(partners[port])),
                tuple(sorted(good[port])),
                tuple(sorted(sound)),
            )
        )
        left = {pair for pair in left if port not in pair}
    return tuple(found)


def _pair(check: Check) -> Pair | None:
    try:
        return pair_of(check.subject)
    except ValueError:
        return None


def _placed(check: Check, culprit: Culprit | None) -> Check:
    if culprit is None:
        return check
    return replace(check, device=culprit.port.device, port=culprit.port.port)


def _blame(observation: Observation, culprit: Culprit) -> Check:
    link = observation.site.topology.link_of[culprit.port]
    cable = _cable_is_bad(observation, link)
    judge = Judge(observation, "counters" if cable else "flows")
    total = len(culprit.failed_with) + len(culprit.passed_with)
    said = (
        f"{culprit.port} failed with {len(culprit.failed_with)} of {total} partners, "
        f"{len(culprit.sound_partners)} of which did well with others ({culprit.sureness})"
    )
    subject = f"{link.a} - {link.b}" if cable else str(culprit.port)
    reason = f"{said}: look at {'the cable: ' + cable if cable else 'this port and its host'}"
    return judge.failed("blame", subject, reason, culprit.port)


def _cable_is_bad(observation: Observation, link: Link) -> str:
    """What both ends of a cable say against it; empty where they do not agree."""
    ends = (link.a, link.b)
    seen = []
    for end in ends:
        moved = [
            delta
            for name in _ERRORS
            if (delta := observation.deltas.get(*end, name)) is not None and delta.known
        ]
        bad = [delta for delta in moved if delta.value]
        if bad:
            seen.append(f"{bad[0].label} moved by {bad[0].value:,}")
    return "; ".join(seen) if len(seen) == len(ends) else ""
