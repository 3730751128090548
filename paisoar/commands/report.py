"""``paisoar report``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from fabric.errors import InputError, JudgedBadError
from fabric.site import Site, load_site
from paisoar.console import (
    DEFAULT_FILE,
    Answer,
    FileOption,
    JsonOption,
    Ui,
    command_line,
    run,
)

if TYPE_CHECKING:
    from validation.results.result import ValidationRun


def report(
    file: FileOption = DEFAULT_FILE,
    run_id: Annotated[str, typer.Option("--run", help="A run's id; the newest if not given.")] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder; .paisoar/report if not given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write one self-contained HTML page, with CSV, Parquet and JUnit beside it.

    Reads what runs have left; touches no device. A run whose results or evidence
    were altered since it ended is not reported; exit 1 then.
    """
    run(as_json, lambda ui: write(ui, file, run_id, output))


def write(ui: Ui, file: Path, run_id: str = "", output: Path | None = None) -> Answer:
    """Write the report of a validation run."""
    from reports.content.gather import gather
    from reports.page.render import write_page
    from reports.tables import write_tables
    from validation.results.store import latest_run, load_run

    site = load_site(file)
    done = load_run(site, run_id) if run_id else latest_run(site)
    if done is None:
        raise InputError("nothing has been validated yet", advice="Run: paisoar validate")
    _believed(site, done)
    ui.say("drawing")
    folder = output or site.state_dir / "report"
    content = gather(site, done)
    with _whole(folder) as made:
        written = (
            write_page(content, made / "index.html"),
            *write_tables(content, made / "tables"),
        )
    page, *tables = (folder / path.relative_to(made) for path in written)
    document = {
        "page": str(page),
        "tables": [str(path) for path in tables],
        "verdict": content.verdict,
        "class": content.evidence_class,
        "run": done.id,
    }

    def show(out: Console) -> None:
        out.print(f"{page} ({len(tables)} tables beside it)", soft_wrap=True)
        out.print(
            f"{content.verdict}, evidence class {content.evidence_class}. {_next(file, done)}"
        )

    return Answer(document, show)


def _next(file: Path, done: ValidationRun) -> str:
    if done.verdict == "PASS":
        return (
            f"Next: {command_line('certify', file)}, or {command_line('train', file)} "
            "where that is done."
        )
    return f"Next: {command_line('audit', file)}, then {command_line('validate', file)} again."


def _believed(site: Site, done: ValidationRun) -> None:
    """JudgedBadError where a run is not what it was when it ended, or its evidence is not."""
    from validation.certificates.keys import trusted_keys
    from validation.certificates.sealed import broken_seal
    from validation.results.store import altered_evidence

    # A run that did not end as it should has no seal, and is no PASS whatever it says.
    lines = broken_seal(done, trusted_keys(site)) if done.status == "complete" else []
    lines += [f"evidence was altered or is gone: {name}" for name in altered_evidence(done)]
    if lines:
        raise JudgedBadError(
            "\n  ".join([f"no report on run {done.id}, which cannot be believed:", *lines]),
            advice="Run `paisoar validate` again, or name another run with --run.",
        )


@contextmanager
def _whole(folder: Path) -> Iterator[Path]:
    """A folder to write to, whose files end up in ``folder`` all or not at all.

    Raises InputError where there is no room or no permission.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".unfinished-", dir=folder) as unfinished:
            made = Path(unfinished)
            yield made
            for path in [path for path in made.rglob("*") if path.is_file()]:
                target = folder / path.relative_to(made)
                target.parent.mkdir(parents=True, exist_ok=True)
                path.replace(target)
    except OSError as error:
        raise InputError(
            f"the report cannot be written: {error.strerror or error}",
            file=folder,
            advice="Nothing half-written was left, an earlier report stands. Make room, or name "
            "another folder with --output.",
        ) from error
