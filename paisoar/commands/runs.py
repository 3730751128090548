"""``paisoar runs``: what validation has kept."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console
from rich.table import Table

from fabric.errors import InputError
from fabric.site import load_site
from fabric.units import format_size
from paisoar.asked import microseconds
from paisoar.console import (
    DEFAULT_FILE,
    Answer,
    FileOption,
    JsonOption,
    Ui,
    command_line,
    count_of,
    run,
)

if TYPE_CHECKING:
    from fabric.site import Site
    from validation.results.prune import Pruning
    from validation.results.result import ValidationRun

runs = typer.Typer(
    no_args_is_help=True, help="List, show, export and prune the runs of `paisoar validate`."
)

RunArgument = Annotated[
    str, typer.Argument(metavar="[RUN]", help="A run's id; the newest if not given.")
]


@runs.command("list")
def list_(file: FileOption = DEFAULT_FILE, as_json: JsonOption = False) -> None:
    """List the runs, the oldest first, with verdict and the certificate that stands on each."""
    run(as_json, lambda ui: _list(ui, load_site(file)))


@runs.command()
def show(
    run_id: RunArgument = "", file: FileOption = DEFAULT_FILE, as_json: JsonOption = False
) -> None:
    """Show one run as `paisoar validate` did, and whether its evidence is unaltered."""
    run(as_json, lambda ui: _show(ui, file, run_id))


@runs.command()
def export(
    run_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN...]", help="Ids; all if not given.")
    ] = None,
    to: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write.")] = Path(),
    form: Annotated[str, typer.Option("--format", help="csv, parquet or json.")] = "csv",
    file: FileOption = DEFAULT_FILE,
    as_json: JsonOption = False,
) -> None:
    """Write runs, checks, coverage and counters as tables, or as one JSON document."""
    run(as_json, lambda ui: _export(ui, load_site(file), run_ids, to, form))


@runs.command()
def prune(
    older_than: Annotated[
        str, typer.Option(metavar="TIME", help="Remove runs that began longer ago, as 30d or 12h.")
    ] = "",
    keep: Annotated[
        int | None, typer.Option(min=0, help="Keep the newest so many, whatever their age.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be removed; remove nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    file: FileOption = DEFAULT_FILE,
    as_json: JsonOption = False,
) -> None:
    """Remove old runs with their evidence; never what a valid certificate stands on.

    Shows what would go and asks on a terminal. Without one, or with --json, nothing
    is removed unless --yes is given.
    """
    run(
        as_json,
        lambda ui: _prune(ui, load_site(file), older_than, keep, dry_run=dry_run, yes=yes),
    )


def _list(ui: Ui, site: Site) -> Answer:
    from validation.results.prune import certified_runs
    from validation.results.store import Store

    ui.say("reading the results")
    standing = certified_runs(site)
    entries: list[dict[str, Any]] = []
    with Store(site) as store:
        for run_id, (began, status) in store.begun().items():
            facts: dict[str, Any] = {
                "id": run_id,
                "started_at": began,
                "status": status,
                "certificate": standing.get(run_id),
            }
            try:
                facts |= _facts(store.load(run_id))
            except InputError as error:
                facts["damaged"] = error.message
            entries.append(facts)

    def tell(out: Console) -> None:
        table = Table()
        # Ids are copied: none may be cut off.
        table.add_column("run", no_wrap=True)
        for title in ("began", "status", "verdict", "suites", "failed"):
            table.add_column(title)
        table.add_column("certificate", overflow="fold")
        for facts in entries:
            table.add_row(
                facts["id"],
                facts["started_at"][:19],
                facts["status"],
                facts.get("verdict", "DAMAGED"),
                ", ".join(facts.get("suites", ())),
                str(facts.get("failures", "")),
                facts["certificate"] or "",
            )
        out.print(table)
        for facts in entries:
            if "damaged" in facts:
                out.print(f"damaged: {facts['damaged']}")
        if entries and entries[-1]["status"] == "interrupted":
            out.print(
                "The last run was interrupted; "
                f"{command_line('validate --resume', site.path)} goes on with it."
            )

    return Answer({"runs": entries}, tell)


def _facts(found: ValidationRun) -> dict[str, Any]:
    return {
        "verdict": found.verdict,
        "evidence_class": found.evidence_class,
        "suites": [suite.name for suite in found.suites],
        "checks": len(found.all_checks),
        "failures": len(found.failures),
    }


def _loaded(site: Site, run_id: str) -> ValidationRun:
    from validation.results.store import latest_run, load_run

    found = load_run(site, run_id) if run_id else latest_run(site)
    if found is None:
        raise InputError(
            f"site {site.name} has no validation run", advice="`paisoar validate` makes one."
        )
    return found


def _show(ui: Ui, file: Path, run_id: str) -> Answer:
    from paisoar.commands.validate import show_run
    from validation.results.store import altered_evidence

    site = load_site(file)
    ui.say("reading the run")
    found = _loaded(site, run_id)
    altered = altered_evidence(found)

    def tell(out: Console) -> None:
        show_run(out, found, site)
        for name in altered:
            out.print(f"altered or gone: {found.folder / name}")

    return Answer({**found.to_json(), "altered_evidence": list(altered)}, tell)


def _export(ui: Ui, site: Site, run_ids: list[str] | None, to: Path, form: str) -> Answer:
    from validation.results.exports import FORMATS, export_runs
    from validation.results.store import list_runs

    if form not in FORMATS:
        raise InputError(f"there is no format {form!r}", advice=f"Use {', '.join(FORMATS)}.")
    ui.say("reading the runs")
    chosen = [_loaded(site, run_id) for run_id in run_ids] if run_ids else list_runs(site)
    if not chosen:
        raise InputError(
            f"site {site.name} has no validation run", advice="`paisoar validate` makes one."
        )
    written = [str(path) for path in export_runs(site, chosen, to, cast(Any, form))]
    return Answer(
        {"files": written, "runs": [found.id for found in chosen]},
        lambda out: out.print("\n".join(written)),
    )


def _prune(
    ui: Ui, site: Site, older_than: str, keep: int | None, *, dry_run: bool, yes: bool
) -> Answer:
    from validation.results.prune import plan_pruning
    from validation.results.prune import prune as remove

    pruning = plan_pruning(site, older_than=_age(older_than) if older_than else None, keep=keep)
    document: dict[str, Any] = {
        "removed": [],
        "planned": [going.run_id for going in pruning.going],
        "held": dict(pruning.held),
        "size_bytes": pruning.size_bytes,
    }
    if dry_run or not pruning.going:
        return Answer(document, lambda out: _tell(out, pruning))
    if not yes:
        _ask(ui, pruning)
    with ui.progress("removing", len(pruning.going)) as advance:
        gone = remove(site, pruning, advance)
    document["removed"] = list(gone)
    return Answer(
        document,
        lambda out: out.print(
            f"Removed {count_of(len(gone), 'run')}, {format_size(pruning.size_bytes)}; "
            f"{count_of(pruning.kept, 'run')} kept."
        ),
    )


def _age(text: str) -> timedelta:
    """A time as everywhere, or so many days."""
    days = text.strip().removesuffix("d")
    if days != text.strip() and days.isdecimal() and len(days) < 6:
        return timedelta(days=int(days))
    return timedelta(microseconds=microseconds("--older-than", text))


def _tell(out: Console, pruning: Pruning) -> None:
    for going in pruning.going:
        began = f"of {going.began:%Y-%m-%d %H:%M}Z" if going.began else "left over, no run"
        out.print(f"goes: {going.run_id} {began}, {format_size(going.size_bytes)}")
    for run_id, why in pruning.held.items():
        out.print(f"stays: {run_id}: {why}")
    out.print(
        f"{count_of(len(pruning.going), 'run')} to remove ({format_size(pruning.size_bytes)}), "
        f"{pruning.kept} to keep."
    )


def _ask(ui: Ui, pruning: Pruning) -> None:
    if ui.as_json or not sys.stdin.isatty():
        raise InputError(
            f"{count_of(len(pruning.going), 'run')} would be removed",
            advice="Say --yes to remove them, or --dry-run to see them.",
        )
    _tell(ui.err, pruning)
    if not typer.confirm("Remove them?", err=True):
        raise InputError("not confirmed; nothing was removed")
