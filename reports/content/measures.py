"""What of a run's checks says how good a fabric is, by itself and beside an earlier run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from reports.content.words import count_of, number, percent
from validation.criteria import Check, overall
from validation.results.result import ValidationRun


def _share(value: float) -> str:
    return percent(value)


def _plain(unit: str) -> Callable[[float], str]:
    return lambda value: f"{number(round(value, 4))}{' ' if unit else ''}{unit}"


@dataclass(frozen=True)
class Measure:
    """One kind of check whose value is a quality: more is better, or less is.

    ``title`` names its worst value over all subjects, ``typical`` the median one where many
    are alike. ``summed`` is a count over all suites.
    """

    id: str
    title: str
    more_is_better: bool
    said: Callable[[float], str]
    typical: str = ""
    summed: bool = False

    def of(self, checks: Iterable[Check]) -> list[Check]:
        """The checks of this kind; of every suite where it is a sum."""
        if self.summed:
            return [check for check in checks if check.id.partition(".")[2] == self.id]
        return [check for check in checks if check.id == self.id]

    def total(self, values: Sequence[float]) -> float:
        """The worst of several, or their sum."""
        if self.summed:
            return math.fsum(values)
        return min(values) if self.more_is_better else max(values)


MEASURES = (
    Measure("loss", "Packets wrongly lost", False, _plain(""), summed=True),
    Measure("retransmission", "Retransmissions", False, _plain(""), summed=True),
    Measure("bandwidth.fraction", "Slowest pair, of the wire", True, _share, "Median pair"),
    Measure("bandwidth.bisection", "Bisection", True, _share),
    Measure("latency.p99", "Slowest answer (99th)", False, _plain("us"), "Median answer (99th)"),
    Measure("incast.fraction", "Worst incast, of the wire", True, _share, "Median incast"),
    Measure("incast.jain", "Least fair incast (Jain)", True, _plain(""), "Median fairness (Jain)"),
    Measure("mixed.share", "Least share of a class", True, _share, "Median share of a class"),
    Measure("burst.fraction", "Worst burst", True, _share, "Median burst"),
    Measure("collective.busbw", "Slowest collective, of the wire", True, _share, "Median step"),
    Measure("soak.cov", "Variation in the soak", False, _share),
    Measure("soak.ratio", "Worst cycle over mean", True, _share),
)
# What the top of the page shows; the rest is in the tables.
_ON_TOP = {
    *("loss", "bandwidth.fraction", "latency.p99", "incast.fraction", "mixed.share"),
    *("burst.fraction", "collective.busbw", "soak.ratio"),
}


@dataclass(frozen=True, slots=True)
class Tile:
    """One number of the top of the page; ``subject`` is where it was found."""

    title: str
    value: str
    limit: str
    verdict: str
    subject: str


def tiles(run: ValidationRun) -> tuple[Tile, ...]:
    """The worst of each measure that the run has, in the order of MEASURES."""
    found = []
    for measure in MEASURES:
        checks = measure.of(run.all_checks)
        if measure.id in _ON_TOP and checks:
            found.append(_tile(measure, checks))
    return tuple(found)


def _tile(measure: Measure, checks: Sequence[Check]) -> Tile:
    valued = [(check, check.value) for check in checks if check.value is not None]
    verdict = overall(checks)
    if not valued:
        return Tile(measure.title, "no result", "", verdict, checks[0].subject)
    value = measure.total([value for _, value in valued])
    limits = sorted({check.limit for check, _ in valued if check.limit is not None})
    bound = "at least" if measure.more_is_better else "at most"
    limit = f"{bound} {measure.said(limits[0])}" if len(limits) == 1 else ""
    at = "" if measure.summed else next(check.subject for check, worst in valued if worst == value)
    return Tile(measure.title, measure.said(value), limit, verdict, at)


def why(run: ValidationRun) -> tuple[str, ...]:
    """The verdict in sentences: how many checks, what failed most, what did not end."""
    checks = run.all_checks
    counts = {
        word: sum(check.verdict == word for check in checks) for word in ("FAIL", "NOT_RUN", "SKIP")
    }
    suites = count_of(len(run.suites), "suite")
    lines = []
    if run.status != "complete":
        lines.append(
            f"The run is {run.status}, not complete: what it says holds only for what it reached."
        )
    if not checks:
        lines.append("Nothing was checked.")
    elif not counts["FAIL"] and not counts["NOT_RUN"]:
        skipped = f"; {counts['SKIP']:,} skipped, each with its reason" if counts["SKIP"] else ""
        passed = count_of(len(checks) - counts["SKIP"], "check")
        lines.append(f"{passed} of {suites} passed{skipped}.")
    else:
        words = [
            f"{count:,} {said}"
            for count, said in ((counts["FAIL"], "failed"), (counts["NOT_RUN"], "did not run"))
            if count
        ]
        lines.append(
            f"Of {count_of(len(checks), 'check')} {' and '.join(words)}, {_where(run.failures)}."
        )
        lines += _cause(run.failures)
    lines += [f"{device} did not answer: {said}" for device, said in run.unread.items()]
    return tuple(lines)


def _where(failures: Sequence[Check]) -> str:
    suites = [check.suite for check in failures]
    counts = {name: suites.count(name) for name in suites}
    if len(counts) == 1:
        return f"all in {suites[0]}"
    return "in " + ", ".join(f"{name} ({count:,})" for name, count in counts.items())


def _cause(failures: Sequence[Check]) -> list[str]:
    """The port or device to which most failures point, and what the first of them says."""
    named = [(f"{check.device} {check.port}".strip(), check.reason) for check in failures]
    places = [place for place, _ in named if place]
    if not places:
        return [f"The first: {failures[0].reason}"]
    most = max(dict.fromkeys(places), key=places.count)
    reason = next(said for place, said in named if place == most)
    points = count_of(places.count(most), "failure points", "failures point")
    return [f"{points} to {most}: {reason.removeprefix(most).lstrip(': ')}"]
