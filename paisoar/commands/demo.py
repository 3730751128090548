"""``paisoar demo``."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fabric.errors import InputError
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
    as_json: JsonOption = False,
) -> None:
    """Walk all of it on an emulated fabric in a fresh folder, in about two minutes.

    With --break, one thing is broken after provisioning: the audit names it, a
    suite fails, no certificate is issued, the trainer refuses, and exit is 1.
    """
    run(as_json, lambda ui: _demo(ui, break_kind, folder))


def _demo(ui: Ui, break_kind: str | None, folder: Path | None) -> Answer:
    from paisoar.demo import KINDS, Demo

    if break_kind is not None and break_kind not in KINDS:
        raise InputError(
            f"there is no fault {break_kind!r}", key="--break", advice=f"Use {', '.join(KINDS)}."
        )
    target = folder or Path(f"paisoar-demo-{datetime.now():%Y%m%d-%H%M%S}")
    if target.exists():
        raise InputError("exists already; a demo needs a fresh folder", file=target, key="--folder")
    out = Console(highlight=False)

    def tell(text: str) -> None:
        if ui.as_json:
            ui.say(text)
        else:
            out.print(text, soft_wrap=True)

    walked = Demo(ui, target, break_kind, tell).walk()

    def show(console: Console) -> None:
        console.print(f"Everything is in {walked.folder}; the report is {walked.report}")

    return Answer(walked.to_json(), show, good=walked.good)
