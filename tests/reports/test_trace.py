"""Traces of trainings: typical steps of each rank, or a file that is refused."""

import json

import pytest

from fabric.errors import InputError
from reports.content.trace import MAX_RANKS, STEPS, read_trace
from reports.figures.training import timeline
from tests.reports.svgread import names
from trainer.timeline import write_trace


def spans(steps, start_us=0):
    """As a rank leaves them: a slow first step, then steps of 10 ms, 4 of them waiting."""
    out, now = [], 1_000_000_000 + start_us
    for step in range(1, steps + 1):
        spent = 500_000 if step == 1 else 10_000
        out.append(("compute", f"step {step}", now, spent))
        out.append(("compute", "next batch", now, 40))
        out.append(("compute", "wait for bucket 0", now + spent - 4000, 4000))
        out.append(("communication", f"allreduce: step {step}", now + spent - 4000, 3500))
        now += spent + 100
    return out


@pytest.fixture
def path(tmp_path):
    write_trace(tmp_path / "trace.json", {0: spans(20), 1: spans(20, 300)})
    return tmp_path / "trace.json"


def test_typical_steps_are_shown_and_not_the_first(path):
    trace = read_trace(path)
    steps = trace.frame.query("rank == 0 and kind == 'step'")
    assert len(steps) == STEPS
    assert "step 1" not in set(trace.frame["name"])
    assert steps["start_ms"].min() == 0
    assert list(steps["spent_ms"]) == pytest.approx([10.0] * STEPS)
    waits = trace.frame.query("rank == 0 and kind == 'wait'")
    assert list(waits["spent_ms"]) == pytest.approx([4.0] * STEPS)
    assert "next batch" not in set(trace.frame["name"])


def test_spans_are_cut_where_the_figure_ends(path):
    frame = read_trace(path).frame
    end = frame.query("rank == 0 and kind == 'step'").eval("start_ms + spent_ms").max()
    assert frame["start_ms"].min() >= 0
    assert (frame["start_ms"] + frame["spent_ms"]).max() <= end + 1e-9


def test_every_rank_has_its_steps_and_its_exchanges(path):
    svg = timeline(read_trace(path).frame, "measured")
    assert names(svg) == {f"rank {r} {k}" for r in (0, 1) for k in ("step", "wait", "network")}


def test_of_many_ranks_the_first_are_shown(tmp_path):
    write_trace(tmp_path / "t.json", {rank: spans(6) for rank in range(MAX_RANKS + 4)})
    trace = read_trace(tmp_path / "t.json")
    assert trace.ranks == MAX_RANKS + 4
    assert trace.frame["rank"].nunique() == MAX_RANKS


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"traceEvents": [{"ph": "X"}]}', json.dumps({"traceEvents": []})]
)
def test_a_file_that_is_no_trace_is_refused_with_its_name(tmp_path, text):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(InputError) as told:
        read_trace(tmp_path / "t.json")
    assert told.value.file == tmp_path / "t.json"
    assert "--timeline" in told.value.advice


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_trace(tmp_path / "none.json")
