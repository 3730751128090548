"""A run beside an earlier one: what got better or worse, what changed, what cannot be compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import pandas as pd

from fabric.errors import InputError
from fabric.qos import DeviceQos
from reports.content.measures import MEASURES, Measure
from reports.content.words import count_of, number
from validation.certificates.fingerprint import explain
from validation.criteria import Check
from validation.files import read_file
from validation.results import frames
from validation.results.result import ValidationRun
from validation.results.states import STATES_FILE, states_from_bytes

# What moves by less is alike: repeated runs differ by as much.
ALIKE = 0.01
MEASURE_COLUMNS = ("measure", "compared", "before", "now", "change", "trend")
MOVER_COLUMNS = ("suite", "check", "subject", "before", "now", "change", "trend")
VERDICT_COLUMNS = ("suite", "check", "subject", "before", "now", "reason")
VOLUME_COLUMNS = ("suite", "what", "before", "now", "change")
_MAX_MOVERS = 12
_MAX_OF_KIND = 4
_NONE = "no such check"
# Counted while traffic flows; more is neither better nor worse by itself.
_VOLUMES = {
    "tx_pause_frames": "PFC frames sent",
    "ecn_marked_packets": "packets marked CE",
    "np_cnp_sent": "congestion notifications",
    "queue_drops": "packets dropped by egress queues",
}


@dataclass(frozen=True)
class Comparison:
    """Two runs of one site.

    ``measures``: each quality's worst value in both runs, over what both have measured.
    ``movers``: single subjects that moved most. ``verdicts``: checks judged otherwise.
    ``volumes``: counters, summed over a suite. ``fabric``: what differs in intent, cables,
    devices and limits. ``incomparable``: what is in one run only, or was measured otherwise.
    """

    run_id: str
    created_at: str
    verdict: str
    evidence_class: str
    measures: pd.DataFrame
    movers: pd.DataFrame
    verdicts: pd.DataFrame
    volumes: pd.DataFrame
    fabric: tuple[str, ...]
    incomparable: tuple[str, ...]

    @property
    def better(self) -> int:
        """Qualities that are better now."""
        return int((self.measures["trend"] == "better").sum())

    @property
    def worse(self) -> int:
        """Qualities that are worse now."""
        return int((self.measures["trend"] == "worse").sum())


def compare(earlier: ValidationRun, now: ValidationRun) -> Comparison:
    """``now`` beside ``earlier``. InputError where that is the same run, a later or another's."""
    _check_pair(earlier, now)
    apart = _measured_otherwise(earlier, now)
    suites = () if apart else _common_suites(earlier, now)
    common = tuple([c for c in run.all_checks if c.suite in suites] for run in (earlier, now))
    was = {(check.id, check.subject): check for check in common[0]}
    pairs = [
        (was[check.id, check.subject], check)
        for check in common[1]
        if (check.id, check.subject) in was
    ]
    return Comparison(
        run_id=earlier.id,
        created_at=f"{earlier.started_at:%Y-%m-%d %H:%M} UTC",
        verdict="PASSED" if earlier.verdict == "PASS" else "FAILED",
        evidence_class=earlier.evidence_class,
        measures=_frame(MEASURE_COLUMNS, _measures(pairs, (common[0], common[1]))),
        movers=_movers(pairs),
        verdicts=_verdicts(earlier, now),
        volumes=_frame(VOLUME_COLUMNS, _volumes(earlier, now, suites)),
        fabric=tuple(_fabric(earlier, now)),
        incomparable=(*apart, *_only_one(earlier, now, suites, compared=not apart)),
    )


def _check_pair(earlier: ValidationRun, now: ValidationRun) -> None:
    if earlier.site != now.site:
        raise InputError(f"run {earlier.id} is of site {earlier.site}, not of {now.site}")
    if earlier.id == now.id:
        raise InputError(
            f"run {now.id} would be compared with itself",
            advice="`paisoar runs list` names all runs.",
        )
    if earlier.started_at > now.started_at:
        raise InputError(
            f"run {earlier.id} is later than {now.id}, not earlier",
            advice=f"Compare the other way round: --run {earlier.id} --against {now.id}",
        )


