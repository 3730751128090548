"""The command line: every command group in one app."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated

import typer

from paisoar.commands.audit import audit
from paisoar.commands.bench_fabric import bench
from paisoar.commands.certify import certificate, certify
from paisoar.commands.check import check
from paisoar.commands.demo import demo
from paisoar.commands.explain import explain
from paisoar.commands.gate import gate
from paisoar.commands.init import init
from paisoar.commands.lab import lab
from paisoar.commands.plan import plan
from paisoar.commands.predict import predict
from paisoar.commands.provision import provision, rollback
from paisoar.commands.report import report
from paisoar.commands.runs import runs
from paisoar.commands.sim import sim
from paisoar.commands.train import train
from paisoar.commands.tune import tune
from paisoar.commands.twin import twin
from paisoar.commands.validate import validate
from paisoar.commands.watch import watch
from paisoar.running import main_of

COMMANDS: tuple[Callable[..., None], ...] = (
    demo,
    init,
    check,
    plan,
    provision,
    rollback,
    audit,
    explain,
    validate,
    certify,
    watch,
    gate,
    train,
    predict,
    tune,
    report,
)
GROUPS: dict[str, typer.Typer] = {
    "certificate": certificate,
    "runs": runs,
    "twin": twin,
    "lab": lab,
    "sim": sim,
    "bench": bench,
}

app = typer.Typer(
    name="paisoar",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
    help=(
        "Takes a RoCEv2 cluster from cabled to training: provisions the lossless network on "
        "every NIC and switch, proves it with traffic, signs a certificate, and only then trains."
    ),
    epilog=(
        "Start with [bold]paisoar demo[/], or [bold]paisoar init[/], [bold]check[/], "
        "[bold]plan[/], [bold]provision[/], [bold]audit[/], [bold]validate[/], "
        "[bold]certify[/], [bold]train[/]. Exit codes: 0 good, 1 judged bad, 2 bad input, "
        "3 a device, peer or tool did not answer."
    ),
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"paisoar {version('paisoar')}")
        raise typer.Exit


@app.callback()
def _app(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Hold the options of the program itself."""


for command in COMMANDS:
    app.command()(command)
for name, group in GROUPS.items():
    app.add_typer(group, name=name)


def main() -> None:
    """Run the command line, and exit."""
    main_of(app)
