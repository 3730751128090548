"""The place that a scheduler gives a process: Slurm, Open MPI, ``RANK`` and ``WORLD_SIZE``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fabric.errors import InputError

_ALONE = "Set it right on every rank, or give --launch local to start ranks from here."


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
                    f"by {share.scheduler} this is rank {share.rank} of {share.size}",
                    key="environment",
                    advice="Ranks count from 0. " + _ALONE,
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
            raise InputError(
                f"cannot read {text!r}", key="SLURM_STEP_TASKS_PER_NODE", advice=_ALONE
            )
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
    # Every run of torchrun is called "none" unless it is given a name: the port tells them apart.
    job = "-".join(env[key] for key in ("TORCHELASTIC_RUN_ID", "MASTER_PORT") if key in env)
    rank = _number(env, "RANK", "JOB_COMPLETION_INDEX")
    place = _number(env, "LOCAL_RANK", default=0)
    # There, torchrun itself listens: no rank can.
    taken = env.get("TORCHELASTIC_USE_AGENT_STORE", "").lower() == "true"
    address = ("", 0) if taken else _master(env)
    return Share(name, job or "0", rank, size, local, address, place)


def _number(env: Mapping[str, str], *names: str, default: int | None = None) -> int:
    for name in names:
        if name in env:
            try:
                return int(env[name])
            except ValueError:
                raise InputError(f"{env[name]!r} is no number", key=name, advice=_ALONE) from None
    if default is None:
        raise InputError("is not set", key=names[0], advice=_ALONE)
    return default


def _master(env: Mapping[str, str]) -> tuple[str, int]:
    host = env.get("MASTER_ADDR", "")
    return (host, _number(env, "MASTER_PORT")) if host else ("", 0)
