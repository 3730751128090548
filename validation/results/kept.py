"""Evidence read back: the stored bytes of a suite as the observation that they came from.

The inverse of :mod:`validation.results.evidence`, for judging again. ``series`` and
``queues`` are for people and figures; no judgement looks at them, and they are
not read back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from fabric.counters import Counter, CounterSnapshot
from fabric.errors import InputError
from fabric.qos import DeviceQos
from fabric.site import Site
from fabric.topology import PortRef
from validation.files import read_file
from validation.judgement.observation import Observation
from validation.results.evidence import COUNTERS, FLOWS, LATENCY
from validation.results.result import SuiteResult, ValidationRun
from validation.results.states import sha256, states_from_bytes
from validation.results.store import file_name
from validation.results.tables import read_table
from validation.traffic import FlowMeasure, StepMeasure, TrafficPlan, pair_of

ADVICE = "The evidence of this run cannot be used any more: run `paisoar validate` again."
_NOTHING: NDArray[np.float64] = np.empty(0)
_PairOfStep = tuple[str, str, str]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Step(_Strict):
    step: str
    traffic_us: float
    sample_us: float
    notes: tuple[str, ...]
    not_run: str
    # Runs of earlier releases have none.
    lost: dict[str, str] = {}


class _Outline(_Strict):
    steps: tuple[_Step, ...]
    unread: dict[str, str]


def observation_of(
    site: Site, plan: TrafficPlan, run: ValidationRun, suite: SuiteResult
) -> Observation:
    """What a suite saw, from its stored evidence alone; every file is what was hashed.

    Raises InputError that names the file where one is gone, altered or malformed.
    """
    files = {kind: _Kept(run, suite, kind) for kind in suite.files}
    for kind in ("outline", "flows", "latency", "counters", "states"):
        if kind not in files:
            raise InputError(
                f"run {run.id}, suite {suite.name}: no {kind} were kept",
                file=run.folder / file_name(suite.name, kind),
                advice=ADVICE,
            )
    outline = files["outline"].outline()
    before, after = files["counters"].counters()
    return Observation(
        site=site,
        plan=plan,
        steps=tuple(_steps(outline, files["flows"].flows(files["latency"].latency()))),
        before=before,
        after=after,
        states=files["states"].states(),
        evidence_class=run.evidence_class,
        unread=outline.unread,
        evidence=suite.files,
    )


def kept_files(run: ValidationRun, suite: SuiteResult) -> dict[str, bytes]:
    """Every stored file of a suite by kind. InputError where one is gone or altered."""
    return {kind: _Kept(run, suite, kind).data() for kind in suite.files}


def counters_of(
    run: ValidationRun, suite: SuiteResult
) -> tuple[dict[str, CounterSnapshot], dict[str, CounterSnapshot]]:
    """Counters of before and after a suite. InputError where they are gone or altered."""
    return _Kept(run, suite, "counters").counters()


def snapshots_from(
    data: bytes, path: Path
) -> tuple[dict[str, CounterSnapshot], dict[str, CounterSnapshot]]:
    """Counters of before and after from their Parquet. InputError where it is malformed."""
    try:
        table = _typed(data, COUNTERS)
        return _snapshots(zip(*(c.to_pylist() for c in table.columns), strict=True))
    except (pa.ArrowException, KeyError, ValueError, OSError) as error:
        raise InputError(_short(error), file=path, advice=ADVICE) from error


def interrupted(
    run: ValidationRun, suite: SuiteResult
) -> tuple[tuple[StepMeasure, ...], dict[str, CounterSnapshot]]:
    """Steps of a suite that was interrupted, and the counters from before them.

    Raises InputError that names the file where one is gone, altered or malformed.
    """
    files = {kind: _Kept(run, suite, kind) for kind in suite.files}
    before, _ = files["begin"].counters()
    if "flows" not in files:
        return (), before
    outline = files["outline"].outline()
    steps = _steps(outline, files["flows"].flows(files["latency"].latency()))
    return tuple(step for step in steps if not step.not_run), before


def _steps(outline: _Outline, flows: Mapping[str, list[FlowMeasure]]) -> Iterator[StepMeasure]:
    for step in outline.steps:
        yield StepMeasure(
            step=step.step,
            flows=tuple(flows.get(step.step, ())),
            traffic_us=step.traffic_us,
            sample_us=step.sample_us,
            notes=step.notes,
            not_run=step.not_run,
            lost={pair_of(name): reason for name, reason in step.lost.items()},
        )


class _Kept:
    """One stored file of evidence, read once; the bytes that are hashed are those parsed."""

    def __init__(self, run: ValidationRun, suite: SuiteResult, kind: str) -> None:
        self._path: Path = run.folder / file_name(suite.name, kind)
        self._digest = suite.files[kind]
        self._where = f"run {run.id}, suite {suite.name}"

    def _bad(self, why: object) -> InputError:
        return InputError(f"{self._where}: {why}", file=self._path, advice=ADVICE)

    def data(self) -> bytes:
        """The file's bytes; InputError where they are not what was hashed."""
        try:
            data = read_file(self._path)
        except OSError as error:
            raise self._bad(f"the evidence cannot be read: {error.strerror}") from error
        if sha256(data) != self._digest:
            raise self._bad("the evidence is not what was hashed when the run was judged")
        return data

    def _table(self, schema: pa.Schema) -> pa.Table:
        try:
            return _typed(self.data(), schema)
        except (pa.ArrowException, KeyError, ValueError, OSError) as error:
            raise self._bad(f"no such table of evidence: {_short(error)}") from error

    def _rows(self, schema: pa.Schema) -> Iterator[tuple[Any, ...]]:
        return zip(*(column.to_pylist() for column in self._table(schema).columns), strict=True)

    def outline(self) -> _Outline:
        try:
            return _Outline.model_validate_json(self.data())
        except ValidationError as error:
            first = error.errors()[0]
            at = ".".join(map(str, first["loc"]))
            raise self._bad(f"{at}: {first['msg']}") from error

    def states(self) -> dict[str, DeviceQos]:
        try:
            return states_from_bytes(self.data())
        except ValueError as error:
            raise self._bad(_short(error)) from error

    def latency(self) -> dict[_PairOfStep, NDArray[np.float64]]:
        """Samples of each pair in each step, us, in the order in which they were taken."""
        # By columns: a big site has millions of rows.
        samples = self._table(LATENCY).to_pandas(use_threads=False)
        groups = samples.groupby(["step", "source", "target"], sort=False, observed=True)["us"]
        return {key: values.to_numpy() for key, values in groups}

    def flows(
        self, latency: Mapping[_PairOfStep, NDArray[np.float64]]
    ) -> dict[str, list[FlowMeasure]]:
        found: dict[str, list[FlowMeasure]] = defaultdict(list)
        for row in self._rows(FLOWS):
            step, source, target, role, kind, goodput_bps, completed = row[:7]
            if None in row[:7]:
                raise self._bad(f"a flow of step {step} lacks a value")
            try:
                flow = FlowMeasure(
                    source=PortRef.parse(source),
                    target=PortRef.parse(target),
                    role=role,
                    kind=kind,
                    goodput_bps=goodput_bps,
                    completed=completed,
                    latency_us=latency.get((step, source, target), _NOTHING),
                    series_bps=_NOTHING,
                )
            except ValueError as error:
                raise self._bad(_short(error)) from error
            found[step].append(flow)
        return found

    def counters(self) -> tuple[dict[str, CounterSnapshot], dict[str, CounterSnapshot]]:
        """Snapshots before and after, by device."""
        try:
            return _snapshots(self._rows(COUNTERS))
        except ValueError as error:
            raise self._bad(_short(error)) from error


def _typed(data: bytes, schema: pa.Schema) -> pa.Table:
    table = read_table(data)
    # Counters of earlier releases say nothing of when a device booted.
    for name in ("up_s", "boot_id") if schema is COUNTERS else ():
        if name not in table.column_names:
            field = schema.field(name)
            table = table.append_column(field, pa.nulls(len(table), pa.string()).cast(field.type))
    return table.select(schema.names).cast(schema)


def _snapshots(
    rows: Iterable[tuple[Any, ...]],
) -> tuple[dict[str, CounterSnapshot], dict[str, CounterSnapshot]]:
    """Snapshots before and after from rows of COUNTERS. ValueError where one is malformed."""
    counted: dict[tuple[str, str], list[Counter]] = defaultdict(list)
    missing: dict[tuple[str, str], list[str]] = defaultdict(list)
    taken: dict[tuple[str, str], tuple[float, float | None, str]] = {}
    for row in rows:
        moment, device, taken_at_s, port, name, priority, bits, value, said, up_s, boot_id = row
        taken[moment, device] = taken_at_s, up_s, boot_id or ""
        if value is None:
            missing[moment, device].append(said)
            continue
        counted[moment, device].append(Counter(device, port, name, value, priority, bits))
    sides: dict[str, dict[str, CounterSnapshot]] = {"before": {}, "after": {}}
    for (moment, device), (taken_at_s, up_s, boot_id) in taken.items():
        if moment not in sides:
            raise ValueError(f"moment: {moment!r} is neither before nor after")
        key = moment, device
        sides[moment][device] = CounterSnapshot(
            device, taken_at_s, tuple(counted[key]), tuple(missing[key]), up_s, boot_id
        )
    return sides["before"], sides["after"]


def _short(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
