import json
import subprocess
import sys

import psutil
import pytest

from fabric.errors import InputError
from trainer.bench import contenders
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