def _measured_otherwise(earlier: ValidationRun, now: ValidationRun) -> list[str]:
    """Why no number of the two can be compared; empty where they can."""
    lines = []
    if earlier.evidence_class != now.evidence_class:
        lines.append(
            f"All numbers: they were {earlier.evidence_class} then and are {now.evidence_class} "
            "now; evidence of two classes says nothing about a change of the fabric."
        )
    if earlier.probe != now.probe:
        lines.append(
            f"All numbers: {earlier.probe} measured then and {now.probe} now; what one of them "
            "adds the other does not."
        )
    return lines


def _common_suites(earlier: ValidationRun, now: ValidationRun) -> tuple[str, ...]:
    """Suites that ended in both runs."""
    ended = [{s.name for s in run.suites if s.status == "complete"} for run in (earlier, now)]
    return tuple(suite.name for suite in now.suites if suite.name in ended[0] & ended[1])


def _measures(
    pairs: list[tuple[Check, Check]], common: tuple[list[Check], list[Check]]
) -> Iterator[tuple[object, ...]]:
    for measure in MEASURES:
        if measure.summed:
            before, after = (_sum(measure, checks) for checks in common)
            if before is not None and after is not None:
                yield _row(measure, measure.title, "suites of both", before, after)
            continue
        chosen = _of(measure, pairs)
        if not chosen:
            continue
        places = count_of(len(chosen), "place")
        values = list(zip(*(both for _, *both in chosen), strict=True))
        yield _row(measure, measure.title, places, *(measure.total(side) for side in values))
        if measure.typical and len(chosen) > 2:
            yield _row(measure, measure.typical, places, *(median(side) for side in values))


def _row(
    measure: Measure, title: str, places: str, before: float, now: float
) -> tuple[object, ...]:
    said = measure.said(before), measure.said(now), _change(before, now)
    return title, places, *said, _trend(measure, before, now)


def _sum(measure: Measure, checks: list[Check]) -> float | None:
    """None where no check of this kind has a value. Subjects may differ: a device, or its port."""
    values = [check.value for check in measure.of(checks) if check.value is not None]
    return measure.total(values) if values else None


def _of(measure: Measure, pairs: list[tuple[Check, Check]]) -> list[tuple[Check, float, float]]:
    """Pairs of this measure that have a value in both runs: the newer check, both values."""
    ours = {id(check) for check in measure.of(new for _, new in pairs)}
    return [
        (new, old.value, new.value)
        for old, new in pairs
        if id(new) in ours and old.value is not None and new.value is not None
    ]


def _movers(pairs: list[tuple[Check, Check]]) -> pd.DataFrame:
    """Of each kind the few that moved most, the most moved kind first."""
    rows = []
    for measure in MEASURES:
        found = []
        for check, before, now in _of(measure, pairs):
            trend = _trend(measure, before, now)
            if trend != "alike":
                by = abs(now - before) / abs(before) if before else abs(now - before)
                what = check.id.partition(".")[2]
                said = measure.said(before), measure.said(now), _change(before, now)
                found.append((by, (check.suite, what, check.subject, *said, trend)))
        found.sort(key=lambda row: -row[0])
        rows += found[:_MAX_OF_KIND]
    rows.sort(key=lambda row: -row[0])
    return _frame(MOVER_COLUMNS, [row for _, row in rows[:_MAX_MOVERS]])


def _trend(measure: Measure, before: float, now: float) -> str:
    if abs(now - before) <= ALIKE * max(abs(before), abs(now)):
        return "alike"
    return "better" if (now > before) == measure.more_is_better else "worse"


def _change(before: float, now: float) -> str:
    if before == now:
        return "0 %"
    if not before:
        return f"from 0 to {number(round(now, 4))}"
    by = 100 * (now - before) / abs(before)
    return f"{by:+,.1f} %" if abs(by) >= 0.05 else "0 %"


def _verdicts(earlier: ValidationRun, now: ValidationRun) -> pd.DataFrame:
    """Checks judged otherwise, and what failed in one run where the other had no such check.

    Only of suites of both runs. A device that lost nothing is one check, its ports that did
    are others.
    """
    sides = [
        {(c.id, c.subject): c for c in run.all_checks if not c.suite or other.suite(c.suite)}
        for run, other in ((earlier, now), (now, earlier))
    ]
    rows = []
    for key in dict.fromkeys((*sides[1], *sides[0])):
        old, new = (side.get(key) for side in sides)
        words = [_NONE if check is None else check.verdict for check in (old, new)]
        failed = {"FAIL", "NOT_RUN"} & set(words)
        if words[0] != words[1] and (failed or _NONE not in words):
            check_id, subject = key
            suite, _, what = check_id.partition(".")
            rows.append((suite, what, subject, *words, (new or old).reason))  # type: ignore[union-attr]
    order = {"FAIL": 0, "NOT_RUN": 1, "PASS": 2, "SKIP": 3, _NONE: 4}
    rows.sort(key=lambda row: order[row[4]])
    return _frame(VERDICT_COLUMNS, rows)


