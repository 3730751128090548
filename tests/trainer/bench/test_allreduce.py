import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from fabric.errors import InputError
from trainer.bench import contenders, teams
from trainer.bench.allreduce import busbw_gbps, compare, parse_sizes

KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("4KiB", (4 * KIB,)),
        ("4096,1MiB", (4096, MIB)),
        ("4KiB:64KiB", (4 * KIB, 16 * KIB, 64 * KIB)),
        ("4KiB:100KiB", (4 * KIB, 16 * KIB, 64 * KIB, 100 * KIB)),
        ("1MiB:1MiB,1MiB", (MIB,)),
    ],
)
def test_sizes_are_lists_and_fourfold_ranges(text, sizes):
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize("text", ["", "4 parsecs", "1MiB:4KiB", "4KB", ":"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(InputError) as caught:
        parse_sizes(text)
    assert caught.value.key == "sizes"


def test_busbw_counts_what_a_link_of_a_ring_carries():
    assert busbw_gbps(10**9, 1.0, 2) == 1.0
    assert busbw_gbps(10**9, 0.5, 4) == 3.0


@pytest.mark.parametrize(
    "arguments",
    [
        {"ranks": [1]},
        {"sizes": [6]},
        {"transports": ["carrier pigeon"]},
        {"against": ["nccl"]},
    ],
)
def test_what_cannot_be_compared_is_refused(arguments):
    usual = {"ranks": [2], "sizes": [4096], "transports": ["shm"], "against": []}
    with pytest.raises(InputError):
        compare(**{**usual, **arguments})


def test_an_absent_peer_is_named_and_nothing_is_installed(monkeypatch):
    monkeypatch.setenv(contenders.PEERS_PYTHON, sys.executable)
    monkeypatch.setattr("trainer.bench.contenders.shutil.which", lambda _: None)
    contenders._has.cache_clear()
    assert "make bench" in contenders.absent("openmpi")
    assert "make bench" in contenders.absent("gloo")
    contenders._has.cache_clear()


def test_ours_are_measured_beside_the_machines_limits_and_a_failing_peer_is_excused(monkeypatch):
    # A "peer" that ends at once: the comparison goes on and says so.
    broken = contenders.Contender("gloo", ((sys.executable, "-c", "raise SystemExit('no luck')"),))
    original = contenders.contender
    monkeypatch.setattr("trainer.bench.allreduce.absent", lambda peer: "")
    monkeypatch.setattr(
        "trainer.bench.allreduce.contender",
        lambda name, *rest: broken if name == "gloo" else original(name, *rest),
    )
    before = set(psutil.Process().children(recursive=True))
    words = []
    result = compare(
        [2],
        [4 * KIB, MIB],
        ["shm", "tcp"],
        ["gloo"],
        rounds=2,
        on_step=lambda word, done, total: words.append((word, done, total)),
    )
    assert set(psutil.Process().children(recursive=True)) <= before
    assert "no luck" in result.absent["gloo"]
    assert [(row.transport, row.bytes) for row in result.rows] == [
        ("shm", 4 * KIB),
        ("tcp", 4 * KIB),
        ("shm", MIB),
        ("tcp", MIB),
    ]
    for row in result.rows:
        document = json.loads(json.dumps(row.to_json()))
        assert set(document["ratio"]) == {"limit"}
        assert document["latency_us"] > 0
        assert document["busbw_GBps"] == pytest.approx(row.bytes / row.latency_us / 1e3)
        assert document["ratio"]["limit"] == pytest.approx(
            document["peers_us"]["limit"] / document["latency_us"]
        )
    assert words[-1][2] == 4


def test_the_command_prints_rows_and_absent_peers_as_json():
    command = "from paisoar.cli import main; main()"
    arguments = "bench allreduce --ranks 2 --sizes 4KiB --transport shm --against gloo --json"
    environment = {**contenders.environment(("", 0), ""), contenders.PEERS_PYTHON: sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", command, *arguments.split()],
        capture_output=True,
        env=environment,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    (row,) = document["rows"]
    assert (row["transport"], row["ranks"], row["bytes"]) == ("shm", 2, 4096)
    assert "make bench" in document["absent"]["gloo"]


def test_an_interrupt_ends_all_at_once_with_what_they_have_started(monkeypatch, tmp_path):
    # It would wait so long for workers that leave by themselves.
    monkeypatch.setattr(teams, "_LEAVE_S", 3600.0)
    who = contenders.Contender("x", (("sleep", "3600"), ("sh", "-c", "sleep 3600 & wait")))
    team = teams.Team(who, tmp_path / "log")
    team.start(dict(os.environ))
    parent = psutil.Process(team.processes[1].pid)
    while not (children := parent.children()):
        time.sleep(0.01)
    teams.end([team], at_once=True)
    assert all(process.poll() is not None for process in team.processes)
    assert not any(teams._run(child) for child in children)


def test_an_interrupted_comparison_leaves_no_process_and_no_file(monkeypatch):
    ended = []
    end = teams.end
    monkeypatch.setattr(
        "trainer.bench.allreduce.end",
        lambda started, at_once: (ended.append(at_once), end(started, at_once=at_once)),
    )
    before = set(psutil.Process().children(recursive=True))
    files = set(Path("/dev/shm").glob("paisoar-bench-*"))

    def interrupt(word, done, total):
        if "bytes" in word:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare([2], [4 * KIB], ["shm"], [], on_step=interrupt)
    assert ended == [True]
    assert set(psutil.Process().children(recursive=True)) <= before
    assert set(Path("/dev/shm").glob("paisoar-bench-*")) <= files


def test_what_a_peer_keeps_in_files_is_in_a_folder_of_the_comparison(tmp_path):
    for name in ("openmpi", "openmpi-tcp"):
        (command,) = contenders.contender(name, 2, ("", 0), tmp_path).commands
        assert command[command.index("orte_tmpdir_base") + 1] == str(tmp_path)
    (command,) = contenders.contender("openmpi", 2, ("", 0), tmp_path).commands
    assert command[command.index("btl_vader_backing_directory") + 1] == str(tmp_path)
