"""``paisoar train`` as a whole, started over SSH, by mpirun and by a scheduler's variables.

Twice real SSH: the emulated hosts of a twin, and OpenSSH's own sshd where this machine has it.
"""

import contextlib
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from fabric.intended import roce_tos
from fabric.reach.access import twin_dir
from fabric.site import load_site
from fabric.topology import ClosShape
from fabric.twin.lifecycle import down, up
from tests.sites import make_site, write_site
from tests.trainer.test_supervise import gone_within
from trainer.collective.settings import VARIABLE
from trainer.scheduled import TOKEN

ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "tests.trainer.train_program", "train")
SHORT = ("--ranks", "2", "--batch", "64", "--epochs", "2", "--json")
# Ends only when it is killed.
LONG = ("--ranks", "2", "--batch", "64", "--epochs", "9000", "--checkpoint-every", "20", "--json")
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2")
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("twin-of-the-trainer")]
with_mpirun = pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no Open MPI")


@pytest.fixture
def start():
    """Starts ``paisoar train`` on a site, without another scheduler's variables around it."""
    foreign = ("SLURM_", "OMPI_", "PMIX_")
    own = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
    started = []

    def launch(file, *words, before=(), **environ):
        job = subprocess.Popen(
            [*before, *PROGRAM, "-f", str(file), *words],
            cwd=ROOT,
            env={**own, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(job)
        return job

    yield launch
    for job in started:
        job.terminate()
        job.communicate(timeout=60)


def finish(process, within_s=90):
    out, err = process.communicate(timeout=within_s)
    return process.returncode, out, err


def result_of(job):
    code, out, err = finish(job)
    assert code == 0, err
    return json.loads(out)


def documents(text):
    """The JSON documents that several processes have printed into one stream."""
    found, decoder = [], json.JSONDecoder()
    while text := text.strip():
        document, end = decoder.raw_decode(text)
        found.append(document)
        text = text[end:]
    return found


def ranks_of(processes):
    """Which of these are ranks, oldest first."""
    found = []
    for process in processes:
        with contextlib.suppress(psutil.Error):
            if "trainer.rank" in process.cmdline():
                found.append(process)
    return sorted(found, key=lambda process: process.create_time())


def below(*pids):
    """All that these processes have started."""
    return [child for pid in pids for child in psutil.Process(pid).children(recursive=True)]


def on_hosts_of(site):
    """All processes on the emulated hosts of this twin: their homes lie in its folder."""
    folder, found = str(twin_dir(site).resolve()), []
    for process in psutil.process_iter(["environ"]):
        if (process.info["environ"] or {}).get("HOME", "").startswith(folder):
            found.append(process)
    return found


def strike(file, jobs, processes, is_victim):
    """Kill one of two ranks in the middle of their training; both ranks' pids.

    Until then they must have talked as the site is certified.
    """
    deadline = time.monotonic() + 60
    saved = Path(".paisoar/training").joinpath("*", "epoch-*-step-*")
    known = set(file.parent.glob(str(saved)))
    while not set(file.parent.glob(str(saved))) - known:
        assert all(job.poll() is None for job in jobs), [finish(job) for job in jobs]
        assert time.monotonic() < deadline
        time.sleep(0.1)
    ranks = ranks_of(processes())
    assert len(ranks) == 2
    intent = load_site(file).intent
    for rank in ranks:
        network = json.loads(rank.environ()[VARIABLE])
        assert network["traffic_class"] == roce_tos(intent) != 0
        assert (network["mtu"], network["timeout"]) == (intent.mtu.roce, 17)
    (victim,) = [rank for number, rank in enumerate(ranks) if is_victim(number, rank.environ())]
    os.kill(victim.pid, signal.SIGKILL)
    return [rank.pid for rank in ranks]


def assert_named(words):
    # In which place it was struck (a step and bucket, a test, an epoch's end) is chance.
    assert re.search(r"rank 1 \(host .*, pid \d+\) .*, last heard of at \w+", words)
    assert re.search(r"rank 0 reported: rank 0 in \w+.*: rank 1 \(host ", words)


def assert_lost(job, struck):
    """The job ends within seconds, says who was lost, and leaves nothing."""
    began = time.monotonic()
    code, out, _ = finish(job)
    assert time.monotonic() - began < 10
    assert code == 3
    assert_named(json.loads(out)["error"]["message"])
    assert gone_within(struck, seconds=5)


@pytest.fixture(scope="module")
def twin(tmp_path_factory):
    made = make_site(tmp_path_factory.mktemp("site"), ClosShape(hosts=2, leaves=2, spines=1))
    up(made)
    yield made
    down(made.path)


def test_two_hosts_train_over_ssh_and_end_with_identical_weights(twin, start):
    result = result_of(start(twin.path, "--launch", "ssh", *SHORT))
    assert result["weights_identical"] is True
    assert (result["ranks"], result["transport"]) == (2, "tcp")
    assert result["history"][-1]["loss"] < result["history"][0]["loss"]
    assert not ranks_of(on_hosts_of(twin))
    folder = Path(result["checkpoint"]).parent
    longer = (*SHORT[: SHORT.index("--epochs")], "--epochs", "3", "--json")
    resumed = result_of(start(twin.path, "--launch", "ssh", "--resume", str(folder), *longer))
    assert [record["epoch"] for record in resumed["history"]] == [3]
    assert Path(resumed["checkpoint"]) == folder / "epoch-00003"
    assert resumed["weights_identical"] is True


def test_a_script_of_ones_own_runs_on_two_hosts_over_ssh(twin, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import os, sys\nprint(os.getcwd(), os.environ['HOME'], *sys.argv[1:])\n")
    command = [sys.executable, "-m", "tests.trainer.start_program", "-f", str(twin.path)]
    done = subprocess.run(
        [*command, "--launch", "ssh", str(script), "--epochs", "3"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert re.fullmatch(rf"{ROOT} \S+/host1/?\S* --epochs 3", lines[0])
    assert re.fullmatch(rf"rank 1: {ROOT} \S+/host2/?\S* --epochs 3", lines[1])
    assert not ranks_of(on_hosts_of(twin))


def test_a_rank_killed_on_its_host_is_named_and_nothing_is_left(twin, start):
    job = start(twin.path, "--launch", "ssh", "--network", "timeout=17", *LONG)
    on_host2 = lambda _, environ: "host2" in Path(environ["HOME"]).parts  # noqa: E731
    struck = strike(twin.path, [job], lambda: on_hosts_of(twin), on_host2)
    assert_lost(job, struck)


@pytest.fixture
def sshd(tmp_path):
    """OpenSSH's own server on a port of loopback, with keys of its own: its process and port."""
    if SSHD is None:
        pytest.skip("OpenSSH's sshd is not installed")
    for name in ("host_key", "user_key"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)]
        subprocess.run(words, check=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    known = (tmp_path / "host_key.pub").read_text()
    (tmp_path / "known_hosts").write_text(f"[127.0.0.1]:{port} {known}")
    config = tmp_path / "sshd_config"
    config.write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {tmp_path}/host_key\nPidFile none\n"
        f"AuthorizedKeysFile {tmp_path}/user_key.pub\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nPermitRootLogin prohibit-password\n"
    )
    log = tmp_path / "sshd.log"
    with log.open("wb") as stream:
        server = subprocess.Popen([SSHD, "-D", "-e", "-f", str(config)], stderr=stream)
    try:
        deadline = time.monotonic() + 10
        while "Server listening" not in log.read_text() and time.monotonic() < deadline:
            if server.poll() is not None:
                pytest.skip(f"sshd does not start here: {log.read_text().strip()}")
            time.sleep(0.1)
        yield server.pid, port
    finally:
        server.terminate()
        server.wait(10)


def test_two_ranks_train_over_opensshs_own_server(sshd, tmp_path, start):
    # One server is both hosts: what is tried is the launch, the login and the end.
    server, port = sshd
    path = write_site(tmp_path, ClosShape(2, 2, 1), environment="site")
    user = pwd.getpwuid(os.geteuid()).pw_name
    login = f"    mgmt: {{address: 127.0.0.1, port: {port}, user: {user}}}\n"
    text = path.read_text()
    assert text.count("    kind: host\n") == 2
    path.write_text(text.replace("    kind: host\n", f"    kind: host\n{login}"))
    keys = {
        "PAISOAR_HOST_KEY": str(tmp_path / "user_key"),
        "PAISOAR_KNOWN_HOSTS": str(tmp_path / "known_hosts"),
    }
    result = result_of(start(path, "--launch", "ssh", *SHORT, **keys))
    assert result["weights_identical"] is True
    job = start(path, "--launch", "ssh", "--network", "timeout=17", *LONG, **keys)
    struck = strike(path, [job], lambda: below(server), lambda number, _: number == 1)
    assert_lost(job, struck)


@with_mpirun
def test_real_mpirun_trains_two_ranks_to_identical_weights(tmp_path, start):
    code, out, err = finish(start(write_site(tmp_path), *SHORT, before=MPIRUN))
    assert code == 0, err
    first, other = sorted(documents(out), key=len, reverse=True)
    assert other == {"rank": 1, "ranks": 2, "scheduler": "Open MPI"}
    assert first["weights_identical"] is True
    assert (first["ranks"], first["transport"]) == (2, "shm")
    assert not list((tmp_path / ".paisoar" / "training" / "meetings").iterdir())


@with_mpirun
def test_a_rank_killed_under_mpirun_is_named_by_rank_0_and_nothing_is_left(tmp_path, start):
    file = write_site(tmp_path)
    job = start(file, "--network", "timeout=17", *LONG, before=MPIRUN)
    is_victim = lambda _, environ: environ["OMPI_COMM_WORLD_RANK"] == "1"  # noqa: E731
    struck = strike(file, [job], lambda: below(job.pid), is_victim)
    began = time.monotonic()
    code, out, err = finish(job)
    assert time.monotonic() - began < 10
    assert code == 3
    assert "rank 1 was killed by signal 9 (SIGKILL)" in err
    messages = [document["error"]["message"] for document in documents(out)]
    assert_named("".join(messages))
    assert gone_within(struck, seconds=5)
    assert not list((tmp_path / ".paisoar" / "training" / "meetings").iterdir())


def slurm():
    common = {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2"}
    return [{**common, "SLURM_PROCID": rank, "SLURM_LOCALID": rank} for rank in "01"]


def variables():
    with socket.create_server(("127.0.0.1", 0)) as server:
        common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(server.getsockname()[1])}
    common |= {"WORLD_SIZE": "2", TOKEN: "a secret of enough characters"}
    return [{**common, "RANK": rank} for rank in "01"]


@pytest.mark.parametrize("environs", [slurm, variables])
def test_a_rank_killed_under_a_scheduler_is_named_and_nothing_is_left(tmp_path, environs, start):
    file = write_site(tmp_path)
    jobs = [start(file, "--network", "timeout=17", *LONG, **environ) for environ in environs()]
    pids = [job.pid for job in jobs]
    second = lambda _, environ: "1" in (environ.get("RANK"), environ.get("SLURM_PROCID"))  # noqa: E731
    struck = strike(file, jobs, lambda: below(*pids), second)
    assert_lost(jobs[0], struck)
    code, _, err = finish(jobs[1])
    assert code == 3
    assert "rank 1 was killed by signal 9 (SIGKILL)" in err


def test_ranks_whose_hosts_know_different_sites_are_refused_with_both_sides_shown(tmp_path, start):
    # As on two machines of which one has yesterday's fabric.yaml.
    files = [write_site(tmp_path), tmp_path / "other" / "fabric.yaml"]
    files[1].parent.mkdir()
    text = files[0].read_text()
    assert text.count("dscp: [26]") == 1
    files[1].write_text(text.replace("dscp: [26]", "dscp: [24]"))
    jobs = [
        start(file, *SHORT, **environ) for file, environ in zip(files, variables(), strict=True)
    ]
    code, out, _ = finish(jobs[0])
    assert code == 3
    said = json.loads(out)["error"]
    assert said["kind"] == "MismatchError"
    assert "traffic_class is 98 on rank 1, 106 on rank 0" in said["message"]
    assert finish(jobs[1])[0] == 3
