"""``paisoar sim run --level flow``: steady rates of a scenario, on a site or a large Clos."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from fabric.site import load_site
from paisoar.console import EXIT_INTERRUPTED, Answer, Ui

if TYPE_CHECKING:
    from fabric.sim.flowlevel.network import FlowNetwork
    from fabric.sim.flowlevel.run import FlowLevelResult

MAX_SHOWN = 20


def run_flow_level(
    ui: Ui,
    file: Path | None,
    clos: int | None,
    scenario: str,
    duration_us: float,
    warmup_us: float,
    seed: int,
) -> Answer:
    """A scenario at the flow level: on the site of ``file``, or a Clos of ``clos`` hosts."""
    from fabric.sim.flowlevel.run import prepare_flows
    from fabric.sim.scenarios import check_scenario, flows_between

    check_scenario(scenario)
    network, dscp = _network(ui, file, clos, scenario, duration_us)
    ends = network.topology.rails()[0]
    flows = flows_between(ends, dscp, scenario, duration_us, seed)
    interrupted = False
    with ui.steps("flow level") as step:
        simulation = prepare_flows(network, flows, duration_us, warmup_us, seed, step)
        try:
            simulation.advance(step)
        except KeyboardInterrupt:
            interrupted = True
    result = simulation.result()
    document = _document(network, result)
    return Answer(
        document,
        lambda out: _show(out, document),
        good=not interrupted,
        exit_code=EXIT_INTERRUPTED,
    )


def _network(
    ui: Ui, file: Path | None, clos: int | None, scenario: str, duration_us: float
) -> tuple[FlowNetwork, int]:
    from fabric.errors import InputError
    from fabric.sim.flowlevel.clos import links_of, network_of_shape, shape_for
    from fabric.sim.flowlevel.memory import check_memory
    from fabric.sim.flowlevel.network import network_of_site
    from fabric.sim.scenarios import flow_count
    from paisoar.commands.sim_site import states_of

    if file is None:
        assert clos is not None
        shape = shape_for(clos)
        check_memory(links_of(shape), flow_count(scenario, clos, duration_us))
        ui.say(f"laying out {clos:,} hosts")
        network, intent = network_of_shape(shape)
        return network, intent.roce.dscp[0]
    site = load_site(file)
    ends = len(site.topology.rails()[0]) if site.topology.endpoints else 0
    if ends < 2:
        raise InputError(f"--scenario {scenario}: traffic needs two hosts", file=site.path)
    check_memory(len(site.topology.links), flow_count(scenario, ends, duration_us))
    return network_of_site(site, states_of(ui, site)), site.intent.roce.dscp[0]


def _document(network: FlowNetwork, result: FlowLevelResult) -> dict[str, Any]:
    from fabric.sim.reference.result import peak_rss_bytes
    from fabric.sim.run import jain

    rates = result.goodput_bps / 1e9
    document: dict[str, Any] = {
        "level": "flow",
        "regime": result.regime,
        "hosts": len(network.topology.hosts),
        "switches": len(network.topology.switches),
        "goodput_gbps": {"sum": float(rates.sum()), "per_flow": rates.tolist()},
        "jain": jain(result.goodput_bps),
        "ports": [
            {
                "device": load.port.device,
                "port": load.port.port,
                "peer": network.topology.peer(load.port).device,
                "load": load.load,
                "queue_mean_bytes": load.queue_bytes,
                "mark_fraction": load.mark,
                "paused_fraction": load.paused,
            }
            for load in result.ports
        ],
        "completion_us": [
            None if math.isnan(time_us) else float(time_us) for time_us in result.completion_us
        ],
        "solves": result.solves,
        "simulated_us": result.simulated_us,
        "wall_s": result.wall_s,
        "peak_rss_bytes": peak_rss_bytes(),
        "notes": list(result.notes),
    }
    if result.partial:
        document["partial"] = True
    return document


def _show(out: Console, document: dict[str, Any]) -> None:
    if document.get("partial"):
        out.print(f"Partial: interrupted after {document['simulated_us']:.0f} us.", style="bold")
    rates = document["goodput_gbps"]["per_flow"]
    ruled = "DCQCN" if document["regime"] == "dcqcn" else "PFC alone"
    out.print(
        f"goodput {document['goodput_gbps']['sum']:.3f} Gb/s over {len(rates)} flows "
        f"({min(rates):.3f} to {max(rates):.3f}), Jain index {document['jain']:.4f}; "
        f"steady rates under {ruled}"
    )
    table = Table("port", "to", "load", "queue, KB", "marked", "paused")
    queued = sorted(document["ports"], key=lambda p: (-p["queue_mean_bytes"], -p["load"]))
    for port in queued[:MAX_SHOWN]:
        table.add_row(
            f"{port['device']}:{port['port']}",
            port["peer"],
            f"{100 * port['load']:.1f} %",
            f"{port['queue_mean_bytes'] / 1000:.1f}",
            f"{100 * port['mark_fraction']:.2f} %",
            f"{100 * port['paused_fraction']:.1f} %",
        )
    out.print(table)
    ended = [time_us for time_us in document["completion_us"] if time_us is not None]
    if ended:
        out.print(f"{len(ended)} flows completed, the slowest in {max(ended):.0f} us")
    out.print(
        f"{document['hosts']:,} hosts, {document['solves']} steady states in "
        f"{document['wall_s']:.2f} s, {document['peak_rss_bytes'] / 2**20:.0f} MiB"
    )
    for note in document["notes"]:
        out.print(note)
