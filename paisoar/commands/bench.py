"""``paisoar bench sim``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from paisoar.console import Answer, JsonOption, Ui, run

bench = typer.Typer(no_args_is_help=True, help="Our speed, and our peers' beside it.")


@bench.callback()
def _group() -> None:
    """Keep ``sim`` a command of its own while it is the only one."""


@bench.command("sim")
def sim(
    fidelity: Annotated[
        bool, typer.Option("--fidelity", help="Compare results with the reference's instead.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run the reference scenarios; print data-packet hops a second beside the peers'.

    With --fidelity: each reference run, ours, the reference, the difference, and
    a verdict; exit 1 where one fails.
    """
    run(as_json, lambda ui: _fidelity(ui) if fidelity else _speed(ui))


def _speed(ui: Ui) -> Answer:
    from fabric.sim.reference.speed import measure_all

    with ui.steps("running the reference scenarios") as step:
        rows = measure_all(step)

    def show(out: Console) -> None:
        table = Table("scenario", "hops/s", "hops/CPU s", "events/hop", "peer", "hops/s", "ratio")
        for row in rows:
            table.add_row(
                row.scenario,
                f"{row.hops_per_s:,.0f}",
                f"{row.hops_per_cpu_s:,.0f}",
                f"{row.events_per_hop:.2f}",
                row.peer,
                f"{row.peer_hops_per_s:,.0f}",
                f"{row.ratio:.1f}",
            )
        out.print(table)
        out.print(
            "One thread, best of three. Ours runs with every mechanism on; htsim's scenarios "
            "have neither ECN nor DCQCN."
        )

    return Answer({"rows": [row.to_json() for row in rows]}, show)


def _fidelity(ui: Ui) -> Answer:
    from fabric.sim.reference.fidelity import compare_all

    with ui.steps("repeating the reference runs") as step:
        rows = compare_all(step)
    passed = all(row.passed for row in rows)

    def show(out: Console) -> None:
        table = Table("run", "column", "ours", "reference", "difference", "limit", "verdict")
        for row in rows:
            table.add_row(
                row.run,
                row.column,
                f"{row.ours:.4f}",
                f"{row.reference:.4f}",
                f"{row.difference:+.4f}",
                f"{row.limit:.4f}",
                "PASS" if row.passed else "FAIL",
            )
        out.print(table)

    document = {"rows": [row.to_json() for row in rows], "verdict": "PASS" if passed else "FAIL"}
    return Answer(document, show, good=passed)