def _volumes(
    earlier: ValidationRun, now: ValidationRun, suites: tuple[str, ...]
) -> Iterator[tuple[object, ...]]:
    """Only of suites that sent the same."""
    then, today = (_sums(run) for run in (earlier, now))
    for suite in suites:
        if not _same_traffic(earlier, now, suite):
            continue
        for counter, said in _VOLUMES.items():
            before, after = (sums.get((suite, counter), 0) for sums in (then, today))
            if before or after:
                yield suite, said, before, after, _change(before, after)


def _same_traffic(earlier: ValidationRun, now: ValidationRun, suite: str) -> bool:
    old, new = earlier.suite(suite), now.suite(suite)
    if old is None or new is None:
        return False
    both = old.expected.keys() & new.expected.keys()
    return all(old.expected[what] == new.expected[what] for what in both)


def _sums(run: ValidationRun) -> dict[tuple[str, str], int]:
    moved = frames.counters_frame(run)
    # A counter that only one of the two readings shows has no delta.
    moved = moved[moved["counter"].isin(_VOLUMES)].dropna(subset=["delta"])
    totals: dict[tuple[str, str], int] = {}
    for suite, name, delta in zip(moved["suite"], moved["counter"], moved["delta"], strict=True):
        totals[suite, name] = totals.get((suite, name), 0) + int(delta)
    return totals


def _fabric(earlier: ValidationRun, now: ValidationRun) -> Iterator[str]:
    old, new = earlier.before, now.before
    if old is None or new is None:
        yield "One of the runs has no fingerprint: whether the fabric changed is not known."
    elif old.sha256 != new.sha256:
        if old.intent_sha256 != new.intent_sha256:
            yield "The intent in fabric.yaml is another."
        if old.cabling_sha256 != new.cabling_sha256:
            yield "Devices, ports or cables in fabric.yaml are others."
        yield from _devices(earlier, now, old.changed(new))
    yield from (
        f"Limit {name}: {earlier.criteria.get(name)} then, {value} now"
        for name, value in now.criteria.items()
        if earlier.criteria.get(name) != value
    )
    yield from (
        f"{name}: release {earlier.versions.get(name, 'none')} then, {version} now"
        for name, version in now.versions.items()
        if earlier.versions.get(name) != version
    )


def _devices(earlier: ValidationRun, now: ValidationRun, changed: tuple[str, ...]) -> Iterator[str]:
    then, today = _states(earlier), _states(now)
    if then is None or today is None:
        yield f"These devices are not what they were: {', '.join(changed)}."
        return
    yield from explain(then, today)


def _states(run: ValidationRun) -> dict[str, DeviceQos] | None:
    try:
        return states_from_bytes(read_file(run.folder / STATES_FILE))
    except (OSError, ValueError):
        return None


def _only_one(
    earlier: ValidationRun, now: ValidationRun, suites: tuple[str, ...], *, compared: bool
) -> Iterator[str]:
    """Suites and subjects that have nothing to be compared with."""
    for run, other, when in ((earlier, now, "earlier"), (now, earlier, "newer")):
        for suite in run.suites:
            if other.suite(suite.name) is None:
                yield f"Suite {suite.name}: only the {when} run has it."
            elif compared and suite.name not in suites and suite.status != "complete":
                yield f"Suite {suite.name}: it did not end in the {when} run ({suite.status})."
    for name in suites:
        if not _same_traffic(earlier, now, name):
            yield f"Suite {name}: it had other steps or pairs, so that its counters differ."
    then, today = (
        {(c.id, c.subject) for c in run.all_checks if c.suite in suites} for run in (earlier, now)
    )
    for keys, when in ((then - today, "earlier"), (today - then, "newer")):
        ids = [check_id for check_id, _ in keys]
        for check_id in sorted(set(ids)):
            places = count_of(ids.count(check_id), "place")
            yield f"{check_id}: {places} only in the {when} run."


def _frame(columns: tuple[str, ...], rows: object) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=list(columns))  # type: ignore[call-overload]
