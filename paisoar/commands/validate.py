"""``paisoar validate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from fabric.access import check_twin_is_up
from fabric.site import Site, load_site
from paisoar.console import DEFAULT_FILE, Answer, FileOption, JsonOption, Ui, run

if TYPE_CHECKING:
    from validation.result import ValidationRun
    from validation.traffic import TrafficPlan

MAX_SHOWN = 20


def validate(
    suites: Annotated[
        list[str] | None,
        typer.Argument(help="preflight, latency, bandwidth, incast; all if not given."),
    ] = None,
    file: FileOption = DEFAULT_FILE,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be run; touch nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run traffic suites; judge them by results and by every device's counters.

    Exit 0 where everything passed, 1 where anything failed or was not run, 3 where
    a device or the probe did not answer at some time: such a run is incomplete.
    """
    if dry_run:
        run(as_json, lambda ui: _planned(ui, file, suites))
    else:
        run(as_json, lambda ui: _validate(ui, file, suites))


def _planned(ui: Ui, file: Path, suites: list[str] | None) -> Answer:
    from validation.run import plans

    site = load_site(file)
    ui.say("planning")
    planned = plans(site, suites)
    document = {
        "suites": [
            {
                "suite": plan.suite,
                "steps": len(plan.steps),
                "flows": _flows(plan),
                "traffic_us": plan.traffic_us,
                "expected": dict(plan.expected),
            }
            for plan in planned
        ]
    }

    def show(out: Console) -> None:
        table = Table("suite", "steps", "flows", "traffic, ms", "has to see")
        for plan in planned:
            table.add_row(
                plan.suite,
                str(len(plan.steps)),
                str(_flows(plan)),
                f"{plan.traffic_us / 1000:.1f}",
                ", ".join(f"{count} {what}" for what, count in plan.expected.items()),
            )
        out.print(table)

    return Answer(document, show)


def _flows(plan: TrafficPlan) -> int:
    return sum(len(stream.pairs) for step in plan.steps for stream in step.streams)


def _validate(ui: Ui, file: Path, suites: list[str] | None) -> Answer:
    site = load_site(file)
    done = execute(ui, site, suites)
    return Answer(
        done.to_json(),
        lambda out: show_run(out, done),
        good=done.verdict == "PASS",
        exit_code=_exit(done),
    )


def execute(ui: Ui, site: Site, suites: list[str] | None = None) -> ValidationRun:
    """Run these suites with progress."""
    from validation.run import Progress, run_suites

    check_twin_is_up(site)
    with ui.steps("validating") as step:

        def tell(progress: Progress) -> None:
            step(f"{progress.suite} {progress.text}".strip(), progress.done, progress.total)

        return run_suites(site, suites, tell)


def _exit(done: ValidationRun) -> int:
    return 3 if done.unread else 1


def show_run(out: Console, done: ValidationRun) -> None:
    """A table of the suites and the checks that did not pass."""
    table = Table("suite", "verdict", "seen of expected", "checks", "seconds")
    for suite in done.suites:
        seen = ", ".join(
            f"{suite.seen.get(what, 0)}/{count} {what}" for what, count in suite.expected.items()
        )
        table.add_row(
            suite.name, suite.verdict, seen, str(len(suite.checks)), f"{suite.wall_s:.1f}"
        )
    out.print(table)
    bad = [check for check in done.all_checks if check.verdict != "PASS"]
    for check in bad[:MAX_SHOWN]:
        out.print(f"{check.verdict} {check.id} {check.subject}: {check.reason}", markup=False)
    if len(bad) > MAX_SHOWN:
        out.print(f"... and {len(bad) - MAX_SHOWN} more; see paisoar report")
    for name, answer in done.unread.items():
        out.print(f"no answer: {name}: {answer}", markup=False)
    out.print(
        f"Run {done.id}: {done.verdict}, {done.status}, evidence class {done.evidence_class}. "
        + _next(done)
    )


def _next(done: ValidationRun) -> str:
    if done.verdict == "PASS":
        return "Next: paisoar certify"
    if done.unread:
        return "Next: bring back what did not answer, and validate again"
    return "Next: paisoar audit says what is wrong with the settings; then validate again"
