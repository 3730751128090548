"""``paisoar demo``."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fabric.errors import InputError
from fabric.topology import ClosShape, build_clos
from paisoar.console import Answer, JsonOption, Ui, run


def demo(
    break_kind: Annotated[
        str | None,
        typer.Option(
            "--break", metavar="KIND", help="pfc-off, dscp-map, mtu, ecn-off or nic-reset."
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(help="A folder that does not exist yet; paisoar-demo-DATE if not given."),
    ] = None,
    hosts: Annotated[int, typer.Option(min=2, help="How many hosts.")] = 16,
    leaves: Annotated[int, typer.Option(min=1, help="How many leaf switches.")] = 4,
    spines: Annotated[int, typer.Option(min=0, help="How many spine switches.")] = 2,
    as_json: JsonOption = False,
) -> None:
    """Walk all of it on an emulated fabric in a fresh folder, in about two minutes.

    With --break, one thing is broken after provisioning: the audit names it, a
    suite fails, no certificate is issued, the trainer refuses, and exit is 1.
    """
    shape = ClosShape(hosts, leaves, spines)
    run(as_json, lambda ui: _demo(ui, break_kind, folder, shape))


def _demo(ui: Ui, break_kind: str | None, folder: Path | None, shape: ClosShape) -> Answer:
    from paisoar.demo import KINDS, Demo

    if break_kind is not None and break_kind not in KINDS:
        raise InputError(
            f"there is no fault {break_kind!r}", key="--break", advice=f"Use {', '.join(KINDS)}."
        )
    try:
        build_clos(shape)
    except ValueError as error:
        raise InputError(str(error)) from error
    target = folder or Path(f"paisoar-demo-{datetime.now():%Y%m%d-%H%M%S}")
    if target.exists():
        raise InputError("exists already; a demo needs a fresh folder", file=target, key="--folder")
    out = Console(highlight=False)

    def tell(text: str) -> None:
        if ui.as_json:
            ui.say(text)
        else:
            out.print(text, soft_wrap=True)

    walked = Demo(ui, target, shape, break_kind, tell).walk()

    def show(console: Console) -> None:
        console.print(f"Everything is in {walked.folder}; the report is {walked.report}")

    return Answer(walked.to_json(), show, good=walked.good)
