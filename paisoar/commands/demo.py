"""``paisoar demo``."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from fabric.errors import InputError, PaisoarError
from fabric.starter import refuse_impossible, starter_yaml
from fabric.topology import ClosShape
from paisoar.commands.init import NicOption, SwitchOsOption
from paisoar.console import Answer, JsonOption, Ui, console, run


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
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the folder of a demo that broke off.")
    ] = False,
    switch_os: SwitchOsOption = "nxos",
    nic: NicOption = "mlx5",
    as_json: JsonOption = False,
) -> None:
    """Walk all of it on an emulated fabric in a fresh folder, in about two minutes.

    With --break, one thing is broken after provisioning: the audit names it, a
    suite fails, no certificate is issued, the trainer refuses, and exit is 1.
    """
    shape = ClosShape(hosts, leaves, spines)

    def text() -> str:
        refuse_impossible(shape)
        return starter_yaml(
            shape,
            site="demo",
            environment="twin",
            switch_os=switch_os.split(","),
            nics=nic.split(","),
        )

    run(as_json, lambda ui: _demo(ui, break_kind, folder, text, keep=keep))


def _demo(
    ui: Ui,
    break_kind: str | None,
    folder: Path | None,
    make_text: Callable[[], str],
    *,
    keep: bool,
) -> Answer:
    from paisoar.demo import KINDS, Demo

    if break_kind is not None and break_kind not in KINDS:
        raise InputError(
            f"there is no fault {break_kind!r}", key="--break", advice=f"Use {', '.join(KINDS)}."
        )
    try:
        text = make_text()
    except ValueError as error:
        raise InputError(str(error)) from error
    target = folder or Path(f"paisoar-demo-{datetime.now():%Y%m%d-%H%M%S}")
    if target.exists():
        raise InputError("exists already; a demo needs a fresh folder", file=target, key="--folder")
    out = console()

    def tell(text: Text) -> None:
        if ui.as_json:
            ui.say(text)
        else:
            out.print(text, soft_wrap=True)

    with _removed_when_broken_off(target, keep=keep):
        walked = Demo(ui, target, text, break_kind, tell).walk()

    def show(console: Console) -> None:
        console.print(f"Everything is in {walked.folder}; the report is {walked.report}")

    return Answer(walked.to_json(), show, good=walked.good, exit_code=walked.exit_code)


@contextlib.contextmanager
def _removed_when_broken_off(folder: Path, *, keep: bool) -> Iterator[None]:
    """Leave nothing of a demo that could not come to a judgement, unless it is to be kept."""
    try:
        yield
    except BaseException as error:
        if not keep and folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, PaisoarError):
                removed = f"{folder} was removed; --keep keeps it for a look."
                error.advice = f"{error.advice} {removed}".strip()
        raise
