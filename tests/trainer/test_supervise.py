import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from fabric.errors import PeerError
from trainer.collective.errors import LostPeerError, MismatchError
from trainer.collective.rendezvous import Rendezvous
from trainer.supervise import run_ranks

ROOT = Path(__file__).parents[2]
PROGRAMS = "tests.trainer.programs"


def run(name, payload=None, **options):
    return run_ranks(f"{PROGRAMS}:{name}", payload, path=[ROOT], **options)


def gone_within(pids, seconds):
    """Whether none of them runs any more; init may take its time to reap an orphan."""

    def runs(pid):
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    deadline = time.monotonic() + seconds
    while any(map(runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(runs, pids))


def listening():
    """The ports on which this process listens."""
    connections = psutil.Process().net_connections("tcp")
    return {c.laddr for c in connections if c.status == psutil.CONN_LISTEN}


@pytest.fixture(autouse=True)
def _nothing_is_left():
    segments = set(Path("/dev/shm").iterdir())
    processes = set(psutil.Process().children(recursive=True))
    ports = listening()
    yield
    assert listening() <= ports
    assert set(psutil.Process().children(recursive=True)) <= processes
    assert set(Path("/dev/shm").iterdir()) <= segments


@pytest.mark.parametrize(
    ("transport", "used"), [("auto", "shm"), pytest.param("tcp", "tcp", marks=pytest.mark.slow)]
)
def test_ranks_are_processes_that_compute_together(transport, used):
    outcome = run("square", 3, ranks=2, transport=transport, hidden=["matplotlib"])
    assert [result["rank"] for result in outcome.results] == [0, 1]
    assert [result["total"] for result in outcome.results] == [9.0, 9.0]
    assert {result["transport"] for result in outcome.results} == {used}
    assert len({result["pid"] for result in outcome.results} | {os.getpid()}) == 3
    assert outcome.results[0]["threads"] == max(1, len(os.sched_getaffinity(0)) // 2)
    assert outcome.printed == (("hello of rank 0",), ("hello of rank 1",))


def test_a_result_that_is_read_late_is_no_lost_rank(monkeypatch):
    handle = Rendezvous._handle

    def late(self, member, message):
        if message["t"] == "result":
            time.sleep(0.3)
        return handle(self, member, message)

    monkeypatch.setattr(Rendezvous, "_handle", late)
    outcome = run("square", 3, ranks=2, transport="tcp")
    assert [result["rank"] for result in outcome.results] == [0, 1]


def test_one_rank_alone_works_too():
    (result,) = run("square", 4, ranks=1).results
    assert result["total"] == 16.0
    assert result["transport"] == "none"


@pytest.mark.parametrize(
    ("number", "transport", "said"),
    [
        (signal.SIGKILL, "shm", "was killed by signal 9 (SIGKILL)"),
        pytest.param(
            *(signal.SIGKILL, "tcp", "was killed by signal 9 (SIGKILL)"), marks=pytest.mark.slow
        ),
        (signal.SIGSTOP, "shm", "is stopped (SIGSTOP"),
    ],
)
def test_a_killed_or_stopped_rank_is_named_by_all_others_within_seconds(number, transport, said):
    pids = {}
    struck = []

    def strike(rank, value):
        pids[rank] = value
        if len(pids) == 3:
            os.kill(pids[1]["pid"], number)
            struck.append(time.monotonic())

    with pytest.raises(LostPeerError) as caught:
        run("reduce_on", "with child", ranks=3, transport=transport, on_event=strike)
    assert time.monotonic() - struck[0] < 10
    error = caught.value
    assert error.exit_code == 3
    assert error.failure.culprit.rank == 1
    assert error.failure.culprit.pid == pids[1]["pid"]
    assert error.failure.at.startswith("step ")
    for words in (said, f"pid {pids[1]['pid']}", "rank 0 reported: ", "rank 2 reported: "):
        assert words in str(error)
    for report in str(error).splitlines()[1:]:
        assert f"rank 1 (host {error.failure.culprit.host}" in report
    assert gone_within([pid for pair in pids.values() for pid in pair.values()], seconds=2)


def test_an_exception_in_user_code_is_told_with_its_traceback():
    with pytest.raises(LostPeerError) as caught:
        run("misbehave", "raise", ranks=2)
    assert caught.value.failure.culprit.rank == 1
    text = str(caught.value)
    assert "KeyError: 'no such layer'" in text
    assert 'raise KeyError("no such layer")' in text
    assert "rank 0 reported: rank 0 in step 9: rank 1" in text


@pytest.mark.slow
def test_a_rank_that_hangs_is_named_once_patience_ends():
    with pytest.raises(LostPeerError) as caught:
        run("misbehave", "hang", ranks=2, patience_s=5.0)
    failure = caught.value.failure
    assert (failure.culprit.rank, failure.cause, failure.at) == (1, "did not come", "step 8")
    assert 5.0 <= failure.seconds < 60.0


@pytest.mark.slow
def test_a_rank_that_just_exits_is_named_with_its_code():
    with pytest.raises(LostPeerError, match="rank 1 .*ended with exit code 7"):
        run("misbehave", "exit", ranks=2)


def test_ranks_that_disagree_end_the_job_with_both_sides_shown():
    with pytest.raises(MismatchError) as caught:
        run("misbehave", "mismatch", ranks=2)
    assert isinstance(caught.value, PeerError)
    assert "float32[3]" in str(caught.value)
    assert "float32[4]" in str(caught.value)


def test_waiting_costs_no_cpu_when_ranks_outnumber_cores():
    ranks = len(os.sched_getaffinity(0)) + 1
    for spent in run("wait_idly", 1.5, ranks=ranks, transport="shm").results:
        assert spent < 0.4


@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)],
)
def test_nothing_is_left_when_the_launcher_is_ended(number):
    script = (
        "from pathlib import Path\n"
        "from trainer.supervise import run_ranks\n"
        f"run_ranks('{PROGRAMS}:reduce_on', None, ranks=2, path=[Path({str(ROOT)!r})],\n"
        "    on_event=lambda rank, value: print(value['pid'], flush=True))\n"
    )
    launcher = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    pids = [int(launcher.stdout.readline()) for _ in range(2)]
    launcher.send_signal(number)
    launcher.communicate(timeout=60)
    assert launcher.returncode == -number
    assert gone_within(pids, seconds=10)


def test_what_a_killed_rank_has_in_its_temporary_folder_goes_with_the_job():
    folders = []
    with pytest.raises(PeerError, match="SIGKILL"):
        run("write_and_die", ranks=2, on_event=lambda _, value: folders.append(value["folder"]))
    assert len(set(folders)) == 1
    assert folders[0] != tempfile.gettempdir()
    assert not Path(folders[0]).exists()
