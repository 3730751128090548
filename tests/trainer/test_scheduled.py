"""Ranks that a scheduler starts. Slurm's variables: srun(1), "OUTPUT ENVIRONMENT VARIABLES"."""

import ipaddress
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fabric.errors import InputError, PeerError
from trainer import scheduled
from trainer.collective.rendezvous import Rendezvous
from trainer.collective.scheduler import Share, detect
from trainer.scheduled import TOKEN, find, hosting

ROOT = Path(__file__).parents[2]
SLURM = {
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "3",
    "SLURM_STEP_NUM_TASKS": "5",
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_STEP_TASKS_PER_NODE": "3,2",
    "SLURM_NODEID": "1",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "PMIX_NAMESPACE": "1234.1",
}


@pytest.mark.parametrize(
    ("environ", "share"),
    [
        ({}, None),
        ({"RANK": "1"}, None),
        (SLURM, Share("Slurm", "4711.0", 3, 5, 2)),
        ({**SLURM, "SLURM_STEP_TASKS_PER_NODE": "4(x2)"}, Share("Slurm", "4711.0", 3, 5, 4)),
        (
            {**SLURM, "SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_NUM_TASKS": "4"},
            Share("Slurm", "4711.0", 3, 4, 4),
        ),
        # The batch script of a job is no rank, nor is a step of one task.
        ({k: v for k, v in SLURM.items() if k != "SLURM_STEP_ID"}, None),
        ({**SLURM, "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}, None),
        (OPEN_MPI, Share("Open MPI", "1234.1", 1, 2, 2)),
        (
            {"RANK": "2", "WORLD_SIZE": "4", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"},
            Share("RANK and WORLD_SIZE", "29500", 2, 4, 1, ("10.0.0.1", 29500)),
        ),
        (
            {
                "JOB_COMPLETION_INDEX": "1",
                "WORLD_SIZE": "2",
                "MASTER_ADDR": "job-0",
                "MASTER_PORT": "7000",
                "KUBERNETES_SERVICE_HOST": "10.96.0.1",
            },
            Share("Kubernetes", "7000", 1, 2, 1, ("job-0", 7000)),
        ),
        # torchrun listens at MASTER_PORT itself: ranks meet through the file.
        (
            {
                "RANK": "1",
                "WORLD_SIZE": "4",
                "LOCAL_WORLD_SIZE": "4",
                "MASTER_ADDR": "localhost",
                "MASTER_PORT": "29500",
                "TORCHELASTIC_RUN_ID": "none",
                "TORCHELASTIC_USE_AGENT_STORE": "True",
            },
            Share("RANK and WORLD_SIZE", "none-29500", 1, 4, 4),
        ),
    ],
)
def test_a_process_learns_its_place_from_its_scheduler(environ, share):
    assert detect(environ) == share


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"RANK": "4", "WORLD_SIZE": "4"}, "rank 4 of 4"),
        ({"RANK": "one", "WORLD_SIZE": "4"}, "RANK.*'one' is no number"),
        ({"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "a"}, "MASTER_PORT.*is not set"),
        ({**SLURM, "SLURM_STEP_TASKS_PER_NODE": "many"}, "cannot read 'many'"),
    ],
)
def test_variables_that_make_no_sense_are_named(environ, said):
    with pytest.raises(InputError, match=said) as refused:
        detect(environ)
    assert "--launch local" in refused.value.advice


def test_the_meeting_file_is_its_users_alone_and_gone_afterwards(tmp_path, monkeypatch):
    share = Share("Open MPI", "1234.1/x", 0, 2, 2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        with hosting(share, tmp_path, {}) as meeting:
            assert meeting.host == "127.0.0.1"
            meeting.announce(server.getsockname(), meeting.token)
            (path,) = tmp_path.iterdir()
            assert path.name == "meeting-Open-MPI-1234.1-x.json"
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            found = find(Share("Open MPI", "1234.1/x", 1, 2, 2), tmp_path, {})
            assert found == (server.getsockname()[:2], meeting.token)
            left = path.read_text()
        assert list(tmp_path.iterdir()) == []
    # What a killed job has left leads nowhere, and is not followed.
    monkeypatch.setattr(scheduled, "_FOUND_WITHIN_S", 0.3)
    path.write_text(left)
    with pytest.raises(PeerError, match=r"rank 0 has said 127.*:\d+, but: Connection refused"):
        find(share, tmp_path, {})
    path.unlink()
    with pytest.raises(PeerError, match="rank 0 has not said where to meet"):
        find(share, tmp_path, {})


def test_rank_0_says_an_address_where_its_name_does_not_resolve(tmp_path, monkeypatch):
    def unknown(name):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "gethostbyname_ex", unknown)
    share = Share("RANK and WORLD_SIZE", "0", 0, 2, 1)
    with hosting(share, tmp_path, {}) as meeting:
        assert ipaddress.ip_address(meeting.host) != ipaddress.ip_address("0.0.0.0")
        with socket.create_server((meeting.host, 0)) as server:
            meeting.announce(server.getsockname(), meeting.token)
            assert find(share, tmp_path, {}) == (server.getsockname()[:2], meeting.token)


def test_the_resolvers_error_is_told(tmp_path, monkeypatch):
    def unknown(address, timeout):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "create_connection", unknown)
    monkeypatch.setattr(scheduled, "_FOUND_WITHIN_S", 0.3)
    share = Share("Kubernetes", "7000", 1, 2, 1, ("job-0", 7000))
    with pytest.raises(PeerError, match="job-0:7000 within 0.3 s: Name or service not known"):
        find(share, tmp_path, {TOKEN: "a secret of enough characters"})


def test_a_port_that_is_taken_is_refused_with_what_to_set():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(InputError, match="MASTER_PORT.*in use.*the port free"),
    ):
        Rendezvous(2, "token", port=server.getsockname()[1])


def test_meeting_at_an_address_needs_a_common_secret(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        share = Share("Kubernetes", "7000", 1, 2, 1, server.getsockname()[:2])
        with pytest.raises(InputError, match="16 characters") as caught:
            find(share, tmp_path, {TOKEN: "short"})
        assert caught.value.key == TOKEN
        environ = {TOKEN: "a secret of enough characters"}
        address, token = find(share, tmp_path, environ)
        with hosting(share, tmp_path, environ) as meeting:
            assert (meeting.host, meeting.port, meeting.token) == (*address, token)
    assert list(tmp_path.iterdir()) == []


def _job(tmp_path, environs, program="where"):
    """Start one process an environment, as a scheduler does; what they print, and their codes."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "OMPI_", "PMIX_"))}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.trainer.scheduled_program", str(tmp_path), program],
            env={**clean, **environ},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for environ in environs
    ]
    said = [process.communicate(timeout=60) for process in processes]
    return said, [process.returncode for process in processes]


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.mark.parametrize("scheduler", ["Slurm", "RANK and WORLD_SIZE"])
def test_processes_of_a_scheduler_train_as_one_job(tmp_path, scheduler):
    if scheduler == "Slurm":
        common = {**SLURM, "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "1"}
        environs = [{**common, "SLURM_PROCID": str(rank)} for rank in range(2)]
    else:
        common = {
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(_free_port()),
            TOKEN: "a secret of enough characters",
        }
        environs = [{**common, "RANK": str(rank)} for rank in range(2)]
    said, codes = _job(tmp_path, environs)
    assert codes == [0, 0], said
    name, results = json.loads(said[0][0])
    assert name == scheduler
    assert [(r["rank"], r["total"]) for r in results] == [(0, 2.0), (1, 2.0)]
    assert list(tmp_path.iterdir()) == []


def test_numbers_of_ranks_that_differ_are_both_told(tmp_path):
    environs = [{"RANK": str(rank), "WORLD_SIZE": str(2 + rank)} for rank in range(2)]
    said, codes = _job(tmp_path, environs)
    assert codes == [1, 1]
    for _, error in said:
        assert "it calls itself rank 1 of 3, this job has 2 ranks" in error
        assert "Traceback" not in error
        assert "File " not in error


def test_a_failing_rank_ends_all_processes_of_a_scheduler(tmp_path):
    common = {**SLURM, "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "1"}
    began = time.monotonic()
    environs = [{**common, "SLURM_PROCID": str(rank)} for rank in range(2)]
    said, codes = _job(tmp_path, environs, "raise_on_one")
    assert codes == [1, 1]
    assert time.monotonic() - began < 30
    assert "rank 1 (host" in said[0][1]
    assert "no such layer" in said[0][1]
    assert "no such layer" in said[1][1]


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="Open MPI is not installed")
def test_real_mpirun_starts_a_job(tmp_path):
    words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"]
    program = ["-m", "tests.trainer.scheduled_program", str(tmp_path), "where"]
    done = subprocess.run(
        [*words, sys.executable, *program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    name, results = json.loads(done.stdout)
    assert name == "Open MPI"
    assert [result["total"] for result in results] == [2.0, 2.0]
    assert list(tmp_path.iterdir()) == []
