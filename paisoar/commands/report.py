"""``paisoar report``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

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


# What --against calls the run before the one that is reported.
LAST = "last"


def report(
    file: FileOption = DEFAULT_FILE,
    run_id: Annotated[str, typer.Option("--run", help="A run's id; the newest if not given.")] = "",
    against: Annotated[
        str,
        typer.Option(
            "--against",
            metavar="RUN",
            help="An earlier run, or `last` for the one before: what got better, worse, changed.",
        ),
    ] = "",
    article: Annotated[
        bool,
        typer.Option("--article", help="The article's figures, from our runs and predictions."),
    ] = False,
    timeline: Annotated[
        Path | None, typer.Option(help="A trace of `paisoar train --timeline`, to be drawn too.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder; .paisoar/report if not given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write one self-contained HTML page, with CSV, Parquet and JUnit beside it.

    Reads what runs have left; touches no device. A run whose results or evidence
    were altered since it ended is not reported; exit 1 then.
    """

    def work(ui: Ui) -> Answer:
        if not article:
            return write(ui, file, run_id, output, against, timeline)
        if against or timeline is not None:
            raise InputError(
                "--article draws no comparison and no timeline",
                key="--article",
                advice="Leave --against and --timeline out, or --article.",
            )
        return write_article(ui, file, run_id, output)

    run(as_json, work)


def write(
    ui: Ui,
    file: Path,
    run_id: str = "",
    output: Path | None = None,
    against: str = "",
    timeline: Path | None = None,
) -> Answer:
    """Write the report of a validation run."""
    from reports.content.gather import gather
    from reports.page.html import write_page
    from reports.page.render import render_page
    from reports.tables import write_tables
    from validation.results.store import latest_run, load_run, run_before

    site = load_site(file)
    done = load_run(site, run_id) if run_id else latest_run(site)
    if done is None:
        raise InputError("nothing has been validated yet", advice="Run: paisoar validate")
    earlier = None
    if against:
        earlier = run_before(site, done) if against == LAST else load_run(site, against)
    for one in filter(None, (done, earlier)):
        _believed(site, one)
    ui.say("drawing")
    folder = output or site.state_dir / "report"
    content = gather(site, done, earlier, timeline)
    with _whole(folder) as made:
        written = (
            write_page(render_page(content), made / "index.html"),
            *write_tables(content, made / "tables"),
        )
    page, *tables = (folder / path.relative_to(made) for path in written)
    document: dict[str, Any] = {
        "page": str(page),
        "tables": [str(path) for path in tables],
        "verdict": content.verdict,
        "class": content.evidence_class,
        "run": done.id,
    }
    compared = content.comparison
    if compared is not None:
        document["against"] = {
            "run": compared.run_id,
            "better": compared.better,
            "worse": compared.worse,
            "measures": compared.measures.to_dict("records"),
            "fabric": list(compared.fabric),
            "incomparable": list(compared.incomparable),
        }

    def show(out: Console) -> None:
        out.print(f"{page} ({len(tables)} tables beside it)", soft_wrap=True)
        if compared is not None:
            out.print(
                f"Against {compared.run_id}: {compared.worse} measures worse, {compared.better} "
                f"better; {compared.verdict} then, {content.verdict} now."
            )
        out.print(
            f"{content.verdict}, evidence class {content.evidence_class}. {_next(site, done)}"
        )

    return Answer(document, show)


def write_article(ui: Ui, file: Path, run_id: str = "", output: Path | None = None) -> Answer:
    """Write the article's figures; the soak is that of the named run, or of the newest."""
    from reports.content.article import HOSTS
    from reports.content.article import article as content_of
    from reports.page.article import render_article
    from reports.page.html import write_page
    from reports.tables import write_article_tables

    site = load_site(file)
    soaked = _soaked(site, run_id)
    if soaked is not None:
        _believed(site, soaked)
    ui.say("predicting what the article shows")
    content = content_of(site, soaked)
    folder = output or site.state_dir / "report"
    with _whole(folder) as made:
        written = (
            write_page(render_article(content), made / "article.html"),
            *write_article_tables(content, made / "article"),
        )
    page, *tables = (folder / path.relative_to(made) for path in written)
    evidence = {"speedup": "predicted", "images": "predicted"}
    if content.soak is not None:
        evidence["soak"] = content.soak.evidence
    document = {
        "page": str(page),
        "tables": [str(path) for path in tables],
        "evidence": evidence,
        "run": content.soak.run_id if content.soak is not None else None,
    }

    def show(out: Console) -> None:
        out.print(f"{page} ({len(tables)} tables beside it)", soft_wrap=True)
        said = ", ".join(f"{name} {word}" for name, word in evidence.items())
        out.print(f"Drawn: {said}.")
        if content.soak is None:
            out.print(
                f"What {HOSTS} hosts send is not drawn: no run here has the suite soak. "
                f"Next: {command_line('validate soak', file)}"
            )

    return Answer(document, show)


def _soaked(site: Site, run_id: str) -> ValidationRun | None:
    """The named run, which must have a soak, or the newest that has one."""
    from reports.content.article import has_soak
    from validation.results.store import list_runs, load_run

    if not run_id:
        return next((one for one in reversed(list_runs(site)) if has_soak(one)), None)
    named = load_run(site, run_id)
    if not has_soak(named):
        raise InputError(
            f"run {run_id} has no soak with results",
            key="--run",
            advice="Run `paisoar validate soak`, or leave --run out: the newest soak is drawn.",
        )
    return named


def _next(site: Site, done: ValidationRun) -> str:
    from paisoar.commands.validate import lacking_suites

    file = site.path
    if done.verdict == "PASS":
        return lacking_suites(done, site) or (
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
