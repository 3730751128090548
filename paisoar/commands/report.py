"""``paisoar report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabric.errors import InputError
from fabric.site import load_site
from paisoar.console import DEFAULT_FILE, Answer, FileOption, JsonOption, Ui, run


def report(
    file: FileOption = DEFAULT_FILE,
    run_id: Annotated[str, typer.Option("--run", help="A run's id; the newest if not given.")] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder; .paisoar/report if not given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write one self-contained HTML page, with CSV, Parquet and JUnit beside it.

    Reads what runs have left; touches no device.
    """
    run(as_json, lambda ui: write(ui, file, run_id, output))


def write(ui: Ui, file: Path, run_id: str = "", output: Path | None = None) -> Answer:
    """Write the report of a validation run."""
    from reports.gather import gather
    from reports.page import write_page
    from reports.tables import write_tables
    from validation.store import latest_run, load_run

    site = load_site(file)
    done = load_run(site, run_id) if run_id else latest_run(site)
    if done is None:
        raise InputError("nothing has been validated yet", advice="Run: paisoar validate")
    ui.say("drawing")
    folder = output or site.state_dir / "report"
    content = gather(site, done)
    page = write_page(content, folder / "index.html")
    tables = write_tables(content, folder / "tables")
    document = {
        "page": str(page),
        "tables": [str(path) for path in tables],
        "verdict": content.verdict,
        "class": content.evidence_class,
        "run": done.id,
    }
    return Answer(document, lambda out: out.print(f"{page} ({len(tables)} tables beside it)"))
