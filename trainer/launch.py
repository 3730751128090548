"""``train``: the way into the trainer, open only with a pass of the certificate gate."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fabric.errors import GateRefusedError, InputError, PeerError
from trainer.checkpoint import check_plan, latest_checkpoint
from trainer.collective.communicator import TRANSPORTS, TransportName
from trainer.collective.rendezvous import SlowRank
from trainer.collective.settings import NetworkSettings
from trainer.orders import JobOrders
from trainer.rank import Orders
from trainer.spec import PATIENCE_S, EpochRecord, Progress, TrainingPlan, check_data
from trainer.supervise import Meeting, Place, run_one, run_ranks, threads_for
from trainer.timeline import check_trace_file, write_trace
from validation.gate import GatePass

__all__ = ["EpochRecord", "JobSpec", "Progress", "TrainResult", "TrainingPlan", "train"]

PROGRAM = "trainer.job:run"
# Libraries that a rank can do without, and Keras would load: see Orders.hidden.
NOT_NEEDED = ("matplotlib", "pandas", "scipy", "sklearn")


@dataclass(frozen=True)
class JobSpec:
    """A job for :func:`trainer.launch.train`.

    ``gate_pass`` proves that the certificate gate has admitted it.
    ``checkpoint_folder`` gets a checkpoint after every epoch, and every
    ``checkpoint_every`` steps where that is not 0; with ``resume`` training
    goes on from the latest one there. ``patience_s`` is how long ranks wait
    for one that does not come. ``timeline`` is a file for a Chrome trace of
    compute and communication of every rank, ``logs`` a folder for what ranks
    wrote whose job failed. ``places``, one a rank, say where
    each runs and how it talks; with ``meeting`` they are for ranks elsewhere
    (:mod:`trainer.hosts`, :mod:`trainer.scheduled`).
    """

    gate_pass: GatePass
    plan: TrainingPlan = field(default_factory=TrainingPlan)
    transport: TransportName = "auto"
    checkpoint_folder: Path | None = None
    resume: bool = False
    patience_s: float = PATIENCE_S
    check_every: int = 100
    checkpoint_every: int = 0
    timeline: Path | None = None
    logs: Path | None = None
    places: Sequence[Place] | None = None
    meeting: Meeting = field(default_factory=Meeting)

    def __post_init__(self) -> None:
        """InputError, with the key, for what cannot work; the plan has checked itself."""
        if self.transport not in TRANSPORTS:
            raise InputError(
                f"{self.transport!r} is not known",
                key="transport",
                advice=f"Choose of: {', '.join(TRANSPORTS)}.",
            )
        if self.patience_s <= 0:
            raise InputError(f"{self.patience_s:g} s are no patience", key="patience_s")
        if self.resume and self.checkpoint_folder is None:
            raise InputError("resuming needs a checkpoint folder", key="checkpoint_folder")
        if self.checkpoint_every % self.plan.accumulate:
            raise InputError(
                f"a checkpoint every {self.checkpoint_every} steps would fall between "
                f"{self.plan.accumulate} accumulated ones",
                key="checkpoint_every",
                advice="Give a multiple of it.",
            )


@dataclass(frozen=True)
class TrainResult:
    """How a job ended.

    ``accuracy`` is on the test images. ``weights_digest`` is SHA-256 over the
    model's weights on rank 0; ``weights_identical`` says that all ranks had
    the same. ``seconds`` is wall time with starting and ending,
    ``images_per_s`` counts training alone, over all ranks.
    """

    accuracy: float
    weights_identical: bool
    weights_digest: str
    history: tuple[EpochRecord, ...]
    checkpoint: Path | None
    seconds: float
    images_per_s: float
    transport: str
    ranks: int
    resumed_after_epoch: int
    gate_pass: GatePass
    resumed_after_step: int = 0
    bucket_bytes: int = 0


def train(job: JobSpec, on_event: Callable[[Progress], None] | None = None) -> TrainResult:
    """Train, with a process a rank on this host, and return how it went.

    ``on_event`` is called in this thread. GateRefusedError without a pass of
    the gate; InputError for settings that cannot work; PeerError when a rank
    is lost, with the way on from the last checkpoint as advice. However it
    ends, no process and no shared memory is left.
    """
    require_pass(job.gate_pass)
    return _train(job, on_event)


def require_pass(gate_pass: object) -> None:
    """GateRefusedError where this is no pass of the certificate gate."""
    if not isinstance(gate_pass, GatePass):
        raise GateRefusedError(
            "training starts only with a pass of the certificate gate",
            reason="no-gate-pass",
            advice="Certify the fabric (paisoar certify), then start with paisoar train.",
        )


def join(
    plan: TrainingPlan,
    *,
    rank: int,
    ranks_here: int,
    address: tuple[str, int],
    token: str,
    transport: TransportName = "auto",
    patience_s: float = PATIENCE_S,
    timeline: bool = False,
    network: NetworkSettings | None = None,
) -> None:
    """Be one rank of a job that rank 0's process launches; returns when it has ended well.

    It needs no pass of the gate: without rank 0's there is nothing to join.
    PeerError, with the rank's last lines, when the job fails.
    """
    run_one(
        Orders(
            program=PROGRAM,
            payload=JobOrders(plan, None, False, 0, None).payload(),
            address=address,
            token=token,
            rank=rank,
            size=plan.ranks,
            transport=transport,
            patience_s=patience_s,
            launcher_pid=os.getpid(),
            threads=threads_for(ranks_here),
            hidden=NOT_NEEDED,
            timeline=timeline,
            speaks=True,
        ),
        network,
    )


def plain(gate_pass: GatePass) -> dict[str, Any]:
    """The pass as plain JSON values, as checkpoints keep it."""
    return dict(json.loads(json.dumps(asdict(gate_pass), default=str)))


def _way_on(job: JobSpec) -> str:
    """How to go on from the last checkpoint; empty where there is none."""
    folder = job.checkpoint_folder
    if folder is None:
        return ""
    again = f"--resume {folder} goes on from the last one."
    if job.places is not None and job.places[0].command:
        return f"Checkpoints, if it came to any, are in {folder} on {job.places[0].name}; {again}"
    with contextlib.suppress(InputError):
        return f"The last checkpoint is {latest_checkpoint(folder)}; {again}"
    return ""


def _keep_trace(path: Path | None, spans: dict[int, list[Any]]) -> str:
    """Write a failed job's timeline; what hinders that is returned and hides no other error."""
    if path is not None:
        try:
            write_trace(path, spans)
        except OSError as error:
            return f"The timeline cannot be written to {path}: {error.strerror}."
    return ""


