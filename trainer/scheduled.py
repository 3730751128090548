"""Ranks that a scheduler has started: Slurm, Open MPI, Kubernetes, torchrun's variables.

Each process learns its place from its environment. They meet through rank 0:
where ``MASTER_ADDR`` and ``MASTER_PORT`` say so, at that address, proved by
the secret in ``PAISOAR_JOB_TOKEN``; else through a file that rank 0 writes for
its user alone, in a folder that all hosts share (the site's).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fabric.errors import InputError, PeerError
from trainer.collective.wire import new_token
from trainer.supervise import Meeting

TOKEN = "PAISOAR_JOB_TOKEN"  # noqa: S105 - a variable's name
_FOUND_WITHIN_S = 60.0
_POLL_S = 0.1


@dataclass(frozen=True)
class Share:
    """One process' place in a job that a scheduler has started.

    ``address`` is rank 0's ("", 0 where the environment does not name it);
    ``local_rank`` counts the ranks of one host.
    """

    scheduler: str
    job: str
    rank: int
    size: int
    local_size: int
    address: tuple[str, int] = ("", 0)
    local_rank: int = 0

    @property
    def one_host(self) -> bool:
        """Whether all ranks run on this host."""
        return self.local_size == self.size


def detect(environ: Mapping[str, str]) -> Share | None:
    """The place that the environment gives this process; None: nobody has started it as a rank.

    InputError where the variables contradict each other.
    """
    for reader in (_slurm, _open_mpi, _variables):
        share = reader(environ)
        if share is not None:
            if not 0 <= share.rank < share.size:
                raise InputError(
                    f"{share.scheduler} calls this rank {share.rank} of {share.size}",
                    key="environment",
                )
            return share
    return None


def _slurm(env: Mapping[str, str]) -> Share | None:
    """Inside ``srun``: a step has an id; the batch script itself is no rank."""
    if "SLURM_STEP_ID" not in env or "SLURM_PROCID" not in env:
        return None
    size = _number(env, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
    if size == 1:
        return None
    nodes = _number(env, "SLURM_STEP_NUM_NODES", "SLURM_NNODES", default=1)
    job = f"{env.get('SLURM_JOB_ID', '0')}.{env['SLURM_STEP_ID']}"
    local = size if nodes == 1 else _tasks_on_node(env)
    place = _number(env, "SLURM_LOCALID", default=0)
    return Share("Slurm", job, _number(env, "SLURM_PROCID"), size, local, _master(env), place)


def _tasks_on_node(env: Mapping[str, str]) -> int:
    """Of ``SLURM_STEP_TASKS_PER_NODE``, such as ``2(x3),1``, this node's number."""
    text = env.get("SLURM_STEP_TASKS_PER_NODE", env.get("SLURM_TASKS_PER_NODE", "1"))
    counts: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if not found:
            raise InputError(f"cannot read {text!r}", key="SLURM_STEP_TASKS_PER_NODE")
        counts += [int(found[1])] * int(found[2] or 1)
    node = _number(env, "SLURM_NODEID", default=0)
    return counts[node] if node < len(counts) else 1


def _open_mpi(env: Mapping[str, str]) -> Share | None:
    if "OMPI_COMM_WORLD_RANK" not in env:
        return None
    size = _number(env, "OMPI_COMM_WORLD_SIZE")
    job = env.get("PMIX_NAMESPACE") or env.get("OMPI_MCA_ess_base_jobid", "0")
    local = _number(env, "OMPI_COMM_WORLD_LOCAL_SIZE", default=1)
    rank = _number(env, "OMPI_COMM_WORLD_RANK")
    place = _number(env, "OMPI_COMM_WORLD_LOCAL_RANK", default=0)
    return Share("Open MPI", job, rank, size, local, _master(env), place)


