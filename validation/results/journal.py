"""What a run is at, kept at every step: one that is killed goes on from there.

``running.json`` names the suites of a run for as long as it runs. ``SUITE.journal`` has a
line for each step that is over: a hash and the step as JSON. It begins with the counters of
before the first step, which lie beside it in Parquet. A line that a kill or a full disk cut
off is no line. Both are gone when the suite's evidence is there.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from fabric.counters import CounterSnapshot
from fabric.errors import InputError
from fabric.topology import PortRef
from validation.files import not_written, read_file, write_whole
from validation.results.atwork import Process
from validation.results.evidence import counter_file
from validation.results.states import sha256
from validation.traffic import FlowMeasure, Role, StepMeasure, pair_name, pair_of

RUNNING_FILE = "running.json"
ADVICE = "What was measured cannot be used any more: start again without --resume."


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Running(_Strict):
    """The suites that a run was asked for, and how often bandwidth and incast are measured.

    ``process`` carries them out; None where that is not known.
    """

    suites: tuple[str, ...]
    repeat: int
    process: Process | None = None


class _Begin(_Strict):
    counters_sha256: str


class _Flow(_Strict):
    source: str
    target: str
    role: Role
    kind: Literal["stream", "ping"]
    goodput_bps: float
    completed: int
    latency_us: str


class _Step(_Strict):
    step: str
    traffic_us: float
    sample_us: float
    notes: tuple[str, ...]
    lost: dict[str, str]
    flows: tuple[_Flow, ...]


@dataclass(frozen=True, slots=True)
class Journal:
    """The journal of one suite in its run's folder."""

    folder: Path
    suite: str

    @property
    def path(self) -> Path:
        """The journal itself."""
        return self.folder / f"{self.suite}.journal"

    @property
    def counters_path(self) -> Path:
        """Every device's counters from before the first step."""
        return self.folder / f"{self.suite}.journal.parquet"

    def begin(self, before: Mapping[str, CounterSnapshot], had: Sequence[StepMeasure]) -> None:
        """Start it with these counters, and with steps that an earlier run had.

        InputError where it cannot be written.
        """
        data = counter_file(before, {})
        write_whole(self.counters_path, data)
        lines = [_line(_Begin(counters_sha256=sha256(data)))]
        lines += [_line(_kept(step)) for step in had if not step.not_run]
        write_whole(self.path, b"".join(lines))

    def add(self, step: StepMeasure) -> None:
        """Keep a step that is over; it survives whatever comes. InputError as above."""
        if step.not_run:
            return
        try:
            with self.path.open("ab") as file:
                file.write(_line(_kept(step)))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise not_written(self.path, error) from error

    def end(self) -> None:
        """Remove it: the suite's evidence has all of it."""
        for path in (self.path, self.counters_path):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def read(self) -> tuple[tuple[StepMeasure, ...], bytes] | None:
        """Steps that are over, and the counters' Parquet; None where the suite had not begun.

        Raises InputError that names the file where one is gone or altered.
        """
        if not self.path.exists():
            return None
        try:
            lines = read_file(self.path).split(b"\n")
            counters = read_file(self.counters_path)
        except OSError as error:
            raise self._bad(f"it cannot be read: {error.strerror}") from error
        # What follows the last end of a line was being written when the run ended.
        texts = [self._checked(number, line) for number, line in enumerate(lines[:-1], start=1)]
        if not texts:
            return None
        try:
            begin = _Begin.model_validate_json(texts[0])
            steps = tuple(_measure(_Step.model_validate_json(text)) for text in texts[1:])
        except (ValidationError, ValueError) as error:
            raise self._bad(str(error).splitlines()[0]) from error
        if sha256(counters) != begin.counters_sha256:
            raise self._bad(f"the counters beside it, {self.counters_path.name}, were altered")
        return steps, counters

    def _checked(self, number: int, line: bytes) -> bytes:
        digest, _, text = line.partition(b" ")
        if sha256(text).encode() != digest:
            raise self._bad(f"line {number} was altered")
        return text

    def _bad(self, why: str) -> InputError:
        return InputError(
            f"the journal of suite {self.suite}: {why}", file=self.path, advice=ADVICE
        )


def write_running(folder: Path, running: Running) -> None:
    """Say what a run is to do. InputError where that cannot be written."""
    write_whole(folder / RUNNING_FILE, running.model_dump_json().encode())


def read_running(folder: Path) -> Running | None:
    """What a run that was killed was to do; None where that is not known."""
    try:
        return Running.model_validate_json(read_file(folder / RUNNING_FILE))
    except (OSError, ValueError):
        return None


def end_running(folder: Path) -> None:
    """The run has come to its end."""
    with suppress(OSError):
        (folder / RUNNING_FILE).unlink(missing_ok=True)


def _line(value: BaseModel) -> bytes:
    text = value.model_dump_json().encode()
    return sha256(text).encode() + b" " + text + b"\n"


def _kept(step: StepMeasure) -> _Step:
    return _Step(
        step=step.step,
        traffic_us=step.traffic_us,
        sample_us=step.sample_us,
        notes=step.notes,
        lost={pair_name(*pair): reason for pair, reason in step.lost.items()},
        flows=tuple(
            _Flow(
                source=str(flow.source),
                target=str(flow.target),
                role=flow.role,
                kind=flow.kind,
                goodput_bps=flow.goodput_bps,
                completed=flow.completed,
                latency_us=base64.b64encode(flow.latency_us.astype("<f8").tobytes()).decode(),
            )
            for flow in step.flows
        ),
    )


def _measure(step: _Step) -> StepMeasure:
    return StepMeasure(
        step=step.step,
        flows=tuple(
            FlowMeasure(
                source=PortRef.parse(flow.source),
                target=PortRef.parse(flow.target),
                role=flow.role,
                kind=flow.kind,
                goodput_bps=flow.goodput_bps,
                completed=flow.completed,
                latency_us=np.frombuffer(base64.b64decode(flow.latency_us), "<f8").astype(float),
                series_bps=np.empty(0),
            )
            for flow in step.flows
        ),
        traffic_us=step.traffic_us,
        sample_us=step.sample_us,
        notes=step.notes,
        lost={pair_of(name): reason for name, reason in step.lost.items()},
    )
