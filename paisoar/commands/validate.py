"""``paisoar validate``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from fabric.errors import InputError
from fabric.reach.access import check_twin_is_up
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
    from validation.probes.hosts.options import Options
    from validation.results.result import ValidationRun

MAX_SHOWN = 20


def validate(
    suites: Annotated[
        list[str] | None,
        typer.Argument(
            help="preflight, latency, bandwidth, incast, and mixed, burst, collective, tcp, soak; "
            "the first four and those of certify.extra_suites if not given."
        ),
    ] = None,
    file: FileOption = DEFAULT_FILE,
    every: Annotated[bool, typer.Option("--all", help="Every suite that there is.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the last run, which was interrupted.")
    ] = False,
    repeat: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Measure bandwidth and incast so often and judge the median; five or more tell "
            "how sure it is.",
        ),
    ] = 1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be run; touch nothing.")
    ] = False,
    probe: Annotated[
        str | None,
        typer.Option(
            help="Real hosts: perftest or verbs; if not given, perftest where all hosts have it, "
            "else verbs where all have pyverbs."
        ),
    ] = None,
    latency_verb: Annotated[
        str | None, typer.Option(help="Real hosts: send, write or read; send if not given.")
    ] = None,
    bandwidth_verb: Annotated[
        str | None, typer.Option(help="Real hosts: write or send; write if not given.")
    ] = None,
    rdma_cm: Annotated[
        bool, typer.Option("--rdma-cm", help="Real hosts: connect queue pairs by rdma_cm.")
    ] = False,
    seconds: Annotated[
        int | None, typer.Option(help="Real hosts: how long a stream runs; 8 if not given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run traffic suites; judge them by results and by every device's counters.

    A twin's traffic is simulated; real hosts send it with perftest or pyverbs, over SSH.

    Exit 0 where everything passed, 1 where anything failed or was not run, 3 where
    a device or the probe did not answer at some time: such a run is incomplete.
    """
    chosen = {
        "probe": probe,
        "latency": latency_verb,
        "bandwidth": bandwidth_verb,
        "rdma_cm": rdma_cm or None,
        "seconds": seconds,
    }
    suites = _named(suites, every=every)
    if dry_run:
        run(as_json, lambda ui: _planned(ui, file, suites, chosen, repeat=repeat))
    else:
        run(
            as_json,
            lambda ui: _validate(ui, file, suites, chosen, resume=resume, repeat=repeat),
        )


def _named(suites: list[str] | None, *, every: bool) -> list[str] | None:
    if not every:
        return suites
    from validation.suites import SUITES

    return list(SUITES)


def _options(chosen: Mapping[str, Any] | None) -> Options | None:
    """How it was asked to measure; None where nothing was said."""
    from validation.probes.hosts.options import Options

    given = {name: value for name, value in (chosen or {}).items() if value is not None}
    return Options(**given) if given else None


def _planned(
    ui: Ui,
    file: Path,
    suites: list[str] | None,
    chosen: Mapping[str, Any] | None = None,
    *,
    repeat: int = 1,
) -> Answer:
    from validation.planned import outline, rounds
    from validation.probes import check_options, commands_for, traffic_us
    from validation.run import plans

    site = load_site(file)
    ui.say("planning")
    planned = plans(site, suites, repeat)
    options = _options(chosen)
    check_options(site, options)
    commands = {plan.suite: commands_for(site, plan, options) for plan in planned}
    outlines = [outline(plan, traffic_us(site, plan, options)) for plan in planned]
    document = {
        "suites": [
            {**found.to_json(), "plan": rounds(plan), "commands": commands[plan.suite]}
            for found, plan in zip(outlines, planned, strict=True)
        ]
    }

    def show(out: Console) -> None:
        table = Table("suite", "rounds", "pairs", "at once", "bytes", "seconds", "has to see")
        for found in outlines:
            table.add_row(
                found.suite,
                str(found.rounds),
                str(found.pairs),
                str(found.at_once),
                ", ".join(map(str, found.sizes_bytes)),
                f"{found.traffic_us / 1e6:.3f}",
                ", ".join(f"{count} {what}" for what, count in found.expected.items()),
            )
        out.print(table)
        for found in outlines:
            if found.note:
                out.print(f"{found.suite}: {found.note}", markup=False)
        for suite, lines in commands.items():
            for line in lines:
                text = f"{suite} {line['step']}: {line['host']}: {line['command']}"
                out.print(text, markup=False, soft_wrap=True)

    return Answer(document, show)


def _validate(
    ui: Ui,
    file: Path,
    suites: list[str] | None,
    chosen: Mapping[str, Any] | None = None,
    *,
    resume: bool = False,
    repeat: int = 1,
) -> Answer:
    if resume and repeat > 1:
        raise InputError(
            "a run that goes on keeps its own number of repetitions",
            key="--repeat",
            advice="Leave out --repeat, or start again without --resume.",
        )
    site = load_site(file)
    done = execute(ui, site, suites, _options(chosen), resume=resume, repeat=repeat)
    return Answer(
        done.to_json(),
        lambda out: show_run(out, done, site),
        good=done.verdict == "PASS",
        exit_code=_exit(done),
    )


def execute(
    ui: Ui,
    site: Site,
    suites: list[str] | None = None,
    options: Options | None = None,
    *,
    resume: bool = False,
    repeat: int = 1,
) -> ValidationRun:
    """Run these suites with progress."""
    from validation.probes import check_options, probe_for
    from validation.run import Progress, run_suites

    check_options(site, options)
    check_twin_is_up(site)
    with ui.steps("validating") as step:

        def tell(progress: Progress) -> None:
            step(f"{progress.suite} {progress.text}".strip(), progress.done, progress.total)

        return run_suites(
            site,
            suites,
            tell,
            probe=partial(probe_for, options=options),
            resume=resume,
            repeat=repeat,
        )


def _exit(done: ValidationRun) -> int:
    return 3 if done.unread else 1


def show_run(out: Console, done: ValidationRun, site: Site) -> None:
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
    if said := _spread_over_links(done, site):
        out.print(said, markup=False)
    bad = [check for check in done.all_checks if check.verdict != "PASS"]
    for check in bad[:MAX_SHOWN]:
        out.print(f"{check.verdict} {check.id} {check.subject}: {check.reason}", markup=False)
    if len(bad) > MAX_SHOWN:
        out.print(f"... and {len(bad) - MAX_SHOWN} more; see {command_line('report', site.path)}")
    for name, answer in done.unread.items():
        out.print(f"no answer: {name}: {answer}", markup=False)
    if chosen := done.versions.get("probe"):
        out.print(f"Measured with {chosen}.", markup=False)
    out.print(
        f"Run {done.id}: {done.verdict}, {done.status}, evidence class {done.evidence_class}. "
        + _next(done, site)
    )


def _spread_over_links(done: ValidationRun, site: Site) -> str:
    """How bandwidth's traffic spread over the links between switches; empty without any."""
    from validation.results.frames import uplinks_frame

    ways = uplinks_frame(site, done)
    ways = ways[ways["suite"] == "bandwidth"]
    several = ways[ways.groupby("device")["port"].transform("size") > 1]
    if several.empty:
        return ""
    by_share = several.sort_values("share")
    least, most = by_share.iloc[0], by_share.iloc[-1]
    return (
        f"bandwidth: {int(ways['carried'].sum())} of {len(ways)} ways between switches carried "
        f"traffic, from {least['share']:.0%} of what its switch sent to others "
        f"({least['device']} {least['port']}) to {most['share']:.0%} "
        f"({most['device']} {most['port']}); `paisoar runs export` has all of them"
    )


def _next(done: ValidationRun, site: Site) -> str:
    if done.unread:
        return f"Next: bring back what did not answer, then: {command_line('validate', site.path)}"
    if done.verdict != "PASS":
        return f"Next: {command_line('audit', site.path)} says what is wrong with the settings."
    if said := lacking_suites(done, site):
        return said
    return f"Next: {command_line('certify', site.path)}" + _named_run(done, site)


def lacking_suites(done: ValidationRun, site: Site) -> str:
    """Which suites a certificate asks for that this run has not; empty where it has all."""
    from validation.suites import certified_suites

    absent = [name for name in certified_suites(site) if done.suite(name) is None]
    if not absent:
        return ""
    return (
        f"A certificate also asks for {', '.join(absent)}, all in one run. "
        f"Next: {command_line('validate', site.path)}"
    )


def _named_run(done: ValidationRun, site: Site) -> str:
    """Names the run where certify would take another: one that began, or says so, after it."""
    from validation.results.store import Store

    with Store(site) as store:
        newest = store.ids()[-1:]
    return f" --run {done.id}" if newest and newest[0] != done.id else ""