def _variables(env: Mapping[str, str]) -> Share | None:
    """``RANK`` and ``WORLD_SIZE``; of an Indexed Job in Kubernetes the completion index."""
    if "WORLD_SIZE" not in env or not ("RANK" in env or "JOB_COMPLETION_INDEX" in env):
        return None
    size = _number(env, "WORLD_SIZE")
    local = _number(env, "LOCAL_WORLD_SIZE", default=1)
    kubernetes = "KUBERNETES_SERVICE_HOST" in env
    name = "Kubernetes" if kubernetes else "RANK and WORLD_SIZE"
    job = env.get("TORCHELASTIC_RUN_ID") or env.get("MASTER_PORT", "0")
    rank = _number(env, "RANK", "JOB_COMPLETION_INDEX")
    place = _number(env, "LOCAL_RANK", default=0)
    return Share(name, job, rank, size, local, _master(env), place)


def _number(env: Mapping[str, str], *names: str, default: int | None = None) -> int:
    for name in names:
        if name in env:
            try:
                return int(env[name])
            except ValueError:
                raise InputError(f"{env[name]!r} is no number", key=name) from None
    if default is None:
        raise InputError("is not set", key=names[0])
    return default


def _master(env: Mapping[str, str]) -> tuple[str, int]:
    host = env.get("MASTER_ADDR", "")
    return (host, _number(env, "MASTER_PORT")) if host else ("", 0)


@contextlib.contextmanager
def hosting(share: Share, folder: Path, environ: Mapping[str, str]) -> Iterator[Meeting]:
    """Rank 0's meeting place; the file that leads to it is gone afterwards."""
    host, port = share.address
    if host:
        yield Meeting(host=host, port=port, token=_token(environ), join_within_s=_FOUND_WITHIN_S)
        return
    path = _path(share, folder)

    def announce(address: tuple[str, int], token: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        shown = address[0] if share.one_host else socket.gethostname()
        partial = path.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w") as file:
            json.dump({"host": shown, "port": address[1], "token": token}, file)
        partial.rename(path)

    try:
        yield Meeting(
            host="127.0.0.1" if share.one_host else "0.0.0.0",  # noqa: S104 - proved by token
            token=new_token(),
            join_within_s=_FOUND_WITHIN_S,
            announce=announce,
        )
    finally:
        path.unlink(missing_ok=True)


def find(share: Share, folder: Path, environ: Mapping[str, str]) -> tuple[tuple[str, int], str]:
    """Address and token of the meeting place, for ranks above 0; PeerError when 0 is late."""
    if share.address[0]:
        _wait_for_port(share.address)
        return share.address, _token(environ)
    path = _path(share, folder)
    deadline = time.monotonic() + _FOUND_WITHIN_S
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError, ValueError):
            document = json.loads(path.read_text())
            address = (str(document["host"]), int(document["port"]))
            # A job that was killed may have left its file: somebody must listen there.
            if path.stat().st_uid == os.geteuid() and _listens(address):
                return address, str(document["token"])
        time.sleep(_POLL_S)
    raise PeerError(
        f"rank {share.rank} of {share.size} ({share.scheduler} job {share.job}): rank 0 has not "
        f"said within {_FOUND_WITHIN_S:g} s where to meet, in {path}",
        advice="Did the gate refuse rank 0? On several hosts share the site's folder, or set "
        f"MASTER_ADDR, MASTER_PORT and {TOKEN}.",
    )


def _wait_for_port(address: tuple[str, int]) -> None:
    deadline = time.monotonic() + _FOUND_WITHIN_S
    while time.monotonic() < deadline:
        if _listens(address):
            return
        time.sleep(_POLL_S)
    raise PeerError(
        f"rank 0 does not answer at {address[0]}:{address[1]} within {_FOUND_WITHIN_S:g} s",
        advice="Did the gate refuse rank 0? Are MASTER_ADDR and MASTER_PORT its own?",
    )


def _listens(address: tuple[str, int]) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(address, timeout=2.0):
        return True
    return False


def _path(share: Share, folder: Path) -> Path:
    safe = re.sub(r"[^A-Za-z0-9.]+", "-", f"{share.scheduler}-{share.job}")
    return folder / f"meeting-{safe}.json"


def _token(environ: Mapping[str, str]) -> str:
    secret = environ.get(TOKEN, "")
    if len(secret) < 16:
        raise InputError(
            "ranks that meet at MASTER_ADDR need a common secret of 16 characters or more",
            key=TOKEN,
            advice=f"Set {TOKEN} to the same random text on every rank (a Kubernetes Secret).",
        )
    return hashlib.sha256(secret.encode()).hexdigest()
