"""``paisoar train``."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console

from fabric.errors import GateRefusedError, InputError
from fabric.site import load_site
from paisoar.console import (
    DEFAULT_FILE,
    Answer,
    FileOption,
    JsonOption,
    Ui,
    command_line,
    run,
)

if TYPE_CHECKING:
    from trainer.collective.scheduler import Share
    from trainer.launch import TrainingPlan, TrainResult

_DATA = "digits (real handwriting, from scikit-learn), synthetic, a folder, or 'TFRECORD-GLOB'."


def train(
    file: FileOption = DEFAULT_FILE,
    model: Annotated[
        str, typer.Option(help="greennet, alexnet, inception_v3, resnet50, resnet152 or vgg16.")
    ] = "greennet",
    data: Annotated[str, typer.Option(help=_DATA)] = "digits",
    ranks: Annotated[int, typer.Option(min=1, help="Processes that train together.")] = 2,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the data.")] = 12,
    steps: Annotated[int, typer.Option(min=0, help="Stop after so many steps instead.")] = 0,
    batch_size: Annotated[
        int, typer.Option("--batch", "--batch-size", min=1, help="Images a step and rank.")
    ] = 32,
    image_size: Annotated[int, typer.Option(min=0, help="Pixels a side; 0: the usual.")] = 0,
    classes: Annotated[int, typer.Option(min=0, help="Of synthetic data and TFRecords.")] = 0,
    first_label: Annotated[int, typer.Option(help="The least label in TFRecords.")] = 0,
    seed: Annotated[int, typer.Option(help="Of the weights and of the order of the data.")] = 0,
    sync: Annotated[str, typer.Option(help="ring, or ps: a synchronous parameter server.")] = (
        "ring"
    ),
    servers: Annotated[int, typer.Option(min=0, help="Of --sync ps; 0: every rank.")] = 0,
    transport: Annotated[str, typer.Option(help="auto, shm, tcp or verbs.")] = "auto",
    precision: Annotated[str, typer.Option(help="float32, mixed_float16, mixed_bfloat16.")] = (
        "float32"
    ),
    batch_norm: Annotated[
        str, typer.Option(help="averaged (statistics, before tests) or synced (in every step).")
    ] = "averaged",
    accumulate: Annotated[int, typer.Option(min=1, help="Steps averaged into one update.")] = 1,
    learning_rate: Annotated[
        float | None, typer.Option(min=0, help="The rate after the warm-up.")
    ] = None,
    base_batch: Annotated[
        int, typer.Option(min=0, help="Scale the rate linearly from this global batch.")
    ] = 0,
    host: Annotated[
        list[str] | None,
        typer.Option(help="A host that the job uses; all of the site's if not given."),
    ] = None,
    launch: Annotated[
        str, typer.Option(help="local, ssh (ranks on the hosts), or auto: local, or the scheduler.")
    ] = "auto",
    python: Annotated[str, typer.Option(help="The interpreter on the hosts.")] = sys.executable,
    network: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Instead of what the site is certified with: device, gid_index, "
            "traffic_class, mtu, timeout, retry_count, channels, wire, ...",
        ),
    ] = None,
    certificate: Annotated[str, typer.Option(help="An id or a file; the newest if not given.")] = (
        ""
    ),
    resume: Annotated[
        Path | None, typer.Option(help="Go on from the last checkpoint in this job's folder.")
    ] = None,
    checkpoint_every: Annotated[
        int, typer.Option(min=0, help="Steps between checkpoints; 0: each epoch's end.")
    ] = 0,
    patience: Annotated[
        float,
        typer.Option(
            min=1,
            help="Seconds to wait for a rank that lives but does not come. A slow one is "
            "reported long before.",
        ),
    ] = 300.0,
    timeline: Annotated[
        Path | None, typer.Option(help="Write a Chrome trace of every rank to this file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train, if the certificate gate opens: the fabric is read and compared first.

    Without a valid certificate for this site, or after the fabric has changed
    since, training is refused with the reason and exit 1. Started by srun,
    mpirun or with RANK and WORLD_SIZE, each process is one rank.
    """

    def work(ui: Ui) -> Answer:
        from trainer.collective.communicator import TRANSPORTS
        from trainer.collective.scheduler import detect
        from trainer.launch import TrainingPlan
        from trainer.spec import LearningRate

        if launch not in ("auto", "local", "ssh"):
            raise InputError(f"there is no launch {launch!r}", advice="Use auto, local or ssh.")
        if transport not in TRANSPORTS:
            raise InputError(
                f"there is no transport {transport!r}", advice=f"Use {', '.join(TRANSPORTS)}."
            )
        share = detect(os.environ) if launch == "auto" else None
        rate = LearningRate(base_batch=base_batch)
        if learning_rate is not None:
            initial = min(rate.initial, learning_rate / 16)
            rate = LearningRate(initial=initial, target=learning_rate, base_batch=base_batch)
        plan = TrainingPlan(
            model=model,
            data=data,
            ranks=share.size if share else ranks,
            epochs=epochs,
            batch_size=batch_size,
            seed=seed,
            learning_rate=rate,
            steps=steps,
            image_size=image_size,
            classes=classes,
            first_label=first_label,
            sync=sync,
            servers=servers,
            precision=precision,
            batch_norm=batch_norm,
            accumulate=accumulate,
        )
        if share and share.rank > 0:
            return _join(
                ui, file, plan, transport, share, timeline is not None, patience, network or ()
            )
        result = start(
            ui,
            file,
            plan,
            transport,
            host,
            certificate,
            resume,
            checkpoint_every=checkpoint_every,
            patience_s=patience,
            timeline=timeline,
            over_ssh=python if launch == "ssh" else "",
            share=share,
            network=network or (),
        )
        return Answer(document(result), lambda out: _show(out, result, file))

    run(as_json, work)


