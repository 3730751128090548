"""``paisoar provision`` and ``paisoar rollback``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from fabric.errors import InputError
from fabric.reach.access import check_twin_is_up
from fabric.site import load_site
from paisoar.commands.audit import DeviceOption
from paisoar.commands.plan import show_diffs
from paisoar.console import (
    DEFAULT_FILE,
    EXIT_INTERRUPTED,
    Answer,
    FileOption,
    JsonOption,
    Ui,
    command_line,
    run,
)

if TYPE_CHECKING:
    from fabric.provisioning.runs import RunResult

DiffOption = Annotated[
    bool, typer.Option("--diff", help="Show first, line by line, what changes on each device.")
]
UnsavedOption = Annotated[
    bool,
    typer.Option(
        "--save-unsaved",
        help="Change switches also where somebody has changed something without saving it; "
        "it is saved then with ours.",
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before changing devices.")]


def provision(
    plan_id: Annotated[
        str, typer.Argument(metavar="[PLAN]", help="A saved plan's id; the newest if not given.")
    ] = "",
    file: FileOption = DEFAULT_FILE,
    device: DeviceOption = None,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; read, and say what would be changed.")
    ] = False,
    diff: DiffOption = False,
    save_unsaved: UnsavedOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Apply a saved plan by the playbooks: canary first, verified by reading back.

    Refuses a plan whose devices have changed since. A device that fails is
    rolled back and named; `paisoar rollback RUN` takes the whole run back.

    A switch saves all that it runs, or nothing. Where somebody has changed
    something on one and not saved it, nothing is touched: `paisoar plan` shows it.
    Save it there or take it back, leave the switch out with --device, or say
    --save-unsaved.

    Asks first on a terminal. Without one, or with --json, the plan that you saved
    and read is the confirmation: name it, so that no newer one is applied.
    """
    ask = not (yes or as_json or check)
    run(
        as_json,
        lambda ui: apply(
            ui,
            file,
            plan_id,
            device,
            ask=ask,
            check=check,
            diff=diff,
            save_unsaved=save_unsaved,
        ),
    )


def rollback(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run to take back.")],
    file: FileOption = DEFAULT_FILE,
    device: DeviceOption = None,
    diff: DiffOption = False,
    save_unsaved: UnsavedOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Put back what a provisioning run changed, on the devices that it changed.

    Refuses where somebody has changed the same since, or has changed something
    else on a switch without saving it.

    Asks first on a terminal; without one, or with --json, it does not.
    """
    ask = not (yes or as_json)
    run(
        as_json,
        lambda ui: _rollback(
            ui, file, run_id, device, ask=ask, diff=diff, save_unsaved=save_unsaved
        ),
    )


def apply(
    ui: Ui,
    file: Path,
    plan_id: str = "",
    names: list[str] | None = None,
    *,
    ask: bool = False,
    check: bool = False,
    diff: bool = False,
    save_unsaved: bool = False,
) -> Answer:
    """Apply a saved plan; the answer says how it ended on every device."""
    from fabric.provisioning.planfile import load_plan
    from fabric.provisioning.provision import provision as carry_out

    site = load_site(file)
    plan = load_plan(site, plan_id)
    only = None if names is None else site.select(names)
    check_twin_is_up(site)
    changed = [name for name in plan.changed if only is None or name in only]
    if diff:
        show_diffs(ui.err, {name: plan.diff(name) for name in changed})
    if ask:
        _confirm(ui, f"Plan {plan.id} of {plan.created_at} changes", changed, "Apply it?")
    with ui.events(f"applying plan {plan.id}", len(only or plan.devices)) as on_event:
        result = carry_out(site, plan, on_event, only=only, check=check, save_unsaved=save_unsaved)
    return _answer(result, file)


def _rollback(
    ui: Ui,
    file: Path,
    run_id: str,
    names: list[str] | None,
    *,
    ask: bool,
    diff: bool,
    save_unsaved: bool,
) -> Answer:
    from fabric.provisioning.plan import undo
    from fabric.provisioning.provision import changed_by, load_run
    from fabric.provisioning.provision import rollback as take_back

    site = load_site(file)
    result, plan = load_run(site, run_id)
    only = None if names is None else site.select(names)
    changed = [name for name in changed_by(result, plan) if only is None or name in only]
    check_twin_is_up(site)
    if diff:
        show_diffs(ui.err, {name: undo(plan.devices[name].change).diff for name in changed})
    if ask:
        _confirm(ui, f"Run {run_id} of {result.started_at} changed", changed, "Take it back?")
    with ui.events(f"taking back run {run_id}", len(changed)) as on_event:
        back = take_back(site, run_id, on_event, only=only, save_unsaved=save_unsaved)
    return _answer(back, file)


def _confirm(ui: Ui, what: str, changed: Sequence[str], question: str) -> None:
    if not changed or not sys.stdin.isatty():
        return
    ui.err.print(f"{what}: {', '.join(changed)}", markup=False)
    if not typer.confirm(question, err=True):
        raise InputError("not confirmed; nothing was touched")


def _answer(result: RunResult, file: Path) -> Answer:
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
        words = words or "nothing was to be done"
        out.print(f"Run {result.run_id}: {words}. {result.stopped}".strip())
        if error is not None:
            out.print(error.message, style="red")
        for line in _next_steps(result, file):
            out.print(line)

    exit_code = error.exit_code if error else 0
    if result.interrupted:
        exit_code = EXIT_INTERRUPTED
    return Answer(document, show, good=exit_code == 0, exit_code=exit_code)


def _next_steps(result: RunResult, file: Path) -> Iterator[str]:
    """What can be done after a run that ended like this."""
    outcomes = result.devices.values()
    states = {outcome.state for outcome in outcomes}
    changed = any(outcome.may_have_changed for outcome in outcomes)
    again = command_line("plan", file)
    if result.kind == "check":
        if result.good or states <= {"would-change", "unchanged"}:
            if "would-change" in states:
                yield f"Nothing was sent. Next: {command_line(f'provision {result.of}', file)}"
        else:
            yield f"Nothing was sent. Once that is mended: {again}"
    elif result.kind == "rollback":
        if not result.good:
            back = command_line(f"rollback {result.of}", file)
            yield f"Once that is mended, it goes on with: {back}"
        elif "done" in states:
            yield f"Go forward again with: {again}"
    else:
        if not result.good:
            yield f"Once that is mended, a new plan goes on from here: {again}"
        elif changed:
            yield f"Next: {command_line('audit', file)}"
        if changed:
            back = command_line(f"rollback {result.run_id}", file)
            yield f"Take it back with: {back}"