def _train(job: JobSpec, on_event: Callable[[Progress], None] | None) -> TrainResult:
    began = time.monotonic()
    plan = job.plan
    if job.timeline is not None:
        check_trace_file(job.timeline)
    if job.places is None or not any(place.command for place in job.places):
        check_data(plan.data)
        # On other hosts it is rank 0 that looks: this one need not share their disks.
        if job.resume and job.checkpoint_folder is not None:
            check_plan(latest_checkpoint(job.checkpoint_folder), asdict(plan))
    orders = JobOrders(
        plan,
        job.checkpoint_folder,
        job.resume,
        job.check_every,
        plain(job.gate_pass),
        job.checkpoint_every,
        job.timeline is not None,
    )
    spans: dict[int, list[Any]] = {}

    def tell(progress: Progress) -> None:
        if on_event:
            on_event(progress)

    def take(rank: int, value: dict[str, Any]) -> None:
        if "timeline" in value:
            spans.setdefault(rank, []).extend(value["timeline"])
        else:
            tell(Progress(**value))

    def tell_slow(slow: SlowRank) -> None:
        tell(Progress("slow", slow.who.rank, message=str(slow)))

    tell(Progress("start", -1, message=f"starting {plan.ranks} ranks"))
    try:
        outcome = run_ranks(
            PROGRAM,
            orders.payload(),
            ranks=plan.ranks,
            transport=job.transport,
            patience_s=job.patience_s,
            on_event=take,
            on_slow=tell_slow,
            hidden=NOT_NEEDED,
            timeline=job.timeline is not None,
            places=job.places,
            meeting=job.meeting,
            logs=job.logs,
        )
    except PeerError as error:
        # Also of a job that failed the timeline is written: then it is wanted most.
        untraced = _keep_trace(job.timeline, spans)
        error.advice = " ".join(filter(None, (error.advice, _way_on(job), untraced)))
        raise
    except BaseException:
        _keep_trace(job.timeline, spans)
        raise
    if job.timeline is not None:
        write_trace(job.timeline, spans)
    for rank, lines in enumerate(outcome.printed):
        for line in lines:
            tell(Progress("note", rank, message=line))
    first = outcome.results[0]
    checkpoint = first["checkpoint"]
    return TrainResult(
        accuracy=first["accuracy"],
        weights_identical=len({result["digest"] for result in outcome.results}) == 1,
        weights_digest=first["digest"],
        history=tuple(EpochRecord(**record) for record in first["history"]),
        checkpoint=Path(checkpoint) if checkpoint else None,
        seconds=time.monotonic() - began,
        images_per_s=first["images_per_s"],
        transport=first["transport"],
        ranks=plan.ranks,
        resumed_after_epoch=first["resumed_after_epoch"],
        resumed_after_step=first["resumed_after_step"],
        bucket_bytes=first["bucket_bytes"],
        gate_pass=job.gate_pass,
    )
