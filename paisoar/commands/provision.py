"""``paisoar provision`` and ``paisoar rollback``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from fabric.access import check_twin_is_up
from fabric.errors import InputError
from fabric.site import load_site
from paisoar.console import DEFAULT_FILE, EXIT_INTERRUPTED, Answer, FileOption, JsonOption, Ui, run

if TYPE_CHECKING:
    from fabric.plan import Plan
    from fabric.runs import RunResult

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before changing devices.")]


def provision(
    plan_id: Annotated[
        str, typer.Argument(metavar="[PLAN]", help="A saved plan's id; the newest if not given.")
    ] = "",
    file: FileOption = DEFAULT_FILE,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Apply a saved plan by the playbooks: canary first, verified by reading back.

    Refuses a plan whose devices have changed since. A device that fails is
    rolled back and named; `paisoar rollback RUN` takes the whole run back.

    Asks first on a terminal. Without one, or with --json, the plan that you saved
    and read is the confirmation: name it, so that no newer one is applied.
    """
    run(as_json, lambda ui: apply(ui, file, plan_id, ask=not (yes or as_json)))


def rollback(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run to take back.")],
    file: FileOption = DEFAULT_FILE,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Put back what a provisioning run changed, on the devices that it changed.

    Asks first on a terminal; without one, or with --json, it does not.
    """
    run(as_json, lambda ui: _rollback(ui, file, run_id, ask=not (yes or as_json)))


def apply(ui: Ui, file: Path, plan_id: str = "", *, ask: bool = False) -> Answer:
    """Apply a saved plan; the answer says how it ended on every device."""
    from fabric.planfile import load_plan
    from fabric.provision import provision as carry_out

    site = load_site(file)
    plan = load_plan(site, plan_id)
    check_twin_is_up(site)
    if ask:
        _confirm(ui, plan)
    with ui.events(f"applying plan {plan.id}", len(plan.devices)) as on_event:
        result = carry_out(site, plan, on_event)
    return _answer(result)


def _rollback(ui: Ui, file: Path, run_id: str, *, ask: bool) -> Answer:
    from fabric.planfile import read_plan
    from fabric.provision import rollback as take_back
    from fabric.runs import load_result, run_folder

    site = load_site(file)
    load_result(site, run_id)
    plan = read_plan(run_folder(site, run_id) / "plan.json")
    check_twin_is_up(site)
    if ask:
        _confirm(ui, plan, "Take back")
    with ui.events(f"taking back run {run_id}", len(plan.changed)) as on_event:
        result = take_back(site, run_id, on_event)
    return _answer(result)


def _confirm(ui: Ui, plan: Plan, verb: str = "Apply") -> None:
    if plan.empty or not sys.stdin.isatty():
        return
    ui.err.print(f"Plan {plan.id} of {plan.created_at} changes: {', '.join(plan.changed)}")
    if not typer.confirm(f"{verb} it?", err=True):
        raise InputError("not confirmed; nothing was touched")


def _answer(result: RunResult) -> Answer:
    error = result.error
    document = result.to_json() | {"good": result.good}

    def show(out: Console) -> None:
        if any(outcome.state != "unchanged" for outcome in result.devices.values()):
            table = Table("device", "outcome", "")
            for name, outcome in result.devices.items():
                table.add_row(name, outcome.state, outcome.detail)
            out.print(table)
        counts: dict[str, int] = {}
        for outcome in result.devices.values():
            counts[outcome.state] = counts.get(outcome.state, 0) + 1
        words = ", ".join(f"{count} {state}" for state, count in counts.items())
        out.print(f"Run {result.run_id}: {words}. {result.stopped}".strip())
        if error is not None:
            out.print(error.message, style="red", markup=False)
        elif counts.get("done"):
            out.print(f"Take it back with: paisoar rollback {result.run_id}")

    exit_code = error.exit_code if error else 0
    if result.interrupted:
        exit_code = EXIT_INTERRUPTED
    return Answer(document, show, good=exit_code == 0, exit_code=exit_code)
