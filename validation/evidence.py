"""Evidence as bytes: what a suite saw, in Parquet and JSON, each with its hash.

The bytes that are hashed are the bytes that are stored, so that whoever holds a
certificate can check a check's evidence.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fabric.counters import CounterSnapshot
from validation.traffic import StepMeasure


def traffic_files(steps: Sequence[StepMeasure]) -> dict[str, bytes]:
    """``flows``, ``latency``, ``series`` and ``queues`` of a suite's steps, as Parquet.

    flows: step, source, target, role, kind, goodput_bps, completed, p50_us,
    p99_us, max_us. latency: step, source, target, us. series: step, source,
    target, time_us, goodput_bps. queues: step, device, port, time_us, queue_bytes.
    Times count from the start of the step and name the end of a sample.
    """
    return {
        "flows": _parquet(_FLOWS, _flow_rows(steps)),
        "latency": _parquet(_LATENCY, _latency_rows(steps)),
        "series": _parquet(_SERIES, _series_rows(steps)),
        "queues": _parquet(_QUEUES, _queue_rows(steps)),
    }


def counter_file(
    before: Mapping[str, CounterSnapshot], after: Mapping[str, CounterSnapshot]
) -> bytes:
    """Raw counters on both sides of a suite, as Parquet.

    Columns: moment (before, after), device, taken_at_s, port, name, priority
    (null where a counter has none), bits, value. What a device did not show is a
    row with the module's words in ``missing`` and no value.
    """
    rows: list[tuple[Any, ...]] = []
    for moment, snapshots in (("before", before), ("after", after)):
        for device in sorted(snapshots):
            taken = snapshots[device]
            rows += [
                (moment, device, taken.taken_at_s, c.port, c.name, c.priority, c.bits, c.value, "")
                for c in taken.counters
            ]
            rows += [
                (moment, device, taken.taken_at_s, "", "", None, None, None, said)
                for said in taken.missing
            ]
    return _parquet(_COUNTERS, [rows])


_TEXT = pa.dictionary(pa.int32(), pa.string())
_PAIR = [("step", _TEXT), ("source", _TEXT), ("target", _TEXT)]
_FLOWS = pa.schema(
    [
        *_PAIR,
        ("role", _TEXT),
        ("kind", _TEXT),
        ("goodput_bps", pa.float64()),
        ("completed", pa.int64()),
        ("p50_us", pa.float64()),
        ("p99_us", pa.float64()),
        ("max_us", pa.float64()),
    ]
)
_LATENCY = pa.schema([*_PAIR, ("us", pa.float64())])
_SERIES = pa.schema([*_PAIR, ("time_us", pa.float64()), ("goodput_bps", pa.float64())])
_QUEUES = pa.schema(
    [
        ("step", _TEXT),
        ("device", _TEXT),
        ("port", _TEXT),
        ("time_us", pa.float64()),
        ("queue_bytes", pa.float64()),
    ]
)
_COUNTERS = pa.schema(
    [
        ("moment", _TEXT),
        ("device", _TEXT),
        ("taken_at_s", pa.float64()),
        ("port", _TEXT),
        ("name", _TEXT),
        ("priority", pa.int32()),
        ("bits", pa.int32()),
        ("value", pa.uint64()),
        ("missing", _TEXT),
    ]
)

Rows = Iterable[Sequence[tuple[Any, ...]]]


def _flow_rows(steps: Sequence[StepMeasure]) -> Rows:
    for step in steps:
        for flow in step.flows:
            p50 = p99 = top = None
            if len(flow.latency_us):
                p50, p99, top = (float(v) for v in np.percentile(flow.latency_us, [50, 99, 100]))
            yield [
                (
                    step.step,
                    str(flow.source),
                    str(flow.target),
                    flow.role,
                    flow.kind,
                    flow.goodput_bps,
                    flow.completed,
                    p50,
                    p99,
                    top,
                )
            ]


def _latency_rows(steps: Sequence[StepMeasure]) -> Rows:
    for step in steps:
        for flow in step.flows:
            ends = (step.step, str(flow.source), str(flow.target))
            yield [(*ends, us) for us in flow.latency_us.tolist()]


def _series_rows(steps: Sequence[StepMeasure]) -> Rows:
    for step in steps:
        for flow in step.flows:
            ends = (step.step, str(flow.source), str(flow.target))
            yield [
                (*ends, (index + 1) * step.sample_us, bps)
                for index, bps in enumerate(flow.series_bps.tolist())
            ]


def _queue_rows(steps: Sequence[StepMeasure]) -> Rows:
    for step in steps:
        for queue in step.queues:
            yield [
                (step.step, *queue.port, (index + 1) * step.sample_us, depth)
                for index, depth in enumerate(queue.series_bytes.tolist())
            ]


def _parquet(schema: pa.Schema, rows: Rows) -> bytes:
    flat = [row for chunk in rows for row in chunk]
    columns = list(zip(*flat, strict=True)) or [()] * len(schema)
    arrays = [
        pa.array(column, type=field.type.value_type).dictionary_encode()
        if pa.types.is_dictionary(field.type)
        else pa.array(column, type=field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), stream, compression="zstd")
    return stream.getvalue()
