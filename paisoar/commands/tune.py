"""``paisoar tune``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from fabric.errors import InputError
from fabric.site import Site, load_site
from paisoar.asked import microseconds
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
    from fabric.sim.tune.search import Candidate, Tuning

MIN_DURATION_US = 1000.0
OBJECTIVES = "goodput up; tail of message times down; queue delay down"


def tune(
    file: FileOption = DEFAULT_FILE,
    traffic: Annotated[
        str, typer.Option(help="What the site carries: of incast, ring, mix (both at once).")
    ] = "incast,ring,mix",
    incast: Annotated[
        int | None, typer.Option(help="Queue pairs that send to one NIC; 8, or all other hosts.")
    ] = None,
    duration: Annotated[str, typer.Option(help="Simulated time of each kind.")] = "20ms",
    budget: Annotated[
        int | None,
        typer.Option(help="Candidates to try; by default as many as take one to two minutes."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of all random choices.")] = 1,
    dask: Annotated[
        str | None, typer.Option("--dask", help="Scheduler of a Dask cluster to run on.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes here; as many as there are cores.")
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Picture to write, .png or .svg.")] = (
        None
    ),
    choose: Annotated[
        int | None, typer.Option("--choose", help="The choice to write, by its number.")
    ] = None,
    write: Annotated[
        Path | None, typer.Option("--write", help="New file: a copy with the choice in it.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Search again, also where the same was searched before.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Search better ECN, DCQCN and buffer settings for this site's traffic, in the simulator.

    Candidates must drop nothing, pause no port for long, share fairly and fill the wire
    (limits as in `certify`). Shown are those that no other betters in goodput, tail of
    message times and queue delay, beside today's intent. Nothing is changed; --choose N
    --write FILE writes a copy of fabric.yaml. The last search is kept for that.
    """
    asked = _Asked(traffic, incast, duration, budget, seed)
    run(
        as_json,
        lambda ui: _tune(ui, file, asked, _Where(dask, jobs, fresh), _Wanted(plot, choose, write)),
    )


@dataclasses.dataclass(frozen=True)
class _Asked:
    """What to search; the same gives the same answer."""

    traffic: str
    incast: int | None
    duration: str
    budget: int | None
    seed: int


@dataclasses.dataclass(frozen=True)
class _Where:
    """Where to search, and whether a kept search will do."""

    dask: str | None
    jobs: int | None
    fresh: bool


@dataclasses.dataclass(frozen=True)
class _Wanted:
    """What to write."""

    plot: Path | None
    choose: int | None
    write: Path | None


def _tune(ui: Ui, file: Path, asked: _Asked, where: _Where, wanted: _Wanted) -> Answer:
    from fabric.sim.tune.kept import keep, kept_path, read_kept

    _check_wanted(wanted)
    site = load_site(file)
    path = kept_path(site, dataclasses.asdict(asked))
    document = None if where.fresh else read_kept(path)
    if document is None:
        document = _search(ui, site, asked, where)
        if not document["partial"]:
            keep(path, document)
        document["kept"] = False
    else:
        document["kept"] = True
    if wanted.plot is not None:
        _draw(wanted.plot, document)
        document["plot"] = str(wanted.plot)
    if wanted.write is not None:
        document["written"] = _write(site, document, wanted)
    return Answer(
        document,
        lambda out: _show(out, document),
        good=not document["partial"] and bool(document["choices"]),
        exit_code=EXIT_INTERRUPTED if document["partial"] else 1,
    )


def _check_wanted(wanted: _Wanted) -> None:
    from reports.figures.tuning import FORMATS

    if (wanted.choose is None) != (wanted.write is None):
        raise InputError("--choose N and --write FILE go together")
    if wanted.write is not None and wanted.write.exists():
        raise InputError(
            "exists already; a copy overwrites nothing", file=wanted.write, key="--write"
        )
    if wanted.plot is not None and wanted.plot.suffix not in FORMATS:
        raise InputError(f"--plot {wanted.plot}: neither .png nor .svg")


def _search(ui: Ui, site: Site, asked: _Asked, where: _Where) -> dict[str, Any]:
    from fabric.sim.run import warm_up
    from fabric.sim.sweep import Workers
    from fabric.sim.tune.representative import represent
    from fabric.sim.tune.search import Search
    from fabric.sim.tune.traffic import check_traffic, scenes_of

    others = len(site.topology.hosts) - 1
    degree = asked.incast if asked.incast is not None else max(2, min(8, others))
    kinds = [word.strip() for word in asked.traffic.split(",")]
    check_traffic(kinds, degree)
    duration_us = microseconds("--duration", asked.duration)
    if not duration_us >= MIN_DURATION_US:
        raise InputError(f"--duration {asked.duration}: less than {MIN_DURATION_US:g} us")
    small = represent(site)
    ui.say("loading the simulator")
    warm_up()
    with Workers(where.dask, where.jobs) as workers, ui.steps("tuning") as step:
        search = Search(
            site,
            small.site,
            scenes_of(small.site, kinds, degree, duration_us),
            duration_us,
            asked.seed,
            workers,
            step,
        )
        tuning = search.run(asked.budget)
    return _document(site, tuning, small.words, kinds, degree)