def start(
    ui: Ui,
    file: Path,
    plan: TrainingPlan,
    transport: str = "auto",
    hosts: list[str] | None = None,
    certificate: str = "",
    resume: Path | None = None,
    *,
    checkpoint_every: int = 0,
    patience_s: float = 300.0,
    timeline: Path | None = None,
    over_ssh: str = "",
    share: Share | None = None,
    network: Sequence[str] = (),
) -> TrainResult:
    """Ask the gate, train, keep the result; raises GateRefusedError where it does not open.

    ``over_ssh`` is the interpreter on the hosts that ranks are started on;
    ``share`` the place that a scheduler gave this process, as rank 0;
    ``network`` sets (KEY=VALUE) what is not as the site is certified.
    """
    from trainer.launch import JobSpec, Progress
    from trainer.launch import train as launch
    from trainer.record import forget_refusal, job_folder, save_refusal, save_training
    from trainer.ways import meeting, own_network, places_for
    from validation.gate import open_gate

    site = load_site(file)
    own_network(site, share, network)  # what cannot be is said before the gate reads the fabric
    ui.say("asking the gate: reading the fabric")
    wanted = hosts or list(site.topology.hosts)
    if over_ssh:
        wanted = wanted[: plan.ranks]
    jobs = site.state_dir / "training"
    try:
        gate_pass = open_gate(site, wanted, certificate=certificate or None)
    except GateRefusedError as error:
        # Kept for reports; where that is not possible the refusal stands all the same.
        with contextlib.suppress(OSError, InputError):
            save_refusal(jobs, error, datetime.now(UTC))
        raise
    forget_refusal(jobs)
    folder = resume or job_folder(jobs, datetime.now(UTC))
    places = places_for(site, wanted, plan.ranks, over_ssh=over_ssh, share=share, wishes=network)
    meets = meeting(site, wanted, over_ssh=over_ssh, share=share)
    with meets as place_to_meet, ui.steps("training") as step:
        job = JobSpec(
            gate_pass=gate_pass,
            plan=plan,
            transport=cast(Any, transport),  # checked by the caller
            checkpoint_folder=folder,
            resume=resume is not None,
            checkpoint_every=checkpoint_every,
            patience_s=patience_s,
            timeline=timeline,
            logs=jobs / "last-failure",
            places=places,
            meeting=place_to_meet,
        )

        def tell(progress: Progress) -> None:
            if progress.kind == "epoch" and progress.rank <= 0:
                words = f"epoch {progress.epoch}: loss {progress.loss:.3f}"
                step(words, progress.epoch, plan.epochs)
            elif progress.kind in ("slow", "note"):
                ui.say(progress.message)
            elif progress.message:
                step(progress.message, 0, plan.epochs)

        result = launch(job, tell)
    save_training(folder, plan, result)
    return result


def _join(
    ui: Ui,
    file: Path,
    plan: TrainingPlan,
    transport: str,
    share: Share,
    timeline: bool,
    patience_s: float,
    network: Sequence[str],
) -> Answer:
    from trainer.launch import join
    from trainer.ways import find_meeting, own_network

    site = load_site(file)
    settings = own_network(site, share, network)
    ui.say(f"rank {share.rank} of {share.size} ({share.scheduler}) waits for rank 0")
    address, token = find_meeting(site, share)
    join(
        plan,
        rank=share.rank,
        ranks_here=share.local_size,
        address=address,
        token=token,
        transport=cast(Any, transport),
        patience_s=patience_s,
        timeline=timeline,
        network=settings,
    )
    facts = {"rank": share.rank, "ranks": share.size, "scheduler": share.scheduler}
    return Answer(facts, lambda _out: None)


def document(result: TrainResult) -> dict[str, object]:
    """A training's result as plain JSON values."""
    return {
        "accuracy": result.accuracy,
        "weights_identical": result.weights_identical,
        "weights_digest": result.weights_digest,
        "images_per_s": result.images_per_s,
        "seconds": result.seconds,
        "transport": result.transport,
        "ranks": result.ranks,
        "checkpoint": str(result.checkpoint) if result.checkpoint else None,
        "certificate": result.gate_pass.certificate_id,
        "class": result.gate_pass.evidence_class,
        "history": [asdict(record) for record in result.history],
    }


def _show(out: Console, result: TrainResult, file: Path) -> None:
    from trainer.checkpoint import WEIGHTS

    tested = all(record.tested for record in result.history)
    images = "test" if tested else "training"
    for record in result.history:
        out.print(
            f"epoch {record.epoch}: loss {record.loss:.4f}, {images} accuracy "
            f"{record.test_accuracy:.4f}, {record.images_per_s:.0f} images/s"
        )
    same = "identical" if result.weights_identical else "DIFFERENT"
    out.print(
        f"accuracy {result.accuracy:.4f} on the {images} images, "
        f"weights of {result.ranks} ranks {same}, "
        f"{result.seconds:.1f} s over {result.transport}, admitted by "
        f"{result.gate_pass.certificate_id} ({result.gate_pass.evidence_class})."
    )
    if result.checkpoint is not None:
        out.print(f"Weights: {result.checkpoint / WEIGHTS}", soft_wrap=True)
        more = command_line(f"train --resume {shlex.quote(str(result.checkpoint.parent))}", file)
        out.print(f"More epochs: {more} --epochs N, with the options that this one had.")
    out.print(f"Next: {command_line('report', file)}")
