"""``paisoar sim sweep``: a scenario for every combination of settings."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console
from rich.table import Table

from fabric.errors import InputError
from fabric.site import load_site
from paisoar.asked import microseconds
from paisoar.console import DEFAULT_FILE, EXIT_INTERRUPTED, Answer, FileOption, JsonOption, Ui, run

if TYPE_CHECKING:
    from fabric.sim.cases import Case, CaseResult
    from fabric.sim.sweep import Outcome

MAX_POINTS = 100_000
NUMBERS = ("Gb/s", "least", "Jain", "drops", "paused", "queue, KB", "msg, us")


def sweep(
    file: FileOption = DEFAULT_FILE,
    scenario: Annotated[
        list[str], typer.Option(help="incast, permutation, ring, alltoall or burst; repeatable.")
    ] = ["incast"],  # noqa: B006 - typer copies it
    settings: Annotated[
        list[str],
        typer.Option(
            "--set", help="A key and its values, such as intent.profiles.25G.kmin=50KB,100KB."
        ),
    ] = [],  # noqa: B006
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 1 to so many for each setting.")] = 1,
    level: Annotated[str, typer.Option(help="packet or flow.")] = "packet",
    duration: Annotated[str, typer.Option(help="Simulated time.")] = "10ms",
    warmup: Annotated[str, typer.Option(help="Goodput counts from here on.")] = "2ms",
    dask: Annotated[
        str | None, typer.Option("--dask", help="Scheduler of a Dask cluster to run on.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes here; as many as there are cores.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Table to write: .csv or .parquet.")] = (
        None
    ),
    as_json: JsonOption = False,
) -> None:
    """Simulate every combination of settings, scenarios and seeds, on all cores.

    Devices are set as the intent has them. Ctrl-C prints what has come in, marked
    as partial.
    """
    if level not in ("packet", "flow"):
        raise typer.BadParameter("it is packet or flow", param_hint="--level")
    grid = (scenario, settings, seeds, level)
    run(as_json, lambda ui: _sweep(ui, file, grid, (duration, warmup), dask, jobs, out))


def _sweep(
    ui: Ui,
    file: Path,
    grid: tuple[list[str], list[str], int, str],
    times: tuple[str, str],
    dask: str | None,
    jobs: int | None,
    out: Path | None,
) -> Answer:
    from fabric.sim.cases import run_case
    from fabric.sim.sweep import Workers

    _check_out(out)
    names, cases = _cases(file, grid, times)
    with Workers(dask, jobs) as workers, ui.steps(f"sweeping {len(cases)} points") as step:
        swept = workers.sweep(run_case, cases, lambda done, total: step("points", done, total))
    rows = [_row(names[outcome.index], cases[outcome.index], outcome) for outcome in swept.outcomes]
    document: dict[str, Any] = {"site": str(file), "points": len(cases), "rows": rows}
    if swept.partial:
        document["partial"] = True
    if out is not None:
        _write(out, rows)
    return Answer(
        document,
        lambda console: _show(console, document, out),
        good=not swept.partial,
        exit_code=EXIT_INTERRUPTED,
    )


def _cases(
    file: Path, grid: tuple[list[str], list[str], int, str], times: tuple[str, str]
) -> tuple[list[dict[str, str]], list[Case]]:
    from fabric.sim.cases import Case, Level
    from fabric.sim.scenarios import check_scenario
    from fabric.sim.variants import Variants

    scenarios, settings, seeds, level = grid
    for name in scenarios:
        check_scenario(name)
    axes = [_axis(text) for text in settings]
    points = len(scenarios) * seeds
    for _, values in axes:
        points *= len(values)
    if points > MAX_POINTS:
        raise InputError(f"{points:,} points are more than {MAX_POINTS:,}")
    duration_us, warmup_us = (
        microseconds("--duration", times[0]),
        microseconds("--warmup", times[1]),
    )
    if not 0 <= warmup_us < duration_us:
        raise InputError(f"--warmup {times[1]} must be below --duration {times[0]}")
    variants = Variants(load_site(file))
    names: list[dict[str, str]] = []
    cases: list[Case] = []
    for combination in itertools.product(*(values for _, values in axes)):
        chosen = dict(zip((key for key, _ in axes), combination, strict=True))
        site = variants.with_settings(chosen)
        for scenario, seed in itertools.product(scenarios, range(1, seeds + 1)):
            names.append(chosen)
            cases.append(Case(site, scenario, seed, cast(Level, level), duration_us, warmup_us))
    return names, cases


def _axis(text: str) -> tuple[str, list[str]]:
    key, equals, values = text.partition("=")
    found = [value.strip() for value in values.split(",")]
    if not (key and equals and all(found)):
        raise InputError(
            f"--set {text}: not a key with its values",
            advice="Write it like intent.profiles.25G.kmin=50KB,100KB.",
        )
    return key, found


def _row(settings: dict[str, str], case: Case, outcome: Outcome[CaseResult]) -> dict[str, Any]:
    row: dict[str, Any] = {**settings, "scenario": case.scenario, "seed": case.seed}
    if outcome.value is None:
        return row | {"error": outcome.error}
    return row | dataclasses.asdict(outcome.value)


def _check_out(out: Path | None) -> None:
    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise InputError(f"--out {out}: neither .csv nor .parquet")


def _write(out: Path, rows: list[dict[str, Any]]) -> None:
    import pandas as pd

    frame = pd.DataFrame(rows)
    try:
        if out.suffix == ".csv":
            frame.to_csv(out, index=False)
        else:
            frame.to_parquet(out, index=False)
    except OSError as error:
        raise InputError(f"--out: {out} cannot be written: {error}") from error


def _show(console: Console, document: dict[str, Any], out: Path | None) -> None:
    rows = document["rows"]
    if document.get("partial"):
        console.print(f"Partial: {len(rows)} of {document['points']} points.", style="bold")
    keys = [key for key in (rows[0] if rows else {}) if key.startswith("intent.")]
    shown = [*keys, "scenario"] + ["seed"] * (len({row["seed"] for row in rows}) > 1)
    # The last word of a key says enough, unless two keys share it.
    words = [key.rsplit(".", 1)[-1] for key in keys]
    heads = words if len(set(words)) == len(words) else [k.removeprefix("intent.") for k in keys]
    table = Table(*heads, *shown[len(keys) :], *NUMBERS)
    for row in rows:
        table.add_row(*(str(row[key]) for key in shown), *_numbers(row))
    console.print(table)
    for row in rows:
        if "error" in row:
            console.print(f"{row['scenario']}, seed {row['seed']}: {row['error']}")
    console.print("least: slowest flow; queue and msg (message time): 99th percentiles.")
    if out is not None:
        console.print(f"Table written to {out}.")


def _numbers(row: dict[str, Any]) -> list[str]:
    if "error" in row:
        return ["failed"]
    message = row["message_p99_us"]
    return [
        f"{row['goodput_bps'] / 1e9:.2f}",
        f"{row['slowest_bps'] / 1e9:.2f}",
        f"{row['jain']:.3f}",
        str(row["drops"]),
        f"{100 * row['pause_fraction']:.1f} %",
        f"{row['queue_p99_bytes'] / 1000:.0f}",
        "-" if message is None else f"{message:.0f}",
    ]