def _document(
    site: Site, tuning: Tuning, words: str, kinds: Sequence[str], degree: int
) -> dict[str, Any]:
    limits = site.document.certify
    return {
        "site": site.name,
        "evidence": "simulated",
        "simulated": words,
        "traffic": list(kinds),
        "incast": degree,
        "objectives": OBJECTIVES,
        "constraints": {
            "drops": 0,
            "max_pause_ratio": limits.max_pause_ratio,
            "min_incast_jain": limits.min_incast_jain,
            "min_incast_fraction": limits.min_incast_fraction,
        },
        "budget": tuning.budget,
        "partial": tuning.partial,
        "today": _candidate(0, tuning.today),
        "choices": [_candidate(n, c) for n, c in enumerate(tuning.choices, start=1)],
        "tried": [_candidate(None, c) for c in tuning.tried],
    }


def _candidate(number: int | None, candidate: Candidate) -> dict[str, Any]:
    found: dict[str, Any] = {
        "settings": candidate.settings,
        "measures": dataclasses.asdict(candidate.measures),
        "broken": sorted(candidate.broken),
    }
    return found if number is None else {"number": number, **found}


def _draw(path: Path, document: dict[str, Any]) -> None:
    from reports.figures.tuning import Mark, draw_tuning

    def mark(candidate: dict[str, Any]) -> Mark:
        measures = candidate["measures"]
        numbers = (measures["goodput"], measures["tail"], measures["queue_us"])
        return Mark(str(candidate.get("number", "")), *numbers, not candidate["broken"])

    title = f"{document['site']}: {', '.join(document['traffic'])}, {document['incast']}:1"
    choices, tried = ([mark(c) for c in document[name]] for name in ("choices", "tried"))
    try:
        draw_tuning(path, mark(document["today"]), choices, tried, title)
    except OSError as error:
        raise InputError(f"--plot: {path} cannot be written: {error}") from error


def _write(site: Site, document: dict[str, Any], wanted: _Wanted) -> str:
    from fabric.sim.tune.write import write_copy

    assert wanted.write is not None
    chosen = [c for c in document["choices"] if c["number"] == wanted.choose]
    if not chosen:
        raise InputError(
            f"--choose {wanted.choose}: there is no such choice",
            advice=f"There are {len(document['choices'])}; run without --choose to see them.",
        )
    write_copy(site.path, wanted.write, chosen[0]["settings"])
    return str(wanted.write)


def _show(out: Console, document: dict[str, Any]) -> None:
    if document["partial"]:
        out.print(f"Partial: interrupted after {len(document['tried'])} candidates.", style="bold")
    if document["kept"]:
        out.print("The same was searched before; --fresh searches again.")
    limits = document["constraints"]
    out.print(f"Simulated: {document['simulated']}.")
    out.print(f"Traffic: {', '.join(document['traffic'])}; incast of {document['incast']}:1.")
    out.print(f"Sought: {document['objectives']}.")
    out.print(
        f"Held: no drops, no port paused beyond {100 * limits['max_pause_ratio']:g} % of the time "
        f"once flows are steady, Jain {limits['min_incast_jain']:g} or more, incast goodput "
        f"{100 * limits['min_incast_fraction']:g} % or more."
    )
    out.print(_measures(document))
    if document["choices"]:
        out.print(_settings(document))
    else:
        out.print("No candidate held every constraint in all seeds; try a larger --budget.")
    if "plot" in document:
        out.print(f"Picture written to {document['plot']}.")
    if "written" in document:
        following = command_line("plan", Path(document["written"]))
        out.print(f"{document['written']} is valid. Next: {following}")


def _measures(document: dict[str, Any]) -> Table:
    heads = ("goodput", "tail", "queue, us", "Jain", "paused", "at start, us", "")
    table = Table("", *heads, title="tail: 99th percentile of message times / ideal")
    for candidate in (document["today"], *document["choices"]):
        m = candidate["measures"]
        table.add_row(
            _name(candidate),
            f"{100 * m['goodput']:.1f} %",
            f"{m['tail']:.2f}",
            f"{m['queue_us']:.1f}",
            f"{m['jain']:.3f}",
            f"{100 * m['pause']:.2f} %",
            f"{m['start_pause_us']:.0f}",
            "breaks " + ", ".join(candidate["broken"]) if candidate["broken"] else "",
        )
    return table


def _settings(document: dict[str, Any]) -> Table:
    shown = (document["today"], *document["choices"])
    table = Table()
    table.add_column("intent", no_wrap=True)
    for candidate in shown:
        table.add_column(_name(candidate))
    for key, todays in document["today"]["settings"].items():
        values = [candidate["settings"][key] for candidate in shown]
        if any(value != todays for value in values):
            _, part, *rest = key.split(".")
            table.add_row(" ".join(rest) if part == "profiles" else rest[0], *values)
    return table


def _name(candidate: dict[str, Any]) -> str:
    return "today" if candidate["number"] == 0 else str(candidate["number"])
