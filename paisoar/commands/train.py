"""``paisoar train``."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from fabric.errors import InputError
from fabric.site import load_site
from paisoar.console import DEFAULT_FILE, Answer, FileOption, JsonOption, Ui, run

if TYPE_CHECKING:
    from trainer.launch import TrainingPlan, TrainResult


def train(
    file: FileOption = DEFAULT_FILE,
    model: Annotated[str, typer.Option(help="greennet")] = "greennet",
    data: Annotated[str, typer.Option(help="digits (real handwriting, from scikit-learn)")] = (
        "digits"
    ),
    ranks: Annotated[int, typer.Option(min=1, help="Processes that train together.")] = 2,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the data.")] = 12,
    batch_size: Annotated[int, typer.Option(min=1, help="Images a step and rank.")] = 32,
    seed: Annotated[int, typer.Option(help="Of the weights and of the order of the data.")] = 0,
    transport: Annotated[str, typer.Option(help="auto, shm or tcp.")] = "auto",
    host: Annotated[
        list[str] | None,
        typer.Option(help="A host that the job uses; all of the site's if not given."),
    ] = None,
    certificate: Annotated[str, typer.Option(help="An id or a file; the newest if not given.")] = (
        ""
    ),
    resume: Annotated[
        Path | None, typer.Option(help="Go on from the last checkpoint in this job's folder.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train, if the certificate gate opens: the fabric is read and compared first.

    Without a valid certificate for this site, or after the fabric has changed
    since, training is refused with the reason and exit 1.
    """

    def work(ui: Ui) -> Answer:
        from trainer.launch import TrainingPlan

        try:
            plan = TrainingPlan(
                model=model,
                data=data,
                ranks=ranks,
                epochs=epochs,
                batch_size=batch_size,
                seed=seed,
            )
        except ValueError as error:
            raise InputError(str(error)) from error
        if transport not in ("auto", "shm", "tcp"):
            raise InputError(f"there is no transport {transport!r}", advice="Use auto, shm or tcp.")
        result = start(ui, file, plan, transport, host, certificate, resume)
        return Answer(document(result), lambda out: _show(out, result))

    run(as_json, work)


def start(
    ui: Ui,
    file: Path,
    plan: TrainingPlan,
    transport: str = "auto",
    hosts: list[str] | None = None,
    certificate: str = "",
    resume: Path | None = None,
) -> TrainResult:
    """Ask the gate, train, keep the result; raises GateRefusedError where it does not open."""
    from trainer.launch import JobSpec, Progress
    from trainer.launch import train as launch
    from trainer.record import save_training
    from validation.gate import open_gate

    site = load_site(file)
    ui.say("asking the gate: reading the fabric")
    gate_pass = open_gate(site, hosts or site.topology.hosts, certificate=certificate or None)
    folder = resume or site.state_dir / "training" / f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
    job = JobSpec(
        gate_pass=gate_pass,
        plan=plan,
        transport=transport,  # type: ignore[arg-type] # checked by the caller
        checkpoint_folder=folder,
        resume=resume is not None,
    )
    with ui.steps("training") as step:

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


def _show(out: Console, result: TrainResult) -> None:
    for record in result.history:
        out.print(
            f"epoch {record.epoch}: loss {record.loss:.4f}, test accuracy "
            f"{record.test_accuracy:.4f}, {record.images_per_s:.0f} images/s"
        )
    same = "identical" if result.weights_identical else "DIFFERENT"
    out.print(
        f"accuracy {result.accuracy:.4f} on the test images, "
        f"weights of {result.ranks} ranks {same}, "
        f"{result.seconds:.1f} s over {result.transport}, admitted by "
        f"{result.gate_pass.certificate_id} ({result.gate_pass.evidence_class})."
    )
