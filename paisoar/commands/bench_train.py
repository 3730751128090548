"""``paisoar bench train``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from paisoar.commands.bench import bench
from paisoar.console import Answer, JsonOption, Ui, run

if TYPE_CHECKING:
    from trainer.bench.training import BenchRow

__all__ = ["bench"]


@bench.command("train")
def train(
    models: Annotated[str, typer.Option(help="Those of `paisoar train`, or all.")] = "greennet",
    ranks: Annotated[str, typer.Option(help="Numbers of ranks.")] = "1,2",
    sync: Annotated[str, typer.Option(help="ring, ps.")] = "ring,ps",
    against: Annotated[str, typer.Option(help="Peers: tf-ring, tf-ps; none with ''.")] = (
        "tf-ring,tf-ps"
    ),
    transport: Annotated[str, typer.Option(help="Of ours: auto, shm, tcp, verbs.")] = "auto",
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each way.")] = 5,
    steps: Annotated[int, typer.Option(min=1, help="Steps in a turn.")] = 3,
    batch_size: Annotated[
        int, typer.Option("--batch", "--batch-size", min=0, help="A rank; 0: fits one core.")
    ] = 0,
    image_size: Annotated[int, typer.Option(min=0, help="Pixels a side; 0: fits one core.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Train models by ring and parameter server, TensorFlow's own ways beside them, in turns.

    `single` are as many independent processes on the same cores: efficiency 1.
    A ratio above 1 means that ours is faster. Medians over the rounds.
    """
    run(
        as_json,
        lambda ui: _measure(
            ui,
            _names(models),
            _counts(ranks),
            syncs=_names(sync),
            against=_names(against),
            transport=transport,
            rounds=rounds,
            steps=steps,
            batch_size=batch_size,
            image_size=image_size,
        ),
    )


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _counts(text: str) -> list[int]:
    from fabric.errors import InputError

    try:
        counts = [int(part) for part in _names(text)]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        raise InputError(f"{text!r} are no numbers of ranks", key="ranks")
    return counts


def _measure(ui: Ui, models: list[str], ranks: list[int], **options: Any) -> Answer:  # noqa: ANN401
    from fabric.errors import InputError
    from trainer.bench.training import bench_train
    from trainer.collective.communicator import TRANSPORTS
    from trainer.spec import MODELS

    if models == ["all"]:
        models = list(MODELS)
    transport = options["transport"]
    if transport not in TRANSPORTS:
        known = ", ".join(TRANSPORTS)
        raise InputError(f"there is no transport {transport!r}", advice=f"Use {known}.")
    lines: list[str] = []
    with ui.steps("training") as step:
        rows = bench_train(models, ranks, on_step=step, on_line=lines.append, **options)
    return Answer({"rows": [asdict(row) for row in rows]}, lambda out: _show(out, rows, lines))


def _show(out: Console, rows: list[BenchRow], lines: list[str]) -> None:
    for line in lines:
        out.print(line, markup=False)
    table = Table(
        *("model", "ranks", "sync", "transport", "images/s", "step ms", "CPU ms"),
        *("exposed ms", "efficiency", "over tf-ring", "over tf-ps"),
    )
    for row in rows:
        if row.sync in row.absent:
            continue
        table.add_row(
            row.model,
            str(row.ranks),
            row.sync,
            row.transport,
            f"{row.images_per_s:.1f}",
            f"{row.step_ms:.1f}",
            f"{row.cpu_ms:.1f}",
            _number(row.exposed_comm_ms, 1),
            _number(row.efficiency, 3),
            _number(row.ratio.get("tf-ring"), 2),
            _number(row.ratio.get("tf-ps"), 2),
        )
    out.print(table)
    for row in rows:
        if row.lockstep is not None and row.ranks > 1:
            out.print(
                f"{row.model}, {row.ranks} ranks: efficiency {row.lockstep:.3f} is what steps of "
                "uneven length leave of 1 when each waits for the slowest.",
                markup=False,
            )
    for row in rows:
        if row.sync in row.absent:
            out.print(f"{row.sync} is absent: {row.absent[row.sync]}", markup=False)


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
