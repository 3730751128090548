"""The verbs transport between two guests of a running lab; skipped, and it is said, without one.

``paisoar lab up --hosts 2``, then ``PAISOAR_LAB=.paisoar/lab/ssh_config pytest
tests/trainer/lab``. The last test kills host2: ``paisoar lab down`` afterwards. Under
emulation a test takes minutes, most of them to import and to compile.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

LAB = os.environ.get("PAISOAR_LAB", "")
RANK = Path(__file__).with_name("rank.py")
PATIENCE_S = 1200
pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("lab guests"),
    pytest.mark.skipif(
        not LAB, reason="needs two guests: PAISOAR_LAB is not the ssh_config of a lab that is up"
    ),
]


def start(host, command):
    words = ["ssh", "-F", LAB, host, f"ulimit -l unlimited; {command}"]
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
    )


def said(host, command):
    process = start(host, command)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    return out


@pytest.fixture(scope="module")
def address():
    """host1's address in its RoCE network: what its GID of IPv4 maps."""
    table = said("host1", "cat /sys/class/infiniband/*/ports/1/gids/*")
    (mapped,) = set(re.findall(r"^(?:0000:){5}ffff:(\S+)$", table, re.MULTILINE))
    return ".".join(str(byte) for byte in bytes.fromhex(mapped.replace(":", "")))


def ranks(address, task, port, *, transport="verbs", options=None, patience_s=200):
    """Both ranks of a task, started."""
    environment = f"NUMBA_CACHE_DIR=/tmp/numba PATIENCE_S={patience_s} PYTHONUNBUFFERED=1"
    words = f"2 {address} {port} {transport} {task} '{json.dumps(options or {})}'"
    return [
        start(f"host{rank + 1}", f"{environment} {sys.executable} {RANK} {rank} {words}")
        for rank in range(2)
    ]


def results(processes):
    found = []
    for process in processes:
        out, err = process.communicate(timeout=PATIENCE_S)
        assert out, err
        found.append(json.loads(out.splitlines()[-1]))
    return found


def test_sums_are_exact_over_sizes_and_types(address):
    for found in results(ranks(address, "correct", 21001)):
        assert found == {"checked": 60, "wrong": [], "same": True}


def both_ways_bps(address, port):
    """What ib_write_bw reaches each way while it sends both ways."""
    words = f"ib_write_bw -b -F -s 1048576 -n 30 -u 18 -p {port} --report_gbits"
    server = start("host1", words)
    time.sleep(10)
    out = said("host2", f"{words} {address}")
    server.communicate(timeout=PATIENCE_S)
    average = float(re.search(r"#bytes.*\n\s*\d+\s+\d+\s+\S+\s+(\S+)", out)[1])
    return average * 1e9 / 2


def test_busbw_is_near_what_the_device_carries_both_ways(address):
    before = both_ways_bps(address, 21101)
    options = {"nbytes": 4 << 20, "turns": 7, "steps": 3}
    found = results(ranks(address, "speed", 21102, options=options))
    after = both_ways_bps(address, 21103)
    reached = statistics.median(found[0]["busbw_bps"])
    assert reached >= 0.8 * min(before, after), (reached, before, after)


def test_a_killed_guest_is_named_within_thirty_seconds(address):
    processes = ranks(address, "endless", 21201, patience_s=20)
    for process in processes:
        assert process.stdout.readline() == "running\n", process.stderr.read()
    time.sleep(5)
    killer = start("host2", "echo o > /proc/sysrq-trigger")
    began = time.monotonic()
    (found,) = results(processes[:1])
    assert time.monotonic() - began < 30
    assert "rank 1" in found["error"]
    assert "host2" in found["error"]
    for process in (killer, processes[1]):
        process.kill()
        process.communicate()
