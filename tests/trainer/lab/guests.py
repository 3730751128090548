"""Two guests of a running lab, reached over SSH; what the tests here share.

``paisoar lab up --hosts 2``, then ``PAISOAR_LAB=.paisoar/lab/ssh_config pytest
tests/trainer/lab``. Under emulation a test takes minutes, most of them to import and to
compile.
"""

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fabric.site import load_site

LAB = os.environ.get("PAISOAR_LAB", "")
HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PATIENCE_S = 1200
DEVICE = "rxe0"

need_guests = [
    pytest.mark.slow,
    pytest.mark.xdist_group("lab guests"),
    pytest.mark.skipif(
        not LAB, reason="needs two guests: PAISOAR_LAB is not the ssh_config of a lab that is up"
    ),
]


def site():
    """The lab's site; its file lies where its guests' keys do."""
    return load_site(Path(LAB).resolve().parents[2] / "fabric.yaml")


def start(host, command):
    """A command on a guest, with as much locked memory as it likes."""
    words = ["ssh", "-F", LAB, host, f"ulimit -l unlimited; {command}"]
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
    )


def said(host, command):
    """What a command on a guest prints."""
    process = start(host, command)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    return out


def hears(host, port):
    """Wait until somebody listens at a TCP port of a guest."""
    listening = f":{port:04X} 0*:0000 0A"
    said(host, f"until grep -q '{listening}' /proc/net/tcp /proc/net/tcp6; do sleep 0.5; done")


@functools.cache
def gids(host):
    """A guest's RoCEv2 addresses: index by GID, as the kernel writes them."""
    # One process for all: rxe's table has a thousand entries, most of which cannot be read.
    folder = f"/sys/class/infiniband/{DEVICE}/ports/1"
    shown = said(host, f"cd {folder}; grep -s . gids/* gid_attrs/types/*; true")
    rows = dict(line.split(":", 1) for line in shown.splitlines())
    return {
        rows[f"gids/{name.rpartition('/')[2]}"]: int(name.rpartition("/")[2])
        for name, kind in rows.items()
        if name.startswith("gid_attrs/types/") and "v2" in kind
    }


@functools.cache
def address(host):
    """A guest's address in its RoCE network: what its GID of IPv4 maps."""
    (mapped,) = (m[1] for m in map(re.compile(r"^(?:0000:){5}ffff:(\S+)$").match, gids(host)) if m)
    return ".".join(str(byte) for byte in bytes.fromhex(mapped.replace(":", "")))


@functools.cache
def index(host, kind):
    """The index of a guest's GID of ``IPv4`` or ``IPv6``."""
    return next(
        number
        for gid, number in gids(host).items()
        if gid.startswith("0000:0000:0000:0000:0000:ffff:") == (kind == "IPv4")
    )


@functools.cache
def active_mtu():
    """What both guests' ports carry in one packet: that of verbs, in bytes."""
    shown = [said(host, f"ibv_devinfo -d {DEVICE}") for host in ("host1", "host2")]
    return min(int(re.search(r"active_mtu:\s+(\d+)", text)[1]) for text in shown)


@functools.cache
def compiled():
    """The environment in which a guest finds compiled what this machine compiles here.

    An emulated processor would take minutes. It has what ``x86-64-v3`` asks for.
    """
    # A name that no guest has looked for in vain yet.
    cache = tempfile.mkdtemp(prefix="numba-", dir=Path(LAB).resolve().parents[2])
    environment = {
        "NUMBA_CPU_NAME": "x86-64-v3",
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": cache,
    }
    command = (sys.executable, HERE / "compile.py")
    subprocess.run(command, check=True, env={**os.environ, **environment})
    return " ".join(f"{name}={value}" for name, value in environment.items())


def rank_command(rank, port, transport, task, *, options=None, patience_s=200, network=None):
    """The command of one of two ranks, which meet at host1."""
    network = json.dumps({"mtu": active_mtu(), **(network or {})})
    environment = (
        f"{compiled()} PATIENCE_S={patience_s} PYTHONUNBUFFERED=1 PAISOAR_NETWORK='{network}'"
    )
    words = f"2 {address('host1')} {port} {transport} {task} '{json.dumps(options or {})}'"
    return f"{environment} {sys.executable} {HERE / 'rank.py'} {rank} {words}"


def ranks(task, port, *, transport="verbs", options=None, patience_s=200, networks=(None, None)):
    """Both ranks of a task, started."""
    return [
        start(
            f"host{rank + 1}",
            rank_command(
                rank,
                port,
                transport,
                task,
                options=options,
                patience_s=patience_s,
                network=networks[rank],
            ),
        )
        for rank in range(2)
    ]


def results(processes):
    """The last line of each, which is a JSON object."""
    found = []
    for process in processes:
        out, err = process.communicate(timeout=PATIENCE_S)
        assert out, err
        found.append(json.loads(out.splitlines()[-1]))
    return found


def running(processes):
    """Wait until each says that it runs."""
    for process in processes:
        assert process.stdout.readline() == "running\n", process.stderr.read()


def end(processes):
    """End what still runs."""
    for process in processes:
        process.kill()
        process.communicate()
