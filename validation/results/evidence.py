"""Evidence as bytes: what a suite saw, in Parquet and JSON, each with its hash.

The bytes that are hashed are the bytes that are stored, so that whoever holds a
certificate can check a check's evidence. :mod:`validation.results.kept` reads them back.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fabric.counters import CounterSnapshot
from validation.traffic import StepMeasure, pair_name


def traffic_files(steps: Sequence[StepMeasure]) -> dict[str, bytes]:
    """``flows``, ``latency``, ``series`` and ``queues`` of a suite's steps, as Parquet.

    flows: step, source, target, role, kind, goodput_bps, completed, p50_us,
    p99_us, max_us. latency: step, source, target, us. series: step, source,
    target, time_us, goodput_bps. queues: step, device, port, time_us, queue_bytes.
    Times count from the start of the step and name the end of a sample.
    """
    return {
        "flows": _parquet(_rows(FLOWS, list(_flow_rows(steps)))),
        "latency": _parquet(_latency(steps)),
        "series": _parquet(_series(steps)),
        "queues": _parquet(_queues(steps)),
    }


def counter_file(
    before: Mapping[str, CounterSnapshot], after: Mapping[str, CounterSnapshot]
) -> bytes:
    """Raw counters on both sides of a suite, as Parquet.

    Columns: moment (before, after), device, taken_at_s, port, name, priority
    (null where a counter has none), bits, value. What a device did not show is a
    row with the module's words in ``missing`` and no value. Each row has its snapshot's
    ``up_s`` (null where not known) and ``boot_id``.
    """
    rows: list[tuple[Any, ...]] = []
    for moment, snapshots in (("before", before), ("after", after)):
        for device in sorted(snapshots):
            taken = snapshots[device]
            of = (moment, device, taken.taken_at_s)
            boot = (taken.up_s, taken.boot_id)
            rows += [
                (*of, c.port, c.name, c.priority, c.bits, c.value, "", *boot)
                for c in taken.counters
            ]
            rows += [(*of, "", "", None, None, None, said, *boot) for said in taken.missing]
    return _parquet(_rows(COUNTERS, rows))


def outline_file(steps: Sequence[StepMeasure], unread: Mapping[str, str]) -> bytes:
    """Which steps ran, for how long, and which devices did not answer, as JSON."""
    facts = {
        "steps": [
            {
                "step": step.step,
                "traffic_us": step.traffic_us,
                "sample_us": step.sample_us,
                "notes": list(step.notes),
                "not_run": step.not_run,
                "lost": {pair_name(*pair): reason for pair, reason in step.lost.items()},
            }
            for step in steps
        ],
        "unread": dict(sorted(unread.items())),
    }
    return json.dumps(facts, sort_keys=True, indent=1).encode()


def transcript_file(steps: Sequence[StepMeasure]) -> bytes:
    """What programs on real hosts were asked and said, as gzipped JSON.

    Samples are in ``latency``.
    """
    said = [
        {
            "step": step.step,
            "pair": pair_name(*transcript.pair),
            "host": transcript.host,
            "command": transcript.command,
            "exit_status": transcript.exit_status,
            "stdout": transcript.stdout.splitlines(),
            "stderr": transcript.stderr.splitlines(),
        }
        for step in steps
        for transcript in step.transcripts
    ]
    return gzip.compress(json.dumps(said, indent=1).encode(), mtime=0)


_TEXT = pa.dictionary(pa.int32(), pa.string())
_PAIR = [("step", _TEXT), ("source", _TEXT), ("target", _TEXT)]
FLOWS = pa.schema(
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
LATENCY = pa.schema([*_PAIR, ("us", pa.float64())])
SERIES = pa.schema([*_PAIR, ("time_us", pa.float64()), ("goodput_bps", pa.float64())])
QUEUES = pa.schema(
    [
        ("step", _TEXT),
        ("device", _TEXT),
        ("port", _TEXT),
        ("time_us", pa.float64()),
        ("queue_bytes", pa.float64()),
    ]
)
COUNTERS = pa.schema(
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
        ("up_s", pa.float64()),
        ("boot_id", _TEXT),
    ]
)


def _flow_rows(steps: Sequence[StepMeasure]) -> Iterator[tuple[Any, ...]]:
    for step in steps:
        for flow in step.flows:
            p50 = p99 = top = None
            if len(flow.latency_us):
                p50, p99, top = (float(v) for v in np.percentile(flow.latency_us, [50, 99, 100]))
            yield (
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


def _latency(steps: Sequence[StepMeasure]) -> pa.Table:
    labels, chunks = [], []
    for step in steps:
        for flow in step.flows:
            labels.append((step.step, str(flow.source), str(flow.target)))
            chunks.append(flow.latency_us)
    return _long(LATENCY, labels, [chunks])


def _series(steps: Sequence[StepMeasure]) -> pa.Table:
    labels, times, chunks = [], [], []
    for step in steps:
        for flow in step.flows:
            labels.append((step.step, str(flow.source), str(flow.target)))
            times.append(np.arange(1.0, len(flow.series_bps) + 1) * step.sample_us)
            chunks.append(flow.series_bps)
    return _long(SERIES, labels, [times, chunks])


def _queues(steps: Sequence[StepMeasure]) -> pa.Table:
    labels, times, chunks = [], [], []
    for step in steps:
        for queue in step.queues:
            labels.append((step.step, *queue.port))
            times.append(np.arange(1.0, len(queue.series_bytes) + 1) * step.sample_us)
            chunks.append(queue.series_bytes)
    return _long(QUEUES, labels, [times, chunks])


def _long(
    schema: pa.Schema,
    labels: Sequence[tuple[str, ...]],
    values: Sequence[Sequence[NDArray[np.float64]]],
) -> pa.Table:
    """Label columns, each repeated along its chunk of values, then the value columns."""
    lengths = [len(chunk) for chunk in values[0]]
    rows = pa.array(np.repeat(np.arange(len(labels)), lengths))
    texts = [
        pa.array([label[place] for label in labels], pa.string()).dictionary_encode().take(rows)
        for place in range(len(schema) - len(values))
    ]
    numbers = [
        pa.array(np.concatenate(chunks) if chunks else np.empty(0), pa.float64())
        for chunks in values
    ]
    return pa.Table.from_arrays([*texts, *numbers], schema=schema)


def _rows(schema: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [
        pa.array(column, type=field.type.value_type).dictionary_encode()
        if pa.types.is_dictionary(field.type)
        else pa.array(column, type=field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _parquet(table: pa.Table) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream, compression="zstd")
    return stream.getvalue()
