import json
import time

import numpy as np
import pytest

from fabric.errors import InputError, PeerError
from tests.trainer.test_launch import PASS
from trainer import launch, timeline
from trainer.collective.communicator import alone
from trainer.launch import JobSpec, TrainingPlan, train
from trainer.timeline import TracedCourier, trace_document, write_trace


def test_off_it_records_nothing_and_costs_next_to_nothing():
    timeline.stop()
    began = time.process_time()
    for _ in range(10_000):
        with timeline.span("compute", "step"):
            pass
    assert time.process_time() - began < 0.5


def test_collectives_stand_in_the_timeline_with_what_they_were_for(tmp_path):
    recorded = timeline.start()
    courier = TracedCourier(alone())
    with timeline.span("compute", "step 1"):
        ticket = courier.submit(lambda c: c.allreduce(np.zeros(3), doing="step 1, bucket 0"))
        ticket.wait()
    assert courier.call(lambda c: c.size) == 1
    courier.close()
    timeline.stop()
    spans = recorded.take()
    assert recorded.take() == []
    assert [(s[0], s[1]) for s in spans] == [
        ("communication", "allreduce: step 1, bucket 0"),
        ("compute", "step 1"),
    ]
    inner, outer = spans
    assert outer[2] <= inner[2]
    assert inner[3] <= outer[3] + 1
    write_trace(tmp_path / "trace.json", {1: spans, 0: spans[:1]})
    document = json.loads((tmp_path / "trace.json").read_text())
    names = [e["args"]["name"] for e in document["traceEvents"] if e["ph"] == "M"]
    assert names == ["rank 0", "communication", "rank 1", "communication", "compute"]
    complete = [e for e in document["traceEvents"] if e["ph"] == "X"]
    assert len(complete) == 3
    assert min(e["ts"] for e in complete) == 0
    assert all({"pid", "tid", "ts", "dur", "name"} <= e.keys() for e in complete)


def test_a_failed_collective_is_remembered_by_the_communicator_itself():
    communicator = alone()
    courier = TracedCourier(communicator)
    timeline.start()
    courier.call(lambda c: setattr(c, "failure", None))
    assert communicator.failure is None
    courier.close()
    timeline.stop()
    assert trace_document({}) == {"traceEvents": [], "displayTimeUnit": "ms"}


def test_a_timeline_that_cannot_be_written_is_refused_before_training(tmp_path):
    events = []
    for path, said in (
        (tmp_path / "nowhere" / "trace.json", "there is no folder"),
        (tmp_path, "is a folder, not a file"),
    ):
        job = JobSpec(gate_pass=PASS, plan=TrainingPlan(ranks=1, steps=1), timeline=path)
        with pytest.raises(InputError, match=said):
            train(job, events.append)
    assert events == []


def test_a_timeline_that_is_lost_hides_no_lost_rank(tmp_path, monkeypatch):
    path = tmp_path / "gone" / "trace.json"
    path.parent.mkdir()

    def lose(*_args, **_more):
        path.parent.rmdir()
        raise PeerError("rank 1 was lost")

    monkeypatch.setattr(launch, "run_ranks", lose)
    with pytest.raises(PeerError, match="rank 1 was lost") as lost:
        train(JobSpec(gate_pass=PASS, plan=TrainingPlan(ranks=2), timeline=path))
    assert f"cannot be written to {path}" in lost.value.advice
