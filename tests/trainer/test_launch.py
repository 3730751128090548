import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import pytest

from fabric.errors import GateRefusedError, InputError
from tests.trainer.leftovers import ranks_left
from trainer.checkpoint import latest_checkpoint, only_job_in, read_meta
from trainer.collective.errors import LostPeerError
from trainer.launch import EpochRecord, JobSpec, TrainingPlan, train
from validation.gate import GatePass

NOW = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
PASS = GatePass(
    certificate_id="c-0042",
    site="alpha",
    evidence_class="simulated",
    hosts=("host1", "host2"),
    fingerprint="ab" * 32,
    checked_at=NOW,
    not_after=NOW + timedelta(days=7),
    loopback_only=True,
)


@pytest.mark.parametrize("gate_pass", [None, "c-0042", asdict(PASS)])
def test_without_a_pass_of_the_gate_nothing_is_started(gate_pass):
    with pytest.raises(GateRefusedError) as caught:
        train(JobSpec(gate_pass=gate_pass))
    assert caught.value.reason == "no-gate-pass"
    assert caught.value.exit_code == 1
    assert not ranks_left()


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"model": "alexnet9"}, "model"),
        ({"sync": "gossip"}, "sync"),
        ({"servers": 3}, "servers"),
        ({"accumulate": 0}, "accumulate"),
        ({"precision": "int4"}, "precision"),
        ({"epochs": 0}, "epochs"),
        ({"batch_size": 0}, "batch_size"),
        ({"seed": -1}, "seed"),
        ({"ranks": 0}, "ranks"),
    ],
)
def test_what_cannot_be_trained_is_refused_with_its_key(change, key):
    with pytest.raises(InputError) as caught:
        TrainingPlan(**change)
    assert caught.value.key == key


def test_transport_and_resume_are_checked_before_anything_starts(tmp_path):
    with pytest.raises(InputError, match="transport"):
        JobSpec(PASS, transport="carrier-pigeon")
    with pytest.raises(InputError, match="checkpoint_folder"):
        JobSpec(PASS, resume=True)
    with pytest.raises(InputError, match="between 2 accumulated"):
        JobSpec(PASS, TrainingPlan(accumulate=2), checkpoint_every=3)
    with pytest.raises(InputError, match="no file matches it") as caught:
        train(JobSpec(PASS, TrainingPlan(data=str(tmp_path / "*.tfrecord"))))
    assert caught.value.key == "data"
    with pytest.raises(InputError, match="no checkpoint to resume from"):
        train(JobSpec(PASS, resume=True, checkpoint_folder=tmp_path))
    assert not ranks_left()


def test_the_launcher_itself_stays_without_tensorflow():
    script = "import sys, trainer.launch; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.slow
def test_two_ranks_learn_the_digits_and_end_with_identical_weights(tmp_path):
    news = []
    trace = tmp_path / "trace.json"
    result = train(JobSpec(PASS, checkpoint_folder=tmp_path, timeline=trace), news.append)
    assert result.accuracy >= 0.97
    assert result.weights_identical
    assert len(result.weights_digest) == 64
    assert (result.ranks, result.transport, result.gate_pass) == (2, "shm", PASS)
    assert [record.epoch for record in result.history] == list(range(1, 13))
    assert all(isinstance(record, EpochRecord) for record in result.history)
    assert result.history[-1].test_accuracy == result.accuracy
    assert result.history[-1].loss < result.history[0].loss
    assert result.images_per_s > 0
    # In epochs 2 and 3 the warm-up is over, then it decays every second epoch.
    rates = [record.learning_rate for record in result.history]
    assert rates[1] == rates[2] == max(rates)
    assert rates[3] == pytest.approx(0.7 * rates[1])
    assert result.checkpoint == latest_checkpoint(tmp_path)
    meta = read_meta(result.checkpoint)
    assert meta["gate_pass"]["certificate_id"] == "c-0042"
    assert meta["gate_pass"]["not_after"] == str(PASS.not_after)
    assert meta["plan"] == asdict(TrainingPlan())
    assert [n.epoch for n in news if n.kind == "epoch" and n.rank == 0] == list(range(1, 13))
    assert {n.rank for n in news if n.kind == "step"} == {0, 1}
    events = json.loads(trace.read_text())["traceEvents"]
    spans = {(event["pid"], event["name"]) for event in events if event["ph"] == "X"}
    for rank in (0, 1):
        assert {(rank, "step 7"), (rank, "allreduce: step 7, bucket 0")} <= spans
        assert {(rank, "wait for bucket 0"), (rank, "next batch"), (rank, "test")} <= spans
    # No chatter of TensorFlow's reaches the user.
    assert [n for n in news if n.kind == "note"] == []


@pytest.mark.slow
def test_a_training_that_lost_a_rank_goes_on_from_its_last_checkpoint(tmp_path):
    plan = TrainingPlan(epochs=200, batch_size=64, seed=2)
    killed = []

    def kill_one(progress):
        if progress.kind == "epoch" and progress.epoch == 2 and not killed:
            killed.append(ranks_left()[-1].pid)
            os.kill(killed[0], signal.SIGKILL)

    with pytest.raises(LostPeerError) as caught:
        train(JobSpec(PASS, plan, transport="tcp", checkpoint_folder=tmp_path), kill_one)
    assert caught.value.failure.culprit.pid == killed[0]
    assert "SIGKILL" in str(caught.value)
    assert "reported: rank" in str(caught.value)
    assert f"{latest_checkpoint(tmp_path)}; --resume {tmp_path} goes on" in caught.value.advice
    assert not ranks_left()
    saved = read_meta(latest_checkpoint(tmp_path))["epoch"]
    longer = TrainingPlan(epochs=saved + 2, batch_size=64, seed=2)
    result = train(JobSpec(PASS, longer, transport="tcp", checkpoint_folder=tmp_path, resume=True))
    assert result.resumed_after_epoch == saved
    assert [record.epoch for record in result.history] == [saved + 1, saved + 2]
    assert result.weights_identical
    with pytest.raises(InputError, match=r"seed 2 \(now 3\)"):
        train(
            JobSpec(
                PASS,
                TrainingPlan(epochs=9, batch_size=64, seed=3),
                checkpoint_folder=tmp_path,
                resume=True,
            )
        )


@pytest.mark.slow
def test_two_jobs_do_not_train_into_one_folder(tmp_path):
    plan = TrainingPlan(epochs=1, batch_size=64)
    with only_job_in(tmp_path), pytest.raises(InputError, match="another job") as caught:
        train(JobSpec(PASS, plan, transport="tcp", checkpoint_folder=tmp_path))
    assert str(tmp_path) in str(caught.value)
    assert "folder of its own" in str(caught.value)
    assert not ranks_left()
    with only_job_in(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []
