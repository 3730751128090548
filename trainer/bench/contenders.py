"""Who takes part in a comparison, and how its processes are started."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import trainer

PEERS = ("openmpi", "openmpi-tcp", "gloo", "tf-ring")
TRANSPORTS = ("shm", "tcp")
LIMITS = {"shm": "limit-copy", "tcp": "limit-sockets"}
PEERS_PYTHON = "PAISOAR_PEERS_PYTHON"
_ROOT = Path(trainer.__file__).resolve().parent.parent
_WORKERS = "trainer.bench.workers"


@dataclass(frozen=True)
class Contender:
    """A contender: its name, and the commands of its processes."""

    name: str
    commands: tuple[tuple[str, ...], ...]


def peers_python() -> str:
    """The Python that has the peers: $PAISOAR_PEERS_PYTHON, ``.venv-peers``, or our own."""
    chosen = os.environ.get(PEERS_PYTHON)
    if chosen:
        return chosen
    for folder in (Path.cwd(), _ROOT):
        python = folder / ".venv-peers" / "bin" / "python"
        if python.exists():
            return str(python)
    return sys.executable


def absent(peer: str) -> str:
    """Why a peer cannot take part; empty if it can."""
    if peer == "tf-ring":
        return "" if importlib.util.find_spec("tensorflow") else "TensorFlow is not installed"
    if peer == "gloo":
        return "" if _has("torch") else "PyTorch is not installed: make bench"
    if not shutil.which("mpirun"):
        return "Open MPI is not installed: make bench"
    return "" if _has("mpi4py") else "mpi4py is not installed: make bench"


@functools.cache
def _has(module: str) -> bool:
    check = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([peers_python(), "-c", check], check=False).returncode == 0


def environment(address: tuple[str, int], token: str) -> dict[str, str]:
    """The environment of all contenders' processes."""
    path = os.pathsep.join(part for part in (str(_ROOT), os.environ.get("PYTHONPATH")) if part)
    return {
        **os.environ,
        "PAISOAR_BENCH": f"{address[0]}:{address[1]}",
        "PAISOAR_BENCH_TOKEN": token,
        "PYTHONPATH": path,
        "OMP_NUM_THREADS": "1",
    }


def contender(name: str, ranks: int, rendezvous: tuple[str, int], folder: Path) -> Contender:
    """How to start ``name`` with ``ranks`` processes; ours meet at ``rendezvous``.

    What peers keep in files, also as shared memory, is in ``folder``: whoever
    removes it has removed all, however they end.
    """
    if name in TRANSPORTS:
        host, port = rendezvous[0], str(rendezvous[1])
        return _each(
            name, ranks, lambda rank: _ours("ours", name, str(rank), str(ranks), host, port)
        )
    if name == "limit-copy":
        return _each(name, ranks, lambda rank: _ours("limits", "copy", str(rank), str(ranks)))
    if name == "limit-sockets":
        ports = _free_ports(ranks)
        return _each(
            name, ranks, lambda rank: _ours("limits", "sockets", str(rank), str(ranks), *ports)
        )
    if name == "tf-ring":
        ports = _free_ports(ranks)
        return _each(name, ranks, lambda rank: _ours("tf_ring", str(rank), *ports))
    if name == "gloo":
        shared = tempfile.mktemp(dir=folder)  # noqa: S306 (in a folder of our own)
        return _each(name, ranks, lambda rank: _peers("gloo", str(rank), str(ranks), shared))
    return Contender(name, (_mpirun(name, ranks, folder),))


def _mpirun(name: str, ranks: int, folder: Path) -> tuple[str, ...]:
    root = ("--allow-run-as-root",) if os.geteuid() == 0 else ()
    if name == "openmpi-tcp":
        btl = ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"]
    else:
        btl = ["--mca", "btl", "self,vader", "--mca", "btl_vader_backing_directory", str(folder)]
    return (
        "mpirun",
        *root,
        "--oversubscribe",
        "--mca",
        "pml",
        "ob1",
        "--mca",
        "orte_tmpdir_base",
        str(folder),
        *btl,
        "-n",
        str(ranks),
        *_peers("openmpi", name),
    )


def _ours(module: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", f"{_WORKERS}.{module}", *arguments)


def _peers(module: str, *arguments: str) -> tuple[str, ...]:
    return (peers_python(), "-m", f"{_WORKERS}.{module}", *arguments)


def _each(name: str, ranks: int, command: Callable[[int], tuple[str, ...]]) -> Contender:
    return Contender(name, tuple(command(rank) for rank in range(ranks)))


def _free_ports(count: int) -> list[str]:
    """Ports that are free now; a peer that needs to be told them has no better way."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [str(sock.getsockname()[1]) for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports
