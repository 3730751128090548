"""``paisoar sim run`` and ``paisoar sim sweep``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from fabric.errors import InputError
from paisoar.asked import microseconds as _us
from paisoar.commands.sim_sweep import sweep
from paisoar.console import EXIT_INTERRUPTED, Answer, JsonOption, Ui, run

if TYPE_CHECKING:
    from fabric.sim.reference.result import ReferenceResult
    from fabric.sim.reference.simulation import Simulation

MAX_SHOWN = 20

sim = typer.Typer(
    no_args_is_help=True,
    help="The packet-level simulator: HPCC's files with the reference's semantics, or a site.",
)


sim.command("sweep")(sweep)


@dataclass(frozen=True)
class _Asked:
    """The options of ``paisoar sim run``, as they were given."""

    topology: Path | None
    flows: Path | None
    file: Path | None
    clos: int | None
    scenario: str | None
    level: str
    semantics: str | None
    dcqcn: str
    ecn: str
    ecn_scale: bool
    buffer: str
    duration: str
    warmup: str
    queues_from: str | None
    seed: int
    closed_loop: bool
    ack_priority: bool
    paths: Path | None
    series: str | None
    every: str
    out: Path | None


@sim.command("run")
def run_(
    topology: Annotated[
        Path | None, typer.Option("--topology", help="A topology in HPCC's format (.topo).")
    ] = None,
    flows: Annotated[
        Path | None, typer.Option("--flows", help="Flows in HPCC's format (.flow).")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="A site's file, with --scenario.")
    ] = None,
    clos: Annotated[
        int | None,
        typer.Option(help="Instead of -f: a three-level Clos of so many hosts at 25G."),
    ] = None,
    level: Annotated[
        str,
        typer.Option(help="packet, or flow: steady rates, for long flows and many hosts."),
    ] = "packet",
    scenario: Annotated[
        str | None,
        typer.Option(help="With -f or --clos: incast, permutation, ring, alltoall or burst."),
    ] = None,
    semantics: Annotated[
        str | None,
        typer.Option(
            help="reference: as HPCC's ns-3 (default for .topo/.flow); hardware: as devices "
            "behave (default and only choice for a site)."
        ),
    ] = None,
    dcqcn: Annotated[
        str, typer.Option(help="P1, P2, or a file with one 'name value' a line.")
    ] = "P1",
    ecn: Annotated[
        str, typer.Option(help="KMIN,KMAX,PMAX such as 100KB,400KB,0.2, or off.")
    ] = "100KB,400KB,0.2",
    ecn_scale: Annotated[
        bool, typer.Option("--ecn-scale", help="Scale KMIN and KMAX with a port's speed.")
    ] = False,
    buffer: Annotated[str, typer.Option(help="Shared buffer of each switch.")] = "12MiB",
    duration: Annotated[str, typer.Option(help="Simulated time.")] = "10ms",
    warmup: Annotated[str, typer.Option(help="Goodput counts from here on.")] = "2ms",
    queues_from: Annotated[
        str | None,
        typer.Option(
            "--queues-from",
            help="Queues are sampled from here on; 2ms as in the reference, --warmup in a "
            "shorter run.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of all random choices; RngRun of ns-3.")] = 1,
    closed_loop: Annotated[
        bool,
        typer.Option(
            "--closed-loop",
            help="Each flow sends its bytes again, as a new queue pair, when the last ACK is in.",
        ),
    ] = False,
    ack_priority: Annotated[
        bool, typer.Option("--ack-priority", help="Switches forward ACKs ahead of data.")
    ] = False,
    paths: Annotated[
        Path | None, typer.Option(help="Pinned paths: 'SOURCE TARGET SWITCH-SWITCH-...' lines.")
    ] = None,
    series: Annotated[
        str | None, typer.Option(help="Switch port SWITCH:PORT whose queue is written as a series.")
    ] = None,
    every: Annotated[str, typer.Option(help="Interval of --series.")] = "1us",
    out: Annotated[
        Path | None, typer.Option("--out", help="Parquet file of --series; series.parquet.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Simulate packets: HPCC's topology and flow files, or a scenario on a site.

    Ctrl-C ends the run early; what was seen so far is printed, marked as partial.
    """
    if level not in ("packet", "flow"):
        raise typer.BadParameter("it is packet or flow", param_hint="--level")
    if semantics not in (None, "reference", "hardware"):
        raise typer.BadParameter("it is reference or hardware", param_hint="--semantics")
    asked = _Asked(
        topology,
        flows,
        file,
        clos,
        scenario,
        level,
        semantics,
        dcqcn,
        ecn,
        ecn_scale,
        buffer,
        duration,
        warmup,
        queues_from,
        seed,
        closed_loop,
        ack_priority,
        paths,
        series,
        every,
        out,
    )
    run(as_json, lambda ui: _run(ui, asked))


def _run(ui: Ui, asked: _Asked) -> Answer:
    if asked.file is not None or asked.clos is not None:
        return _scenario(ui, asked)
    if asked.level == "flow":
        raise InputError(
            "--level flow needs a site",
            advice="Give -f fabric.yaml or --clos HOSTS, and --scenario NAME.",
        )
    if asked.topology is None or asked.flows is None:
        raise InputError(
            "nothing to simulate",
            advice="Give --topology F.topo and --flows F.flow, or -f fabric.yaml --scenario NAME.",
        )
    if asked.scenario:
        raise InputError("--scenario needs a site: -f fabric.yaml")
    if asked.semantics == "hardware":
        from paisoar.commands.sim_site import run_files

        _refuse_for_hardware(asked)
        return run_files(
            ui,
            asked.topology,
            asked.flows,
            asked.dcqcn,
            asked.ecn,
            _us("--duration", asked.duration),
            _us("--warmup", asked.warmup),
            asked.seed,
            _bytes(asked.buffer),
            ecn_scale=asked.ecn_scale,
            closed_loop=asked.closed_loop,
        )
    return _reference(ui, asked)


def _scenario(ui: Ui, asked: _Asked) -> Answer:
    from fabric.sim.scenarios import SCENARIOS

    given = "-f" if asked.file is not None else "--clos"
    if asked.file is not None and asked.clos is not None:
        raise InputError("-f and --clos are two sites; give one")
    if asked.topology or asked.flows or asked.semantics == "reference":
        raise InputError(
            f"{given} takes neither --topology nor --flows nor --semantics reference",
            advice="A site is simulated with the semantics of hardware, by --scenario.",
        )
    if asked.scenario is None:
        raise InputError(f"{given} needs --scenario", advice=f"There are: {', '.join(SCENARIOS)}.")
    from paisoar.commands.sim_flow import run_flow_level
    from paisoar.commands.sim_site import run_scenario

    play = run_flow_level if asked.level == "flow" else run_scenario
    return play(
        ui,
        asked.file,
        asked.clos,
        asked.scenario,
        _us("--duration", asked.duration),
        _us("--warmup", asked.warmup),
        asked.seed,
    )


def _refuse_for_hardware(asked: _Asked) -> None:
    given = {
        "--paths": asked.paths,
        "--series": asked.series,
        "--ack-priority": asked.ack_priority,
        "--queues-from": asked.queues_from,
    }
    for option, value in given.items():
        if value:
            raise InputError(f"{option} goes with --semantics reference only")


def _reference(ui: Ui, asked: _Asked) -> Answer:
    simulation = _prepare(asked)
    interrupted = False
    total = simulation.setup.duration_ns // 1000
    with ui.steps("simulating") as step:
        try:
            simulation.run(lambda now_ns: step("us simulated", now_ns // 1000, total))
        except KeyboardInterrupt:
            interrupted = True
    result = simulation.result()
    document = result.to_json()
    written = _write_series(asked, result)
    return Answer(
        document,
        lambda out: _show(out, result, written),
        good=not interrupted,
        exit_code=EXIT_INTERRUPTED,
    )


def _prepare(asked: _Asked) -> Simulation:
    from fabric.sim.reference.dcqcn import read_dcqcn, read_ecn
    from fabric.sim.reference.flowfile import read_flows
    from fabric.sim.reference.memory import Setup
    from fabric.sim.reference.pathfile import read_paths
    from fabric.sim.reference.simulation import prepare
    from fabric.sim.reference.topofile import read_topology
    from fabric.sim.reference.wiring import Wiring

    assert asked.topology is not None
    assert asked.flows is not None
    topology = read_topology(asked.topology)
    flows = read_flows(asked.flows, topology)
    setup = Setup(
        dcqcn=read_dcqcn(asked.dcqcn),
        ecn=read_ecn(asked.ecn, scaled=asked.ecn_scale),
        duration_ns=round(_us("--duration", asked.duration) * 1000),
        warmup_ns=round(_us("--warmup", asked.warmup) * 1000),
        queues_from_ns=(
            round(_us("--queues-from", asked.queues_from) * 1000) if asked.queues_from else None
        ),
        seed=asked.seed,
        buffer_bytes=_bytes(asked.buffer),
        closed_loop=asked.closed_loop,
        ack_first=asked.ack_priority,
        series_every_ns=round(_us("--every", asked.every) * 1000) if asked.series else None,
        series_port=_port(asked.series) if asked.series else None,
    )
    pins = read_paths(asked.paths, Wiring(topology), flows) if asked.paths else ()
    return prepare(topology, flows, setup, pins)


def _bytes(text: str) -> int:
    from fabric.units import parse_size_bytes

    try:
        return int(text) if text.isascii() and text.isdigit() else parse_size_bytes(text)
    except ValueError as error:
        raise InputError(f"--buffer: {error}") from error


def _port(text: str) -> tuple[int, int]:
    switch, _, port = text.partition(":")
    if not (switch.isdigit() and port.isdigit()):
        raise InputError(
            f"--series {text}: not a switch port",
            advice="Write SWITCH:PORT; ports count from 1 in the order of the links.",
        )
    return int(switch), int(port)


def _write_series(asked: _Asked, result: ReferenceResult) -> Path | None:
    if result.series is None:
        return None
    path = asked.out or Path("series.parquet")
    try:
        result.series.to_parquet(path, index=False)
    except OSError as error:
        raise InputError(f"--out: {path} cannot be written: {error}") from error
    return path


def _show(out: Console, result: ReferenceResult, written: Path | None) -> None:
    if result.partial:
        out.print(f"Partial: interrupted after {result.simulated_us / 1000:.3f} ms.", style="bold")
    rates = result.goodput_gbps
    out.print(
        f"goodput {rates.sum():.3f} Gb/s over {len(rates)} flows "
        f"({rates.min():.3f} to {rates.max():.3f}), Jain index {result.jain:.4f}"
    )
    table = Table("port", "to", "mean, KB", "p50", "p99", "max")
    busiest = sorted(result.ports, key=lambda port: -port.mean)[:MAX_SHOWN]
    for port in busiest:
        table.add_row(
            f"{port.switch}:{port.port}",
            str(port.peer),
            *(f"{value / 1000:.1f}" for value in (port.mean, port.p50, port.p99, port.max)),
        )
    out.print(table)
    if len(result.ports) > MAX_SHOWN:
        out.print(f"... and {len(result.ports) - MAX_SHOWN} ports with shorter queues")
    out.print(
        f"{result.pauses} pauses, {result.drops} drops, {result.marks} marks, "
        f"{result.rate_cuts} rate cuts, {len(result.messages)} messages completed"
    )
    out.print(
        f"{result.data_hops:,} data-packet hops in {result.wall_s:.2f} s "
        f"({result.hops_per_s:,.0f}/s), {result.peak_rss_bytes / 2**20:.0f} MiB"
    )
    if written:
        out.print(f"Series written to {written}.")
