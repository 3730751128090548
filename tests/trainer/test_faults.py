"""One rank of a job meets with a misfortune: who is named, how soon, and what is left."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.trainer.leftovers import ranks_left
from trainer import supervise
from trainer.collective.errors import LostPeerError
from trainer.supervise import run_ranks

ROOT = Path(__file__).parents[2]


def run(misfortune, transport="shm", ranks=3, busy_s=0.0, **options):
    struck = []
    try:
        return run_ranks(
            "tests.trainer.programs:suffer",
            {"misfortune": misfortune, "busy_s": busy_s},
            ranks=ranks,
            transport=transport,
            path=[ROOT],
            on_event=lambda rank, value: struck.append(time.monotonic()),
            **options,
        )
    finally:
        assert time.monotonic() - struck[0] < 10 or misfortune == "late"
        assert not ranks_left()


@pytest.mark.parametrize(
    ("misfortune", "transport", "said"),
    [
        ("memory", "shm", "failed: .*Unable to allocate 32.0 GiB"),
        ("unlinked", "shm", "memory"),
        ("control", "shm", "the launcher of the job is gone"),
    ],
)
def test_every_other_rank_names_the_one_that_failed(misfortune, transport, said):
    with pytest.raises(LostPeerError, match=said) as caught:
        run(misfortune, transport)
    failure = caught.value.failure
    text = str(caught.value)
    assert failure.culprit.rank == 1
    assert failure.culprit.host in text
    assert "step " in failure.at
    for other in (0, 2):
        (report,) = [line for line in text.splitlines() if f"rank {other} reported: " in line]
        assert "rank 1 (host" in report
        assert "step " in report
    assert caught.value.exit_code == 3


def test_a_rank_that_only_computes_names_the_lost_one_too():
    # Longer than the launcher waits for last words; nothing else would tell for it.
    with pytest.raises(LostPeerError) as caught:
        run("killed", busy_s=60.0)
    (report,) = [line for line in str(caught.value).splitlines() if "rank 0 reported: " in line]
    assert "rank 1 (host" in report


@pytest.mark.parametrize("misfortune", ["cut", "reset"])
def test_a_connection_that_was_cut_is_named_with_one_of_its_ends(misfortune):
    with pytest.raises(LostPeerError, match="connection") as caught:
        run(misfortune, "tcp")
    failure = caught.value.failure
    text = str(caught.value)
    # Which end noticed first is chance; rank 1, whose sockets were cut, is one of the two.
    assert failure.culprit.rank == 1 or "rank 1 reported: " in text
    assert failure.at.startswith("step ")
    reports = [line for line in text.splitlines() if " reported: " in line]
    assert len(reports) == 2
    assert all(f"rank {failure.culprit.rank} (host" in line for line in reports)


def test_a_rank_that_the_kernel_killed_for_memory_is_said_to_be(tmp_path, monkeypatch):
    count = tmp_path / "vmstat"
    count.write_text("nr_free_pages 1\noom_kill 4\n")
    monkeypatch.setattr(supervise, "_VMSTAT", count)
    with pytest.raises(LostPeerError) as caught:
        run("killed", on_slow=None)
    assert "out of memory" not in str(caught.value)
    explain = supervise._explain

    later = tmp_path / "later"
    later.write_text("nr_free_pages 1\noom_kill 5\n")

    def explain_after_the_kernel_counted(process):
        # Two threads may ask at once: neither may find the file half written.
        monkeypatch.setattr(supervise, "_VMSTAT", later)
        return explain(process)

    monkeypatch.setattr(supervise, "_explain", explain_after_the_kernel_counted)
    with pytest.raises(LostPeerError, match=r"SIGKILL\), out of memory"):
        run("killed")


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_a_slow_rank_is_reported_and_not_ended(transport):
    slow = []
    outcome = run("late", transport, on_slow=slow.append)
    assert outcome.results == ("unharmed",) * 3
    # On a busy machine another may be late as well.
    late = next(report for report in slow if report.who.rank == 1)
    assert late.seconds >= 2.0
    assert late.doing.startswith("step ")


_FILL = """
import sys
from pathlib import Path
import keras, numpy as np
from fabric.errors import ToolError
from trainer.checkpoint import Position, latest_checkpoint, load_checkpoint, save_checkpoint

folder = Path(sys.argv[1])
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((200,)), keras.layers.Dense(600)])
optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
optimizer.build(model.trainable_variables)
save_checkpoint(folder, model, optimizer, Position(1, 10), plan={}, gate_pass=None)
model.layers[0].kernel.assign_add(np.ones((200, 600), np.float32))
for kind, attempt in enumerate(("weights", "optimizer")):
    if attempt == "optimizer":
        optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
        optimizer.build([keras.Variable(np.zeros(10**6, np.float32))])
    try:
        save_checkpoint(folder, model, optimizer, Position(2 + kind, 20), plan={}, gate_pass=None)
    except ToolError as error:
        print(attempt, error)
assert [p.name for p in folder.iterdir()] == ["epoch-00001"], list(folder.iterdir())
fresh = keras.Sequential([keras.Input((200,)), keras.layers.Dense(600)])
optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
optimizer.build(fresh.trainable_variables)
assert load_checkpoint(latest_checkpoint(folder), fresh, optimizer) == Position(1, 10)
difference = model.layers[0].kernel.numpy() - fresh.layers[0].kernel.numpy()
assert abs(difference - 1.0).max() < 1e-6
print("intact")
"""


@pytest.mark.slow
def test_a_disk_that_is_really_full_costs_no_earlier_checkpoint(tmp_path):
    # One checkpoint has 0.96 MB: the second does not fit beside the first.
    own = ["unshare", "--user", "--map-root-user", "--mount"]
    mount = 'mount -t tmpfs -o size=1200k none "$1" && exec "$2" -c "$3" "$1"'
    done = subprocess.run(
        [*own, "sh", "-c", mount, "sh", str(tmp_path), sys.executable, _FILL],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "KERAS_BACKEND": "tensorflow"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["weights", "optimizer", "intact"]
    assert all("Earlier checkpoints are intact" in line for line in lines[:2])
    assert list(tmp_path.iterdir()) == []
